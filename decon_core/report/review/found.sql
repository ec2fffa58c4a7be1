-- The queries of a review. An empty list of a filter does not filter.

-- name: pairs
-- `pairs` has one document of each pair; the filters look at all.
FROM pairs
WHERE (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], benchmark))
  AND (len($detectors::VARCHAR[]) = 0
       OR list_has_any(string_split(detectors, ', '), $detectors::VARCHAR[]))
  AND (len($sources::VARCHAR[]) = 0 OR list_contains($sources::VARCHAR[], source)
       OR pair IN (SELECT pair FROM findings WHERE list_contains($sources::VARCHAR[], source)))
  AND (len($documents::VARCHAR[]) = 0
       OR pair IN (SELECT pair FROM matches WHERE list_contains($documents::VARCHAR[], doc_id)))
ORDER BY pair

-- name: calls
FROM findings
WHERE is_by_score
  AND (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], benchmark))
  AND (len($sources::VARCHAR[]) = 0 OR list_contains($sources::VARCHAR[], source))
  AND (len($detectors::VARCHAR[]) = 0 OR list_has_any(detectors_by_score, $detectors::VARCHAR[]))

-- name: documents
SELECT source, shard_name, row, doc_id FROM pair_documents WHERE pair = $pair
ORDER BY is_contaminated DESC, source, shard_name, row LIMIT $most

-- name: candidates
-- Each pair once for every detector that found it, with the highest score of its matches.
SELECT pairs.pair, any_value(pairs.fingerprint) AS fingerprint,
       any_value(pairs.benchmark) AS benchmark, any_value(pairs.split) AS split,
       any_value(pairs.instance_index) AS instance_index, matches.detector AS detector,
       max(matches.score) AS score
FROM pairs JOIN matches USING (pair)
WHERE (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], pairs.benchmark))
  AND (len($detectors::VARCHAR[]) = 0
       OR list_contains($detectors::VARCHAR[], matches.detector))
GROUP BY pairs.pair, matches.detector
ORDER BY pairs.pair, matches.detector

-- name: texts
SELECT pair, question, answer, passage, text, why_no_text FROM pairs
WHERE list_contains($pairs::VARCHAR[], pair) ORDER BY pair
