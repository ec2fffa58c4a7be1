-- What follows from the matches, kept because most questions begin with it. Run once, by database.py.

-- What was found of an answer, in words. database.py defines answer_threshold().
CREATE MACRO answer_in_words(overlap) AS CASE
    WHEN overlap >= answer_threshold() THEN 'with its answer'
    WHEN overlap > 0 THEN 'with part of its answer'
    WHEN overlap IS NOT NULL THEN 'without its answer' END;

-- The match that speaks for a document and an item: one that counts before one that would by its
-- score alone, then the best. Whoever clears the one that made a leak is not asked about another.
CREATE TABLE decisions AS
SELECT * EXCLUDE (best, answer_overlap, is_by_score, is_contaminated, is_question_only),
       answer_overlap, answer_in_words(answer_overlap) AS answer_found,
       best.score AS score, best.pair AS pair, best.verdict AS verdict,
       is_by_score, is_contaminated, is_question_only AND NOT is_contaminated AS is_question_only
FROM (
    SELECT source, pack, shard_name, row, any_value(doc_id) AS doc_id,
           benchmark, any_value(config) AS config, split, instance_index,
           list_sort(list_distinct(list(detector) FILTER (is_contaminated))) AS detectors,
           list_sort(list_distinct(list(detector) FILTER (is_by_score))) AS detectors_by_score,
           count(*) AS n_matches,
           -- A wrong choice does not give the answer away; where none is known to be right, any may.
           -- The other texts that `exact` looks for have the answer in them.
           CASE WHEN bool_or(is_contaminated) THEN
                coalesce(max(CASE WHEN looked_for <> 'question' THEN 1
                                  WHEN is_correct IS DISTINCT FROM false THEN answer_overlap END)
                         FILTER (is_contaminated), 0) END AS answer_overlap,
           arg_max({score: score, pair: pair, verdict: verdict},
                   (is_contaminated, is_question_only, is_by_score, score, pair)) AS best,
           bool_or(is_by_score) AS is_by_score,
           bool_or(is_contaminated) AS is_contaminated,
           bool_or(is_question_only) AS is_question_only
    FROM matches
    GROUP BY source, pack, shard_name, row, benchmark, split, instance_index
)
ORDER BY source, shard_name, row, benchmark, split, instance_index;
COMMENT ON TABLE decisions IS
    'One row per document and item that was found in it: whether it counts as a leak, by which detectors, or by whom; or whether it is question-only';
COMMENT ON COLUMN decisions.source IS 'name of the source';
COMMENT ON COLUMN decisions.pack IS 'the shards that are scanned together';
COMMENT ON COLUMN decisions.shard_name IS 'name of the shard within its source';
COMMENT ON COLUMN decisions.row IS 'row of the document in the shard';
COMMENT ON COLUMN decisions.doc_id IS 'its own id, if it has one';
COMMENT ON COLUMN decisions.benchmark IS 'name of the benchmark';
COMMENT ON COLUMN decisions.config IS 'part of the benchmark';
COMMENT ON COLUMN decisions.split IS 'split of the item';
COMMENT ON COLUMN decisions.instance_index IS 'row of the item within its split';
COMMENT ON COLUMN decisions.n_matches IS 'rows of `matches`';
COMMENT ON COLUMN decisions.detectors IS 'the detectors by which it counts as a leak';
COMMENT ON COLUMN decisions.detectors_by_score IS
    'the detectors whose score alone makes it a leak, whatever people said';
COMMENT ON COLUMN decisions.score IS 'that of the match that speaks for it';
COMMENT ON COLUMN decisions.answer_overlap IS
    'of a leak: the largest share of the answer that was found there; 0: nothing; null: no leak';
COMMENT ON COLUMN decisions.answer_found IS
    'of a leak: with its answer (answer_overlap >= 0.5), with part of its answer, or without its answer; null: no leak';
COMMENT ON COLUMN decisions.pair IS 'what was found there, by the match that speaks for it';
COMMENT ON COLUMN decisions.verdict IS 'what a person said of that pair; null: nobody did';
COMMENT ON COLUMN decisions.is_by_score IS 'whether a score alone makes it a leak';
COMMENT ON COLUMN decisions.is_contaminated IS
    'whether it counts as a leak: by its score, or by what a person said';
COMMENT ON COLUMN decisions.is_question_only IS
    'no leak, but the question stands there verbatim or nearly so, without its answer';

CREATE TABLE documents AS
SELECT source, pack, shard_name, row, any_value(doc_id) AS doc_id,
       count(*) FILTER (is_contaminated) AS n_leaked_items,
       count(DISTINCT benchmark) FILTER (is_contaminated) AS n_benchmarks,
       count(*) FILTER (is_question_only) AS n_question_only_items,
       count(*) AS n_found_items,
       max(score) AS best_score,
       bool_or(is_contaminated) AS is_contaminated,
       bool_or(is_question_only) AND NOT bool_or(is_contaminated) AS is_question_only
FROM decisions
GROUP BY source, pack, shard_name, row
ORDER BY source, shard_name, row;
COMMENT ON TABLE documents IS
    'One row per document in which anything was found: how many items, and how many of them count as leaks';
COMMENT ON COLUMN documents.source IS 'name of the source';
COMMENT ON COLUMN documents.pack IS 'the shards that are scanned together';
COMMENT ON COLUMN documents.shard_name IS 'name of the shard within its source';
COMMENT ON COLUMN documents.row IS 'row of the document in the shard';
COMMENT ON COLUMN documents.doc_id IS 'its own id, if it has one';
COMMENT ON COLUMN documents.n_leaked_items IS 'items that count as leaks here';
COMMENT ON COLUMN documents.n_benchmarks IS 'benchmarks that these are of';
COMMENT ON COLUMN documents.n_question_only_items IS
    'items of which the question stands here without its answer';
COMMENT ON COLUMN documents.n_found_items IS 'items of which anything was found, down to the floor';
COMMENT ON COLUMN documents.best_score IS 'of what speaks for these items, the best';
COMMENT ON COLUMN documents.is_contaminated IS 'whether any of them counts as a leak';
COMMENT ON COLUMN documents.is_question_only IS
    'no leak, but the question of an item stands here without its answer; such a document is not clean';

CREATE TABLE item_detectors AS
SELECT benchmark, split, instance_index, detector,
       count(DISTINCT (source, shard_name, row)) FILTER (is_contaminated) AS n_documents,
       max(score) FILTER (is_contaminated) AS best_score,
       count(DISTINCT (source, shard_name, row)) FILTER (is_question_only)
           AS n_question_only_documents,
       max(score) AS best_found,
       max(holds_to) AS holds_to
FROM matches
GROUP BY benchmark, split, instance_index, detector
ORDER BY benchmark, split, instance_index, detector;
COMMENT ON TABLE item_detectors IS
    'One row per item and detector that found anything of it: in how many documents it leaked, and up to which threshold it would';
COMMENT ON COLUMN item_detectors.benchmark IS 'name of the benchmark';
COMMENT ON COLUMN item_detectors.split IS 'split of the item';
COMMENT ON COLUMN item_detectors.instance_index IS 'row of the item within its split';
COMMENT ON COLUMN item_detectors.detector IS 'the detector that found it';
COMMENT ON COLUMN item_detectors.n_documents IS 'documents in which it counts as a leak by this detector';
COMMENT ON COLUMN item_detectors.best_score IS 'the best score among these; null: there is none';
COMMENT ON COLUMN item_detectors.n_question_only_documents IS
    'documents in which the detector found its question without its answer';
COMMENT ON COLUMN item_detectors.best_found IS 'the best score of all that the detector found of it';
COMMENT ON COLUMN item_detectors.holds_to IS
    'the highest threshold of the sweep at which the item would still count as leaked, by score alone';
