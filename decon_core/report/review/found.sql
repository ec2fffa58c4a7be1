-- The queries of a review. An empty list of a filter does not filter.

-- name: matched_texts
-- `matched_texts` has one document and one item of each matched text; the filters look at all.
FROM matched_texts
WHERE (len($benchmarks::VARCHAR[]) = 0
       OR list_contains($benchmarks::VARCHAR[], benchmark)
       OR text_id IN (SELECT text_id FROM matches WHERE list_contains($benchmarks::VARCHAR[], benchmark)))
  AND (len($detectors::VARCHAR[]) = 0
       OR list_has_any(string_split(detectors, ', '), $detectors::VARCHAR[]))
  AND (len($sources::VARCHAR[]) = 0 OR list_contains($sources::VARCHAR[], source)
       OR text_id IN (SELECT text_id FROM findings WHERE list_contains($sources::VARCHAR[], source)))
  AND (len($documents::VARCHAR[]) = 0
       OR text_id IN (SELECT text_id FROM matches WHERE list_contains($documents::VARCHAR[], doc_id)))
ORDER BY text_id

-- name: findings
FROM findings
WHERE is_by_score
  AND (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], benchmark))
  AND (len($sources::VARCHAR[]) = 0 OR list_contains($sources::VARCHAR[], source))
  AND (len($detectors::VARCHAR[]) = 0 OR list_has_any(detectors_by_score, $detectors::VARCHAR[]))

-- name: other_items
-- The other items in which the same words were found: a verdict applies to them as well.
SELECT DISTINCT m.text_id, m.benchmark, m.split, m.instance_index
FROM matches m JOIN matched_texts t USING (text_id)
WHERE (m.benchmark, m.split, m.instance_index) <> (t.benchmark, t.split, t.instance_index)
ORDER BY ALL

-- name: texts_at
-- The matched texts of an item in a row of a shard.
SELECT DISTINCT text_id FROM matches
WHERE benchmark = $benchmark AND split = $split AND instance_index::VARCHAR = $instance_index
  AND shard_name = $shard AND row::VARCHAR = $row
ORDER BY text_id

-- name: documents
SELECT source, shard_name, row, doc_id FROM text_documents WHERE text_id = $text_id
ORDER BY is_contaminated DESC, source, shard_name, row LIMIT $most

-- name: candidates
-- Each matched text once for every detector that found it, with the highest score of its matches.
SELECT matched_texts.text_id, any_value(matched_texts.fingerprint) AS fingerprint,
       any_value(matched_texts.benchmark) AS benchmark, any_value(matched_texts.split) AS split,
       any_value(matched_texts.instance_index) AS instance_index, matches.detector AS detector,
       max(matches.score) AS score
FROM matched_texts JOIN matches USING (text_id)
WHERE (len($benchmarks::VARCHAR[]) = 0 OR list_contains($benchmarks::VARCHAR[], matches.benchmark))
  AND (len($detectors::VARCHAR[]) = 0
       OR list_contains($detectors::VARCHAR[], matches.detector))
GROUP BY matched_texts.text_id, matches.detector
ORDER BY matched_texts.text_id, matches.detector

-- name: texts
SELECT text_id, question, answer, passage, text, why_no_text FROM matched_texts
WHERE list_contains($text_ids::VARCHAR[], text_id) ORDER BY text_id
