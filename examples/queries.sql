-- Twelve example queries for a report. To run all of them:
--     duckdb .decon/report/contamination.duckdb < examples/queries.sql
-- To run one of them:   decon-assets report --query "..."
-- To list the tables:   FROM duckdb_tables() SELECT table_name, comment   (views: FROM duckdb_views())

-- 1. How much of each benchmark leaked, and how certain is the rate?
-- The rate and its interval refer to the items that can be found; the last two columns to all items.
SELECT benchmark, split, n_items, n_leaked, n_leaked_checkable, n_checkable,
       round(leak_rate, 4) AS rate, round(low, 4) AS low, round(high, 4) AS high,
       round(at_least, 4) AS at_least, round(at_most, 4) AS at_most
FROM by_benchmark ORDER BY leak_rate DESC;

-- 2. Where do the leaks come from?
SELECT benchmark, source, n_leaked, n_documents FROM by_benchmark_and_source ORDER BY n_leaked DESC;

-- 3. Which shards have the most leaks?
SELECT source, shard_name, n_contaminated_documents, round(contaminated_share, 5) AS share
FROM by_shard WHERE n_leaks > 0 ORDER BY n_leaks DESC LIMIT 20;

-- 4. Which items occur in the most documents?
SELECT benchmark, split, instance_index, n_documents, found_by, left(question, 60) AS question
FROM top_items LIMIT 20;

-- 5. How many items leaked with their answer? How many were found only without it (not leaks)?
SELECT benchmark, sum(n_with_answer)::BIGINT AS with_answer,
       sum(n_with_part_of_answer)::BIGINT AS with_part_of_it,
       sum(n_without_answer)::BIGINT AS without_it,
       sum(n_leaked_without_having_one)::BIGINT AS has_no_answer,
       sum(n_no_answer)::BIGINT AS no_answer
FROM flow GROUP BY benchmark ORDER BY benchmark;

-- 6. Which documents contain many items, such as copies of entire benchmarks?
SELECT source, shard_name, row, doc_id, n_leaked_items, n_benchmarks
FROM documents WHERE n_leaked_items > 1 ORDER BY n_leaked_items DESC LIMIT 20;

-- 7. How many items would leak at other thresholds, in steps of 0.05?
SELECT detector, threshold, sum(n_leaked)::BIGINT AS n_leaked
FROM threshold_sweep WHERE threshold * 20 = round(threshold * 20)
GROUP BY detector, threshold ORDER BY detector, threshold;

-- 8. Which matches are just below the threshold? Read them to judge whether the threshold is right.
SELECT m.benchmark, m.detector, round(m.score, 3) AS score, m.source, m.shard_name, m.row,
       left(t.question, 60) AS question
FROM matches m JOIN matched_texts t USING (text_id) JOIN runs r ON true
WHERE NOT m.is_contaminated AND m.score > (r.thresholds ->> m.detector)::DOUBLE - 0.05
ORDER BY m.score DESC, m.source, m.shard_name, m.row LIMIT 20;

-- 9. Do the detectors agree?
FROM agreement;

-- 10. Which items can a detector not find? It is unknown whether they leaked.
SELECT benchmark, detector, n_items - n_visible AS n_unseen, round(1 - share, 4) AS share_unseen,
       most_common_reason
FROM visibility_by_detector WHERE n_visible < n_items ORDER BY share_unseen DESC;

-- 11. What did each mixture remove, and why? A document with several benchmarks counts in several rows.
SELECT mixture, source, what, why, benchmark, n_documents, n_tokens
FROM removed_by_mixture ORDER BY mixture, source, what, why, n_documents DESC;

-- 12. Which verdicts did reviewers give, and how many of them changed a match's class?
SELECT v.verdict, count(*) AS n_texts,
       coalesce(sum(t.n_documents), 0)::BIGINT AS n_documents,
       count(*) FILTER (t.is_by_score <> t.is_contaminated) AS n_classes_changed
FROM verdicts v LEFT JOIN matched_texts t USING (text_id)
GROUP BY v.verdict ORDER BY n_texts DESC;
