-- name: nearest
SELECT n.benchmark, n.split, n.instance_index, n.similarity, n.source, i.question,
       left(n.text, 160) AS paragraph
FROM neighbours n JOIN items i USING (benchmark, split, instance_index)
WHERE n.rank = 1
ORDER BY n.similarity DESC, n.benchmark, n.split, n.instance_index LIMIT 50

-- name: neighbour_similarity
SELECT * REPLACE (round(n_estimated)::BIGINT AS n_estimated)
FROM neighbour_similarity WHERE similarity >= 0.5
ORDER BY benchmark, source, similarity

-- name: neighbour_sample
FROM neighbour_sample ORDER BY source

-- name: duplicates_by_benchmark
SELECT * REPLACE (format('{:.2f}', per_10_000) AS per_10_000)
FROM duplicates_by_benchmark WHERE n_judged > 0

-- name: duplicates_by_source
SELECT * REPLACE (format('{:.2f}', per_10_000) AS per_10_000)
FROM duplicates_by_source WHERE n_judged > 0
