-- What follows from the matches, kept because most questions begin with it. Run once, by database.py.

-- The match that speaks for a document and an item: one that counts before one that would by its
-- score alone, then the best. Whoever clears the one that made a leak is not asked about another.
CREATE TABLE decisions AS
SELECT * EXCLUDE (best, is_by_score, is_contaminated),
       best.score AS score, best.pair AS pair, best.verdict AS verdict,
       is_by_score, is_contaminated
FROM (
    SELECT source, pack, shard_name, row, any_value(doc_id) AS doc_id,
           benchmark, any_value(config) AS config, split, instance_index,
           list_sort(list_distinct(list(detector) FILTER (is_contaminated))) AS rules,
           count(*) AS n_matches,
           -- A wrong choice does not give the answer away; where none is known to be right, any may.
           coalesce(bool_or(coalesce(answer_overlap, 0) > 0 AND is_correct IS DISTINCT FROM false
                            OR coalesce(looked_for <> 'question', false))
                    FILTER (is_contaminated), false) AS is_answer_there,
           arg_max({score: score, pair: pair, verdict: verdict},
                   (is_contaminated, is_by_score, score, pair)) AS best,
           bool_or(is_by_score) AS is_by_score,
           bool_or(is_contaminated) AS is_contaminated
    FROM matches
    GROUP BY source, pack, shard_name, row, benchmark, split, instance_index
)
ORDER BY source, shard_name, row, benchmark, split, instance_index;
COMMENT ON TABLE decisions IS
    'One row per document and item that was found in it: whether it counts as a leak, by which rules, or by whom';
COMMENT ON COLUMN decisions.rules IS 'The rules by which it counts as a leak';
COMMENT ON COLUMN decisions.score IS 'That of the match that speaks for it';
COMMENT ON COLUMN decisions.is_answer_there IS
    'Whether anything of the answer stands there, too (a leak without it gives only the question away)';
COMMENT ON COLUMN decisions.pair IS 'What was found there, by the match that speaks for it';
COMMENT ON COLUMN decisions.verdict IS 'What a person said of that pair; null: nobody did';
COMMENT ON COLUMN decisions.is_by_score IS 'Whether a score alone makes it a leak';
COMMENT ON COLUMN decisions.is_contaminated IS
    'Whether it counts as a leak: by its score, or by what a person said';

CREATE TABLE documents AS
SELECT source, pack, shard_name, row, any_value(doc_id) AS doc_id,
       count(*) FILTER (is_contaminated) AS n_leaked_items,
       count(DISTINCT benchmark) FILTER (is_contaminated) AS n_benchmarks,
       count(*) AS n_found_items,
       max(score) AS best_score,
       bool_or(is_contaminated) AS is_contaminated
FROM decisions
GROUP BY source, pack, shard_name, row
ORDER BY source, shard_name, row;
COMMENT ON TABLE documents IS
    'One row per document in which anything was found: how many items, and how many of them count as leaks';

CREATE TABLE item_rules AS
SELECT benchmark, split, instance_index, detector AS rule,
       count(DISTINCT (source, shard_name, row)) FILTER (is_contaminated) AS n_documents,
       max(score) FILTER (is_contaminated) AS best_score,
       max(score) AS best_found,
       max(holds_to) AS holds_to
FROM matches
GROUP BY benchmark, split, instance_index, detector
ORDER BY benchmark, split, instance_index, detector;
COMMENT ON TABLE item_rules IS
    'One row per item and rule that found anything of it: in how many documents it leaked, and up to which threshold it would';
COMMENT ON COLUMN item_rules.holds_to IS
    'The highest threshold of the sweep at which the item would still count as leaked, by score alone';
