-- The queries of the tables of judged pairs.

-- name: found
SELECT detector, benchmark, pair, any_value(fingerprint) AS fingerprint,
       min(concat_ws(' ', split, instance_index)) AS item, max(score) AS score,
       max_by(looked_for, score) AS looked_for
FROM read_parquet($files) SEMI JOIN judged USING (pair)
GROUP BY detector, benchmark, pair
ORDER BY pair, detector, benchmark

-- name: counts
SELECT detector, looked_for, benchmark, count(DISTINCT pair) AS n_pairs
FROM (
    SELECT detector, benchmark, pair,
           CASE WHEN list_contains($near_kinds, looked_for) THEN looked_for END AS looked_for
    FROM read_parquet($files)
)
GROUP BY GROUPING SETS ((detector, looked_for, benchmark), (detector, looked_for))
