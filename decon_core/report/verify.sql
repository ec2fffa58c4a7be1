-- Queries of a report whose results verify.py compares with the store.

-- name: items
SELECT benchmark, any_value(b.version) AS version, any_value(b.n_items) AS n_declared,
       count(i.split) AS n_items
FROM benchmarks b FULL JOIN items i USING (benchmark) GROUP BY benchmark

-- name: shards
SELECT pack, shard_name, shard FROM shards

-- name: not_scanned
SELECT pack, shard_name, benchmarks FROM not_scanned

-- name: unread
SELECT source, place AS shard_name, path, accepted_by FROM not_read
WHERE what IN ('text', 'no text') ORDER BY ALL

-- name: shares
SELECT mixture, pack, list_sort(list([shard_name, n_documents_in::TEXT, n_documents_out::TEXT]))
       AS shards
FROM mixtures GROUP BY mixture, pack

-- name: removed
SELECT mixture, source, count(*) AS n FROM removed GROUP BY mixture, source

-- name: matches
SELECT benchmark, format('{} matches, {} findings, {} leaks', sum(n)::BIGINT, count(*),
                         count(*) FILTER (is_leak)) AS counts
FROM (
    SELECT benchmark, count(*) AS n, bool_or(is_contaminated) AS is_leak FROM matches
    GROUP BY source, pack, shard_name, row, benchmark, split, instance_index
)
GROUP BY benchmark

-- name: findings
SELECT benchmark, format('{} matches, {} findings, {} leaks', sum(n_matches)::BIGINT, count(*),
                         count(*) FILTER (is_contaminated)) AS counts
FROM findings GROUP BY benchmark

-- name: documents
SELECT format('{} findings, {} leaks', coalesce(sum(n_found_items), 0)::BIGINT,
              coalesce(sum(n_leaked_items), 0)::BIGINT) AS found,
       (SELECT format('{} findings, {} leaks', count(*), count(*) FILTER (is_contaminated))
        FROM findings) AS expected
FROM documents

-- name: is_current
SELECT mixture, pack, bool_and(is_current) AS is_current FROM mixtures GROUP BY mixture, pack
ORDER BY ALL
