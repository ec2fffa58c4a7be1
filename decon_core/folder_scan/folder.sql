-- What is counted in the files of a folder scan, and read from them as a report.

-- name: by_benchmark
-- A pair of an item and a document is a leak if any detector calls it one; else question-only; else a
-- candidate.
WITH pairs AS (
    SELECT benchmark, (split, instance_index) AS item, (file, row) AS document,
           bool_or(is_contaminated) AS is_leak,
           bool_or(is_question_only) AND NOT is_leak AS is_question,
           bool_or(is_candidate) AND NOT (is_leak OR is_question) AS is_candidate
    FROM read_parquet($path)
    GROUP BY ALL
), compared AS (
    SELECT *, bool_or(is_leak) OVER (PARTITION BY benchmark, item) AS is_leaked_item,
           bool_or(is_leak) OVER (PARTITION BY document) AS is_leaky_document
    FROM pairs
)
SELECT benchmark,
       count(DISTINCT item) FILTER (is_leak) AS n_leaked_items,
       count() FILTER (is_leak) AS n_leaks,
       count(DISTINCT document) FILTER (is_leak) AS n_documents,
       count(DISTINCT item) FILTER (is_question AND NOT is_leaked_item)
           AS n_question_only_items,
       count(DISTINCT document) FILTER (is_question AND NOT is_leaky_document)
           AS n_question_only_documents,
       count(DISTINCT item) FILTER (is_candidate AND NOT is_leaked_item) AS n_candidate_items,
       count() FILTER (is_question) AS n_question_only,
       count() FILTER (is_candidate) AS n_candidates
FROM compared
GROUP BY benchmark

-- name: by_detectors
SELECT benchmark, detectors, count() AS n
FROM (
    SELECT benchmark, list(DISTINCT detector) AS detectors
    FROM read_parquet($path)
    WHERE is_contaminated OR is_candidate
    GROUP BY benchmark, split, instance_index
)
GROUP BY ALL

-- name: matches
-- The columns of matches.parquet that a report uses.
SELECT $source AS source, file AS shard_name, shard, row, doc_id, detector, benchmark, config,
       split, instance_index, record, fingerprint, pair, is_correct, base_score,
       question_overlap, answer_overlap, passage_overlap, looked_for, n_matched, n_grams,
       question_tokens, total_tokens, score, is_by_score, holds_to, verdict, is_contaminated,
       is_candidate, is_question_only
FROM read_parquet($path)

-- name: items
SELECT benchmark, any_value(config) AS config, split, instance_index,
       max(n_records) AS n_records, bool_or(is_visible) AS is_indexed,
       CASE WHEN NOT bool_or(is_visible) THEN first(reason) END AS why_not_indexed
FROM read_parquet($path)
GROUP BY benchmark, split, instance_index
ORDER BY benchmark, split, instance_index

-- name: indexability
SELECT benchmark, config, split, instance_index, detector, is_visible, reason, n_records, detail
FROM read_parquet($path)
