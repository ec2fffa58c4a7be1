-- The queries of the tables of judged pairs.

-- name: found
SELECT detector, benchmark, pair, any_value(fingerprint) AS fingerprint,
       min(concat_ws(' ', split, instance_index)) AS item, max(score) AS score,
       bool_and(list_contains($near_kinds, looked_for)) AS is_near
FROM read_parquet($files) SEMI JOIN judged USING (pair)
GROUP BY detector, benchmark, pair
ORDER BY pair, detector, benchmark

-- name: counts
SELECT detector, benchmark, count(DISTINCT pair) AS n_pairs
FROM read_parquet($files)
GROUP BY GROUPING SETS ((detector, benchmark), (detector))
