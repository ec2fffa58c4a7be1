-- The rows of tables derived from others, stored because most queries use them.

-- name: findings
-- The decisive match (`best`) of a document and an item: leaks come first, then no-answer matches,
-- then those to review, then matches that reach a threshold, then the highest score. So a reviewer who clears
-- the match that made the leak does not have to review another one.
SELECT found.* EXCLUDE (best, answer_overlap, is_by_score, is_contaminated, is_no_answer,
                        needs_review),
       CASE WHEN has_answer IS DISTINCT FROM false THEN answer_overlap END AS answer_overlap,
       CASE WHEN is_contaminated AND NOT has_answer THEN 'has no answer'
            ELSE answer_in_words(answer_overlap) END AS answer_found,
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
) found
LEFT JOIN (SELECT benchmark, split, instance_index, has_answer FROM items)
    USING (benchmark, split, instance_index)
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

-- name: by_benchmark
-- Rates are of the items that a detector can find: of the others nothing is known. A report imported
-- from another program lists only what leaked. Then the number of items is unknown, and there are no
-- shares.
SELECT benchmark, split, CASE WHEN is_known THEN n END AS n_items,
       n_leaked,
       CASE WHEN is_known THEN n_seen END AS n_checkable,
       CASE WHEN is_known THEN n_leaked_of_seen END AS n_leaked_checkable,
       n_leaked_checkable / nullif(n_checkable, 0) AS leak_rate,
       wilson_low(n_leaked_checkable, n_checkable) AS low,
       wilson_high(n_leaked_checkable, n_checkable) AS high,
       n_items - n_checkable - (n_leaked - n_leaked_checkable) AS n_unknown,
       n_leaked / n_items AS at_least,
       (n_leaked + n_unknown) / n_items AS at_most,
       CASE WHEN is_known THEN n_unseen END AS n_not_checkable,
       n_leaks,
       n_no_answer,
       CASE WHEN n_checkable > 0 THEN n_no_answer / n_items END AS no_answer_rate,
       n_review
FROM (
    SELECT s.benchmark, s.split, count(*) AS n,
           count(*) FILTER (s.status = 'leaked') AS n_leaked,
           count(*) FILTER (s.is_checkable) AS n_seen,
           count(*) FILTER (s.status = 'leaked' AND s.is_checkable) AS n_leaked_of_seen,
           count(*) FILTER (s.status = 'no answer') AS n_no_answer,
           count(*) FILTER (s.status = 'review') AS n_review,
           count(*) FILTER (s.status = 'cannot be checked') AS n_unseen,
           sum(s.n_documents)::BIGINT AS n_leaks,
           coalesce(any_value(b.n_items IS NOT NULL), true) AS is_known
    FROM item_status s LEFT JOIN benchmarks b USING (benchmark)
    GROUP BY s.benchmark, s.split
)
ORDER BY benchmark, split
