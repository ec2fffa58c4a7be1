-- The rows of tables derived from the matches, stored because most queries use them.

-- name: findings
-- The decisive match (`best`) of a document and an item: leaks come first, then no-answer matches,
-- then those to review, then matches that reach a threshold, then the highest score. So a reviewer who clears
-- the match that made the leak does not have to review another one.
SELECT * EXCLUDE (best, answer_overlap, is_by_score, is_contaminated, is_no_answer,
                 needs_review),
       answer_overlap, answer_in_words(answer_overlap) AS answer_found,
       best.kind AS kind, best.score AS score, best.text_id AS text_id, best.verdict AS verdict,
       is_by_score, is_contaminated, is_no_answer AND NOT is_contaminated AS is_no_answer,
       needs_review AND NOT (is_contaminated OR is_no_answer) AS needs_review
FROM (
    SELECT source, pack, shard_name, row, any_value(doc_id) AS doc_id,
           benchmark, any_value(config) AS config, split, instance_index,
           list_sort(list_distinct(list(detector) FILTER (is_contaminated))) AS detectors,
           list_sort(list_distinct(list(detector) FILTER (is_by_score))) AS detectors_by_score,
           count(*) AS n_matches,
           -- A choice that is known to be wrong does not reveal the answer. Some of the texts that
           -- `exact` searches for contain the answer.
           CASE WHEN bool_or(is_contaminated) THEN
                coalesce(max(CASE WHEN searched_text IN ('question and answer', 'continuation') THEN 1
                                  WHEN is_correct IS DISTINCT FROM false THEN answer_overlap END)
                         FILTER (is_contaminated), 0) END AS answer_overlap,
           arg_max({kind: kind, score: score, text_id: text_id, verdict: verdict},
                   (is_contaminated, is_no_answer, needs_review, is_by_score, score, text_id)) AS best,
           bool_or(is_by_score) AS is_by_score,
           bool_or(is_contaminated) AS is_contaminated,
           bool_or(is_no_answer) AS is_no_answer,
           bool_or(needs_review) AS needs_review
    FROM matches
    GROUP BY source, pack, shard_name, row, benchmark, split, instance_index
)
ORDER BY source, shard_name, row, benchmark, split, instance_index

-- name: documents
SELECT source, pack, shard_name, row, any_value(doc_id) AS doc_id,
       count(*) FILTER (is_contaminated) AS n_leaked_items,
       count(DISTINCT benchmark) FILTER (is_contaminated) AS n_benchmarks,
       count(*) FILTER (is_no_answer) AS n_no_answer_items,
       count(*) FILTER (needs_review) AS n_review_items,
       count(*) AS n_found_items,
       max(score) AS best_score,
       bool_or(is_contaminated) AS is_contaminated,
       bool_or(is_no_answer) AND NOT bool_or(is_contaminated) AS is_no_answer,
       bool_or(needs_review) AND NOT bool_or(is_contaminated OR is_no_answer) AS needs_review
FROM findings
GROUP BY source, pack, shard_name, row
ORDER BY source, shard_name, row

-- name: item_detectors
SELECT benchmark, split, instance_index, detector,
       count(DISTINCT (source, shard_name, row)) FILTER (is_contaminated) AS n_documents,
       max(score) FILTER (is_contaminated) AS best_score,
       count(DISTINCT (source, shard_name, row)) FILTER (is_no_answer)
           AS n_no_answer_documents,
       count(DISTINCT (source, shard_name, row)) FILTER (needs_review) AS n_review_documents,
       max(score) AS best_found,
       max(holds_to) AS holds_to
FROM matches
GROUP BY benchmark, split, instance_index, detector
ORDER BY benchmark, split, instance_index, detector
