-- What the documents of a sample hold, from matches.parquet. `*` stands for all sources, or for any
-- benchmark.

-- name: documents
SELECT coalesce(source, '*') AS source, coalesce(benchmark, '*') AS benchmark,
       count(DISTINCT (file, row)) AS n_found
FROM (
    SELECT file, row, benchmark,
           CASE WHEN contains(file, '/') THEN split_part(file, '/', 1) ELSE '.' END AS source
    FROM read_parquet($path)
    WHERE is_contaminated
)
GROUP BY GROUPING SETS ((source, benchmark), (source), (benchmark), ())

-- name: items
-- How many items leaked into how many documents, and how many of them at most into the same one.
WITH leaks AS (
    SELECT DISTINCT benchmark, split, instance_index, file, row
    FROM read_parquet($path)
    WHERE is_contaminated
), by_item AS (
    SELECT benchmark, count() AS n_documents FROM leaks GROUP BY benchmark, split, instance_index
), together AS (
    SELECT benchmark, max(n) AS n_most_together
    FROM (SELECT benchmark, count() AS n FROM leaks GROUP BY benchmark, file, row)
    GROUP BY benchmark
)
SELECT benchmark, n_documents, count() AS n_items, any_value(n_most_together) AS n_most_together
FROM by_item JOIN together USING (benchmark)
GROUP BY benchmark, n_documents
