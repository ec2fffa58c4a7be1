-- Tables derived from the matches, stored because most queries use them. Run once, by database.py.

-- Describe how much of an answer was found. database.py defines answer_threshold().
CREATE MACRO answer_in_words(overlap) AS CASE
    WHEN overlap >= answer_threshold() THEN 'with its answer'
    WHEN overlap > 0 THEN 'with part of its answer'
    WHEN overlap IS NOT NULL THEN 'without its answer' END;

-- The decisive match (`best`) of a document and an item: leaks come first, then no-answer matches,
-- then those to review, then matches that reach a threshold, then the highest score. So a reviewer who clears
-- the match that made the leak does not have to review another one.
CREATE TABLE findings AS
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
ORDER BY source, shard_name, row, benchmark, split, instance_index;
COMMENT ON TABLE findings IS
    'One row per finding (a document and an item that was found in it): its kind, its class (leak, no answer, review), and the detectors or the verdict that decided it';
COMMENT ON COLUMN findings.source IS 'name of the source';
COMMENT ON COLUMN findings.pack IS 'pack of the shard: shards that are scanned together';
COMMENT ON COLUMN findings.shard_name IS 'name of the shard within its source';
COMMENT ON COLUMN findings.row IS 'row of the document in its shard';
COMMENT ON COLUMN findings.doc_id IS 'id of the document, if it has one';
COMMENT ON COLUMN findings.benchmark IS 'name of the benchmark';
COMMENT ON COLUMN findings.config IS 'subset of the benchmark';
COMMENT ON COLUMN findings.split IS 'split of the item';
COMMENT ON COLUMN findings.instance_index IS 'row of the item within its split';
COMMENT ON COLUMN findings.n_matches IS 'number of rows in `matches`';
COMMENT ON COLUMN findings.detectors IS 'detectors with a match that is a leak, by score or by verdict';
COMMENT ON COLUMN findings.detectors_by_score IS
    'detectors whose score reaches the threshold, whatever the verdict';
COMMENT ON COLUMN findings.kind IS
    'how the document relates to the item by the decisive match: verbatim, edited, variant, ...; null: its detector gives only a score';
COMMENT ON COLUMN findings.score IS 'score of the decisive match';
COMMENT ON COLUMN findings.answer_overlap IS
    'for a leak, the largest share of the answer that was found in the document; 0 if none of it was found; null if it is not a leak';
COMMENT ON COLUMN findings.answer_found IS
    'for a leak: with its answer (answer_overlap >= 0.5), with part of its answer, or without its answer; null if it is not a leak';
COMMENT ON COLUMN findings.text_id IS 'matched text of the decisive match';
COMMENT ON COLUMN findings.verdict IS 'verdict of a reviewer on that matched text; null if there is none';
COMMENT ON COLUMN findings.is_by_score IS 'whether a score reaches its threshold';
COMMENT ON COLUMN findings.is_contaminated IS 'whether it is a leak, by score or by verdict';
COMMENT ON COLUMN findings.is_no_answer IS
    'whether it is not a leak, but the document contains the question, verbatim or nearly so, without its answer';
COMMENT ON COLUMN findings.needs_review IS
    'whether it is neither a leak nor no answer, but similar text that nobody has confirmed or cleared';

CREATE TABLE documents AS
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
ORDER BY source, shard_name, row;
COMMENT ON TABLE documents IS
    'One row per document in which an item was found: number of items, and number of leaks';
COMMENT ON COLUMN documents.source IS 'name of the source';
COMMENT ON COLUMN documents.pack IS 'pack of the shard: shards that are scanned together';
COMMENT ON COLUMN documents.shard_name IS 'name of the shard within its source';
COMMENT ON COLUMN documents.row IS 'row of the document in its shard';
COMMENT ON COLUMN documents.doc_id IS 'id of the document, if it has one';
COMMENT ON COLUMN documents.n_leaked_items IS 'number of items that leaked into the document';
COMMENT ON COLUMN documents.n_benchmarks IS 'number of benchmarks that these items come from';
COMMENT ON COLUMN documents.n_no_answer_items IS
    'number of items whose question the document contains without the answer';
COMMENT ON COLUMN documents.n_review_items IS 'number of items that need review in the document';
COMMENT ON COLUMN documents.n_found_items IS
    'number of items with a match, down to the lowest recorded score';
COMMENT ON COLUMN documents.best_score IS 'highest score of the decisive matches';
COMMENT ON COLUMN documents.is_contaminated IS 'whether any item leaked into the document';
COMMENT ON COLUMN documents.is_no_answer IS
    'whether no item leaked, but the document contains a question without its answer; such a document is not clean';
COMMENT ON COLUMN documents.needs_review IS
    'whether it is neither of these, but needs review; such a document is not clean';

CREATE TABLE item_detectors AS
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
ORDER BY benchmark, split, instance_index, detector;
COMMENT ON TABLE item_detectors IS
    'One row per item and detector with a match: number of documents in which the item leaked, and the highest threshold at which it would leak';
COMMENT ON COLUMN item_detectors.benchmark IS 'name of the benchmark';
COMMENT ON COLUMN item_detectors.split IS 'split of the item';
COMMENT ON COLUMN item_detectors.instance_index IS 'row of the item within its split';
COMMENT ON COLUMN item_detectors.detector IS 'name of the detector';
COMMENT ON COLUMN item_detectors.n_documents IS
    'number of documents in which the item is a leak by this detector';
COMMENT ON COLUMN item_detectors.best_score IS
    'highest score of these leaks; null if there is none';
COMMENT ON COLUMN item_detectors.n_no_answer_documents IS
    'number of documents in which the detector found the question without the answer';
COMMENT ON COLUMN item_detectors.n_review_documents IS
    'number of documents in which the item needs review';
COMMENT ON COLUMN item_detectors.best_found IS 'highest score of all matches of the detector';
COMMENT ON COLUMN item_detectors.holds_to IS
    'highest threshold of the sweep at which the item would leak, by score alone';
