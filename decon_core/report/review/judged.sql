-- The queries of the tables of judged pairs.

-- name: found
SELECT detector, benchmark, pair, any_value(fingerprint) AS fingerprint,
       min(concat_ws(' ', split, instance_index)) AS item, max(score) AS score,
       max_by(kind, score) AS kind
FROM read_parquet($files) SEMI JOIN judged USING (pair)
GROUP BY detector, benchmark, pair
ORDER BY pair, detector, benchmark

-- name: counts
SELECT detector, kind, benchmark, count(DISTINCT pair) AS n_pairs
FROM (
    SELECT detector, benchmark, pair,
           CASE WHEN list_contains($near_kinds, kind) THEN kind END AS kind
    FROM read_parquet($files)
)
GROUP BY GROUPING SETS ((detector, kind, benchmark), (detector, kind))
