-- The queries of a review. An empty list of a filter does not filter.

-- name: pairs
-- `pairs` has one document of each pair; the filters look at all.
FROM pairs
WHERE (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], benchmark))
  AND (len($detectors::VARCHAR[]) = 0
       OR list_has_any(string_split(detectors, ', '), $detectors::VARCHAR[]))
  AND (len($sources::VARCHAR[]) = 0 OR list_contains($sources::VARCHAR[], source)
       OR pair IN (SELECT pair FROM decisions WHERE list_contains($sources::VARCHAR[], source)))
  AND (len($documents::VARCHAR[]) = 0
       OR pair IN (SELECT pair FROM matches WHERE list_contains($documents::VARCHAR[], doc_id)))
ORDER BY pair

-- name: calls
FROM decisions
WHERE is_by_score
  AND (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], benchmark))
  AND (len($sources::VARCHAR[]) = 0 OR list_contains($sources::VARCHAR[], source))
  AND (len($detectors::VARCHAR[]) = 0 OR list_has_any(detectors_by_score, $detectors::VARCHAR[]))

-- name: documents
SELECT source, shard_name, row, doc_id FROM pair_documents WHERE pair = $pair
ORDER BY is_contaminated DESC, source, shard_name, row LIMIT $most
