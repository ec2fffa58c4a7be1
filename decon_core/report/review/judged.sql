-- The queries of the tables of judged pairs.

-- name: found
SELECT detector, benchmark, text_id AS pair, any_value(fingerprint) AS fingerprint,
       min(concat_ws(' ', split, instance_index)) AS item, max(score) AS score,
       max_by(kind, score) AS kind
FROM read_parquet($files) SEMI JOIN judged USING (text_id)
GROUP BY detector, benchmark, text_id
ORDER BY pair, detector, benchmark

-- name: counts
SELECT detector, kind, benchmark, count(DISTINCT text_id) AS n_pairs
FROM (
    SELECT detector, benchmark, text_id,
           CASE WHEN list_contains($near_kinds, kind) THEN kind END AS kind
    FROM read_parquet($files)
)
GROUP BY GROUPING SETS ((detector, kind, benchmark), (detector, kind))
