-- The report's views. Run once, into a new database, by database.py.

-- Describe how much of an answer was found. database.py defines answer_threshold().
CREATE MACRO answer_in_words(overlap) AS CASE
    WHEN overlap >= answer_threshold() THEN 'with its answer'
    WHEN overlap > 0 THEN 'with part of its answer'
    WHEN overlap IS NOT NULL THEN 'without its answer' END;

-- The class of an item, by the numbers of documents in which it is a leak, has no answer, or needs review.
CREATE MACRO status_of(n_leak, n_no_answer, n_review, is_visible, n_shards_not_scanned) AS CASE
    WHEN n_leak > 0 THEN 'leaked'
    WHEN n_no_answer > 0 THEN 'no answer'
    WHEN n_review > 0 THEN 'review'
    WHEN NOT is_visible THEN 'cannot be checked'
    WHEN n_shards_not_scanned > 0 THEN 'not fully scanned'
    ELSE 'clean' END;

-- Wilson's 95 % score interval for k of n; null if n is unknown.
CREATE MACRO wilson_low(k, n) AS CASE WHEN n > 0 AND k IS NOT NULL THEN
    greatest(0, (k + 1.9207 - 1.96 * sqrt(k * (n - k) / n + 0.9604)) / (n + 3.8415)) END;
CREATE MACRO wilson_high(k, n) AS CASE WHEN n > 0 AND k IS NOT NULL THEN
    least(1, (k + 1.9207 + 1.96 * sqrt(k * (n - k) / n + 0.9604)) / (n + 3.8415)) END;

CREATE VIEW item_status AS
SELECT i.benchmark, i.split, i.instance_index, i.config, i.question,
       status_of(f.n_documents, f.n_no_answer_documents, f.n_review_documents, i.is_indexed,
                 b.n_shards_not_scanned) AS status,
       i.is_indexed AS is_checkable,
       coalesce(f.n_documents, 0) AS n_documents,
       f.best_score,
       f.found_by,
       coalesce(f.n_documents = 0 AND f.n_no_answer_documents > 0, false) AS is_no_answer,
       coalesce(f.n_no_answer_documents, 0) AS n_no_answer_documents,
       coalesce(f.n_review_documents, 0) AS n_review_documents,
       CASE WHEN i.has_answer THEN f.answer_overlap END AS answer_overlap,
       CASE WHEN f.n_documents IS NULL OR f.n_documents = 0 THEN NULL
            WHEN NOT i.has_answer THEN 'has no answer'
            ELSE answer_in_words(f.answer_overlap) END AS what_leaked
FROM items i
LEFT JOIN benchmarks b USING (benchmark)
LEFT JOIN (
    SELECT benchmark, split, instance_index,
           count(*) FILTER (is_contaminated) AS n_documents,
           count(*) FILTER (is_no_answer) AS n_no_answer_documents,
           count(*) FILTER (needs_review) AS n_review_documents,
           max(score) FILTER (is_contaminated) AS best_score,
           array_to_string(list_sort(list_distinct(flatten(
               list(detectors) FILTER (is_contaminated)))), ', ') AS found_by,
           max(answer_overlap) FILTER (is_contaminated) AS answer_overlap
    FROM findings WHERE is_contaminated OR is_no_answer OR needs_review
    GROUP BY benchmark, split, instance_index
) f USING (benchmark, split, instance_index);
COMMENT ON VIEW item_status IS
    'Every benchmark item with its class: leaked (by any detector), no answer (not leaked, but its question was found without the answer), review (neither, but similar text was found that nobody has reviewed), clean, cannot be checked (no detector can find it), or not fully scanned (no match, but shards are missing)';
COMMENT ON COLUMN item_status.is_checkable IS
    'whether a chosen detector can find it, no matter which of its correct answers a document contains';
COMMENT ON COLUMN item_status.n_documents IS 'number of documents in which it leaked';
COMMENT ON COLUMN item_status.is_no_answer IS
    'whether it did not leak, but a document contains its question, verbatim or nearly so, without the answer';
COMMENT ON COLUMN item_status.n_no_answer_documents IS
    'number of documents with its question but not its answer; also counted for leaked items';
COMMENT ON COLUMN item_status.n_review_documents IS
    'number of documents in which it needs review; also counted for other classes';
COMMENT ON COLUMN item_status.answer_overlap IS
    'for a leaked item, the largest share of its answer found in a document in which it leaked; null if it has no answer';
COMMENT ON COLUMN item_status.what_leaked IS
    'for a leaked item: with its answer (answer_overlap >= 0.5), with part of its answer, without its answer, or has no answer';

CREATE VIEW rates_of_report AS
SELECT r.made_at, r.n_shards_not_scanned = 0 AS is_complete, r.scan_fingerprint,
       md5(r.policy) AS policy, r.verdicts, b.benchmark, b.version, s.n_checkable,
       s.n_leaked_checkable
FROM runs r, benchmarks b JOIN (
    SELECT benchmark, sum(n_checkable)::BIGINT AS n_checkable,
           sum(n_leaked_checkable)::BIGINT AS n_leaked_checkable
    FROM by_benchmark GROUP BY benchmark
) s USING (benchmark)
WHERE s.n_checkable > 0
ORDER BY b.benchmark;
COMMENT ON VIEW rates_of_report IS
    'Leak rates of this report by benchmark, over all splits, and its settings; later reports keep them in earlier_rates';

CREATE VIEW rate_changes AS
SELECT now.benchmark, now.n_leaked_checkable / now.n_checkable AS leak_rate,
       before.n_leaked_checkable / before.n_checkable AS rate_before,
       before.made_at AS made_before, now.n_checkable,
       now.scan_fingerprint IS DISTINCT FROM before.scan_fingerprint AS is_other_scan,
       now.policy IS DISTINCT FROM before.policy AS is_other_policy,
       now.verdicts IS DISTINCT FROM before.verdicts AS is_other_verdicts,
       now.version IS DISTINCT FROM before.version AS is_other_version,
       NOT (now.is_complete AND before.is_complete) AS is_incomplete,
       NOT (is_incomplete OR is_other_scan OR is_other_policy OR is_other_version) AS is_comparable
FROM rates_of_report now JOIN earlier_rates before USING (benchmark)
WHERE before.report = (SELECT max(report) FROM earlier_rates)
ORDER BY now.benchmark;
COMMENT ON VIEW rate_changes IS
    'Per benchmark that is also in the previous report: its leak rate in both reports, and what else changed; rates show a change in the data only if they are comparable';

CREATE VIEW flow AS
SELECT s.benchmark, s.split, count(*) AS n_items,
       count(*) FILTER (status = 'clean') AS n_clean,
       count(*) FILTER (status = 'not fully scanned') AS n_not_fully_scanned,
       count(*) FILTER (status = 'cannot be checked') AS n_not_checkable,
       count(*) FILTER (status = 'no answer') AS n_no_answer,
       count(*) FILTER (status = 'review') AS n_review,
       count(*) FILTER (what_leaked = 'with its answer') AS n_with_answer,
       count(*) FILTER (what_leaked = 'with part of its answer') AS n_with_part_of_answer,
       count(*) FILTER (what_leaked = 'without its answer') AS n_without_answer,
       count(*) FILTER (what_leaked = 'has no answer') AS n_leaked_without_having_one
FROM item_status s
GROUP BY s.benchmark, s.split
ORDER BY s.benchmark, s.split;
COMMENT ON VIEW flow IS
    'Per benchmark and split: number of items by class, and of leaked items by how much of the answer was found';
COMMENT ON COLUMN flow.n_items IS 'number of items in this report';
COMMENT ON COLUMN flow.n_no_answer IS 'not counted as leaked';
COMMENT ON COLUMN flow.n_review IS 'not counted as leaked';
COMMENT ON COLUMN flow.n_with_answer IS
    'leaked items with at least half of the answer in a document in which they leaked';
COMMENT ON COLUMN flow.n_with_part_of_answer IS
    'leaked items with some of the answer, but less than half';
COMMENT ON COLUMN flow.n_without_answer IS 'leaked items with no part of the answer found';
COMMENT ON COLUMN flow.n_leaked_without_having_one IS 'leaked items that have no answer';

CREATE VIEW top_items AS
SELECT benchmark, split, instance_index, n_documents, best_score, found_by, what_leaked, question
FROM item_status
WHERE status = 'leaked'
ORDER BY n_documents DESC, best_score DESC, benchmark, split, instance_index
LIMIT 1000;
COMMENT ON VIEW top_items IS 'The 1,000 leaked items that occur in the most documents';

CREATE VIEW text_documents AS
SELECT text_id, source, shard_name, row, any_value(doc_id) AS doc_id,
       string_agg(DISTINCT detector, ', ' ORDER BY detector) AS detectors,
       max(score) AS score,
       bool_or(is_contaminated) AS is_contaminated,
       bool_or(is_no_answer) AND NOT bool_or(is_contaminated) AS is_no_answer,
       bool_or(needs_review) AND NOT bool_or(is_contaminated OR is_no_answer) AS needs_review
FROM matches
GROUP BY text_id, source, shard_name, row
ORDER BY text_id, source, shard_name, row;
COMMENT ON VIEW text_documents IS
    'Per matched text: every document that contains it, with its position and id';

CREATE VIEW by_source AS
SELECT s.source, s.n_documents, s.n_unreadable,
       coalesce(d.n_contaminated_documents, 0) AS n_contaminated_documents,
       coalesce(i.n_leaked_items, 0) AS n_leaked_items,
       coalesce(d.n_contaminated_documents, 0) / nullif(s.n_documents, 0)
           AS contaminated_share,
       wilson_low(coalesce(d.n_contaminated_documents, 0), s.n_documents) AS low,
       wilson_high(coalesce(d.n_contaminated_documents, 0), s.n_documents) AS high,
       coalesce(d.n_no_answer_documents, 0) AS n_no_answer_documents,
       coalesce(d.n_no_answer_documents, 0) / nullif(s.n_documents, 0)
           AS no_answer_share,
       coalesce(d.n_review_documents, 0) AS n_review_documents
FROM (
    SELECT source, sum(n_documents)::BIGINT AS n_documents,
           sum(n_unreadable)::BIGINT AS n_unreadable
    FROM shards GROUP BY source
) s
LEFT JOIN (
    SELECT source, count(*) FILTER (is_contaminated) AS n_contaminated_documents,
           count(*) FILTER (is_no_answer) AS n_no_answer_documents,
           count(*) FILTER (needs_review) AS n_review_documents
    FROM documents GROUP BY source
) d USING (source)
LEFT JOIN (
    SELECT source, count(DISTINCT (benchmark, split, instance_index)) AS n_leaked_items
    FROM findings WHERE is_contaminated
    GROUP BY source
) i USING (source)
ORDER BY s.source;
COMMENT ON VIEW by_source IS
    'Per source: number of documents; number and share of documents with a leak, with a 95 % interval; number of items that leaked; number and share of no-answer documents; number of other documents that need review';
COMMENT ON COLUMN by_source.n_no_answer_documents IS
    'number of documents that contain no leak, but a question without its answer';

CREATE VIEW by_shard AS
SELECT s.source, s.pack, s.shard_name, s.n_documents, s.n_unreadable,
       coalesce(f.n_contaminated_documents, 0) AS n_contaminated_documents,
       coalesce(f.n_leaks, 0) AS n_leaks,
       coalesce(f.n_contaminated_documents, 0) / nullif(s.n_documents, 0)
           AS contaminated_share,
       coalesce(f.n_no_answer_documents, 0) AS n_no_answer_documents
FROM shards s
LEFT JOIN (
    SELECT source, shard_name, count(*) FILTER (is_contaminated) AS n_contaminated_documents,
           sum(n_leaked_items)::BIGINT AS n_leaks,
           count(*) FILTER (is_no_answer) AS n_no_answer_documents
    FROM documents
    GROUP BY source, shard_name
) f USING (source, shard_name)
ORDER BY s.source, s.shard_name;
COMMENT ON VIEW by_shard IS
    'Per shard: number of documents, of documents with a leak, and of no-answer documents; n_leaks counts findings that are leaks';

CREATE VIEW by_benchmark_and_source AS
SELECT benchmark, source,
       count(DISTINCT (split, instance_index)) FILTER (is_contaminated) AS n_leaked,
       count(DISTINCT (shard_name, row)) FILTER (is_contaminated) AS n_documents,
       count(DISTINCT (split, instance_index)) FILTER (is_no_answer) AS n_no_answer,
       count(DISTINCT (shard_name, row)) FILTER (is_no_answer) AS n_no_answer_documents
FROM findings
WHERE is_contaminated OR is_no_answer
GROUP BY benchmark, source
ORDER BY benchmark, source;
COMMENT ON VIEW by_benchmark_and_source IS
    'Per benchmark and source: number of leaked items and of documents with a leak; number of no-answer items and documents';
COMMENT ON COLUMN by_benchmark_and_source.n_no_answer IS
    'number of no-answer items; they may also have leaked in other documents';

-- 1e-9 as in policy.py: a score of 0.7 + 0.1 equals 0.8 and belongs to the bin from 0.8 on.
CREATE VIEW score_histogram AS
SELECT benchmark, detector, least(floor(score * 50 + 1e-9), 49)::INTEGER AS bin,
       least(floor(score * 50 + 1e-9), 49) / 50 AS score_from,
       count(*) AS n_matches,
       count(*) FILTER (is_by_score) AS n_by_score,
       count(*) FILTER (is_contaminated) AS n_contaminated,
       count(*) FILTER (is_no_answer) AS n_no_answer,
       count(*) FILTER (needs_review) AS n_review
FROM matches
GROUP BY ALL
ORDER BY benchmark, detector, bin;
COMMENT ON VIEW score_histogram IS
    'Per benchmark and detector: number of matches by score in steps of 0.02, and how many of them are leaks, lack the answer, or need review';

-- With every benchmark at every step, so that sums over benchmarks are correct.
CREATE VIEW threshold_sweep AS
WITH ending AS (
    SELECT benchmark, detector, holds_to, count(*) AS n
    FROM item_detectors WHERE holds_to IS NOT NULL
    GROUP BY benchmark, detector, holds_to
), steps AS (
    SELECT DISTINCT detector, holds_to AS threshold FROM ending
    UNION
    SELECT detector, unnest(range((lowest * 100)::INTEGER, 101)) / 100
    FROM (SELECT detector, min(holds_to) AS lowest FROM ending GROUP BY detector)
    WHERE lowest <= 1
)
SELECT b.benchmark, s.detector, s.threshold,
       coalesce(sum(e.n) FILTER (e.holds_to >= s.threshold), 0)::BIGINT AS n_leaked
FROM steps s
JOIN (SELECT DISTINCT benchmark, detector FROM item_detectors) b USING (detector)
LEFT JOIN ending e USING (benchmark, detector)
GROUP BY b.benchmark, s.detector, s.threshold
ORDER BY b.benchmark, s.detector, s.threshold;
COMMENT ON VIEW threshold_sweep IS
    'Per benchmark, detector and threshold (for ngram_any, a length): number of items that would leak, by score alone';

CREATE VIEW agreement AS
WITH leaked AS (
    SELECT benchmark, split, instance_index, detector FROM item_detectors WHERE n_documents > 0
), of_detector AS (
    SELECT benchmark, detector, count(*) AS n FROM leaked GROUP BY benchmark, detector
), of_both AS (
    SELECT benchmark, a.detector, b.detector AS other, count(*) AS n
    FROM leaked a JOIN leaked b USING (benchmark, split, instance_index)
    WHERE a.detector < b.detector
    GROUP BY benchmark, a.detector, b.detector
)
SELECT x.benchmark, x.detector, y.detector AS other,
       coalesce(p.n, 0) AS n_both,
       x.n - coalesce(p.n, 0) AS n_detector_only,
       y.n - coalesce(p.n, 0) AS n_other_only,
       coalesce(p.n, 0) / (x.n + y.n - coalesce(p.n, 0)) AS jaccard
FROM of_detector x
JOIN of_detector y ON x.benchmark = y.benchmark AND x.detector < y.detector
LEFT JOIN of_both p ON (p.benchmark, p.detector, p.other) = (x.benchmark, x.detector, y.detector)
ORDER BY x.benchmark, x.detector, y.detector;
COMMENT ON VIEW agreement IS
    'Per benchmark and two detectors: number of items that both call leaked, number that only one calls leaked, and the Jaccard index';

CREATE VIEW by_origin AS
SELECT source, field, value, split, benchmark, is_held_out, sum(n_rows)::BIGINT AS n_rows,
       count(*) AS n_shards, min(shard_name) AS shard,
       is_held_out AND benchmark IS NOT NULL AS is_evidence
FROM row_origins GROUP BY source, field, value, split, benchmark, is_held_out
ORDER BY is_evidence DESC, is_held_out DESC, benchmark IS NULL, n_rows DESC, source, field,
         value NULLS LAST, split NULLS LAST;
COMMENT ON VIEW by_origin IS
    'Per source, field, value and split: rows that name the dataset they come from; is_evidence: the split is a held-out split of a benchmark, so the rows are a leak regardless of what a detector finds';

CREATE VIEW by_mixture AS
SELECT mixture, bool_and(is_current) AS is_current, count(*) AS n_shards,
       sum(n_documents_in)::BIGINT AS n_documents_in,
       sum(n_documents_out)::BIGINT AS n_documents_out,
       sum(n_tokens_in)::BIGINT AS n_tokens_in,
       sum(n_tokens_out)::BIGINT AS n_tokens_out,
       sum(n_cut)::BIGINT AS n_cut,
       sum(n_unreadable_left_out)::BIGINT AS n_unreadable_left_out
FROM mixtures
GROUP BY mixture
ORDER BY mixture;
COMMENT ON VIEW by_mixture IS
    'Per mixture: number of documents and tokens before and after filtering, over all shards';

-- Every source under each column of a composition: its own name, and the labels that any source has.
CREATE VIEW source_groups AS
WITH sources AS (
    SELECT source FROM mixtures UNION SELECT source FROM shards
), labels AS (SELECT DISTINCT label FROM source_labels)
SELECT source, 'source' AS label, source AS value FROM sources
UNION ALL
SELECT source, label, coalesce(value, 'not declared')
FROM sources CROSS JOIN labels LEFT JOIN source_labels USING (source, label)
ORDER BY source, label <> 'source', label;
COMMENT ON VIEW source_groups IS
    'Per source and label: the value under which compositions count the source; for the label source, its own name';

CREATE VIEW composition_by_mixture AS
SELECT mixture, is_current, label, value, n_documents,
       n_documents / nullif(sum(n_documents) OVER whole, 0) AS share_of_documents,
       n_tokens, n_tokens / nullif(sum(n_tokens) OVER whole, 0) AS share_of_tokens
FROM (
    SELECT mixture, bool_and(is_current) AS is_current, label, value,
           sum(n_documents_out)::BIGINT AS n_documents, sum(n_tokens_out)::BIGINT AS n_tokens
    FROM mixtures JOIN source_groups USING (source)
    GROUP BY mixture, label, value
)
WINDOW whole AS (PARTITION BY mixture, label)
ORDER BY mixture, label <> 'source', label, n_tokens DESC, value;
COMMENT ON VIEW composition_by_mixture IS
    'Per mixture, by source and by each source label: documents and tokens that it contains, and their shares';

CREATE VIEW removed_by_mixture AS
SELECT mixture, source, what, why, benchmark,
       count(*) AS n_reasons,
       count(DISTINCT (shard_name, row)) AS n_documents,
       sum(n_tokens) FILTER (is_first)::BIGINT AS n_tokens
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY mixture, source, shard_name, row, what, why, benchmark
    ) = 1 AS is_first
    FROM removed WHERE is_current
)
GROUP BY mixture, source, what, why, benchmark
ORDER BY mixture, source, what, why, benchmark;
COMMENT ON VIEW removed_by_mixture IS
    'Per current mixture, source and reason: number of documents removed or cut, and their tokens; a document with several reasons is counted under each';

CREATE VIEW items_by_detector AS
SELECT i.benchmark, i.config, i.split, i.instance_index, i.detector,
       status_of(f.n_documents, f.n_no_answer_documents, f.n_review_documents, i.is_visible,
                 b.n_shards_not_scanned) AS status,
       i.is_visible AS is_checkable,
       coalesce(f.n_documents, 0) AS n_documents,
       f.best_score,
       i.reason, i.detail,
       coalesce(f.n_no_answer_documents, 0) AS n_no_answer_documents,
       coalesce(f.n_review_documents, 0) AS n_review_documents
FROM visibility i
LEFT JOIN benchmarks b USING (benchmark)
LEFT JOIN item_detectors f USING (benchmark, split, instance_index, detector);
COMMENT ON VIEW items_by_detector IS
    'Every benchmark item with its class by each chosen detector (leaked, no answer, review, clean, cannot be checked, not fully scanned), and why a detector cannot find it';

CREATE VIEW by_kind AS
SELECT benchmark, kind,
       count(*) AS n_findings,
       count(DISTINCT (split, instance_index)) AS n_items,
       count(DISTINCT (source, shard_name, row)) AS n_documents,
       count(*) FILTER (is_contaminated) AS n_leaks,
       count(*) FILTER (is_no_answer) AS n_no_answer,
       count(*) FILTER (needs_review) AS n_review
FROM findings
GROUP BY benchmark, kind
ORDER BY benchmark, kind;
COMMENT ON VIEW by_kind IS
    'Per benchmark and kind (verbatim, edited, variant, ...): number of findings, of their items and documents, and of findings by class; a finding without a kind has only a score';

CREATE VIEW by_detector AS
SELECT i.benchmark, i.detector,
       count(*) FILTER (i.status = 'leaked') AS n_leaked,
       coalesce(any_value(f.n_documents), 0) AS n_documents,
       count(*) FILTER (i.status = 'leaked' AND s.found_by = i.detector) AS n_leaked_by_it_alone,
       count(*) FILTER (i.status = 'no answer') AS n_no_answer,
       count(*) FILTER (i.status = 'review') AS n_review
FROM items_by_detector i
JOIN item_status s USING (benchmark, split, instance_index)
LEFT JOIN (
    SELECT benchmark, detector, count(DISTINCT (shard_name, source, row)) AS n_documents
    FROM matches WHERE is_contaminated
    GROUP BY ALL
) f ON (f.benchmark, f.detector) = (i.benchmark, i.detector)
GROUP BY i.benchmark, i.detector
ORDER BY i.benchmark, i.detector;
COMMENT ON VIEW by_detector IS
    'Per benchmark and chosen detector: number of leaked items, of documents with a leak, of leaked items that only this detector finds, of no-answer items, and of items to review';

CREATE VIEW visibility_by_detector AS
SELECT benchmark, detector, count(*) AS n_items,
       count(*) FILTER (is_visible) AS n_visible,
       count(*) FILTER (is_visible) / count(*) AS share,
       mode(reason ORDER BY reason) AS most_common_reason
FROM visibility
GROUP BY benchmark, detector
ORDER BY benchmark, detector;
COMMENT ON VIEW visibility_by_detector IS
    'Per benchmark and chosen detector: number and share of items that the detector can find, and the most common reason for the others';

-- The texts of an item overlap (question and answer together contain the question), so the occurrences
-- in a document are those of the most frequent text.
CREATE VIEW exact_by_item AS
SELECT benchmark, config, split, instance_index, source,
       sum(n_occurrences)::BIGINT AS n_occurrences,
       count(*) AS n_documents,
       sum(n_question)::BIGINT AS n_question,
       sum(n_question_and_answer)::BIGINT AS n_question_and_answer,
       sum(n_continuation)::BIGINT AS n_continuation
FROM (
    SELECT benchmark, split, instance_index, source,
           max(n_matched) AS n_occurrences,
           coalesce(sum(n_matched) FILTER (searched_text = 'question'), 0) AS n_question,
           coalesce(sum(n_matched) FILTER (searched_text = 'question and answer'), 0)
               AS n_question_and_answer,
           coalesce(sum(n_matched) FILTER (searched_text = 'continuation'), 0) AS n_continuation
    FROM matches WHERE detector = 'exact' AND is_contaminated
    GROUP BY benchmark, split, instance_index, source, shard_name, row
)
JOIN items USING (benchmark, split, instance_index)
GROUP BY benchmark, config, split, instance_index, source
ORDER BY benchmark, split, instance_index, source;
COMMENT ON VIEW exact_by_item IS
    'Detector exact, per leaked item and source: number of occurrences and documents, and occurrences by the text that was found';

CREATE VIEW longest_match_by_item AS
SELECT i.benchmark, i.config, i.split, i.instance_index,
       CASE WHEN f.source_score > r.threshold AND f.target_score > r.threshold THEN 'both'
            WHEN f.source_score > r.threshold THEN 'source only'
            WHEN f.target_score > r.threshold THEN 'target only'
            WHEN NOT i.is_visible THEN 'not searchable'
            WHEN b.n_shards_not_scanned > 0 THEN 'not fully scanned'
            ELSE 'clean' END AS status,
       f.source_score, f.target_score,
       coalesce(f.n_documents, 0) AS n_documents,
       i.detail AS searched_for
FROM visibility i
LEFT JOIN benchmarks b USING (benchmark)
LEFT JOIN (
    SELECT benchmark,
           coalesce((benchmarks.thresholds ->> 'longest_match')::DOUBLE,
                    (runs.policy ->> 'longest_match_threshold')::DOUBLE) + 1e-9 AS threshold
    FROM benchmarks CROSS JOIN runs
) r USING (benchmark)
LEFT JOIN (
    SELECT benchmark, split, instance_index,
           max(question_overlap) AS source_score,
           max(answer_overlap) AS target_score,
           count(DISTINCT (shard_name, source, row)) AS n_documents
    FROM matches WHERE detector = 'longest_match'
    GROUP BY ALL
) f USING (benchmark, split, instance_index)
WHERE i.detector = 'longest_match'
ORDER BY i.benchmark, i.split, i.instance_index;
COMMENT ON VIEW longest_match_by_item IS
    'Detector longest_match, per item: which field leaked, and both scores (source: question, target: answer) if there is a match';

-- What planted benchmarks say of the kinds of a detector: it is shown where nothing is judged.
CREATE VIEW planted_probabilities AS
SELECT *, n_copies / n_places AS probability
FROM (SELECT unnest(planted_steps(), recursive := true));
COMMENT ON VIEW planted_probabilities IS
    'Per detector, kind and step (a range of scores): the share of places in planted benchmarks where the item was planted (n_copies of n_places), with its 95 % interval; it depends on that mix of copies and look-alikes, and is not the leak rate of any corpus';

CREATE VIEW text_probabilities AS
SELECT found.text_id, found.detector, found.kind_apart AS kind, found.benchmark, found.score,
       steps.probability, steps.low, steps.high,
       steps.n_judged AS n_in_step, found.curve = '' AS is_of_all_benchmarks, 'judged here' AS basis
FROM (
    SELECT text_id, of_kind.detector, kind_apart, benchmark, judged_as, max(score) AS score,
           coalesce(any_value(own.benchmark), '') AS curve
    FROM (
        SELECT text_id, detector, benchmark, score,
               CASE WHEN list_contains(near_kinds(), kind) THEN kind END AS kind_apart,
               concat_ws(' ', detector, kind_apart) AS judged_as
        FROM matches
    ) of_kind
    LEFT JOIN (
        SELECT detector AS judged_as, benchmark FROM calibration_fit
        WHERE benchmark IS NOT NULL AND n_judged >= least_judged()
    ) own USING (judged_as, benchmark)
    GROUP BY ALL
) found
-- Scores of steps are rounded, as further digits are rounding errors.
ASOF JOIN (SELECT * REPLACE (coalesce(benchmark, '') AS benchmark) FROM calibration) steps
    ON steps.detector = found.judged_as AND steps.benchmark = found.curve
       AND round(found.score, 9) >= steps.score_from
UNION ALL
SELECT found.text_id, found.detector, found.kind, found.benchmark, found.score,
       steps.probability, steps.low, steps.high, steps.n_places, true, 'planted benchmarks'
FROM (
    SELECT text_id, detector, kind, benchmark, max(score) AS score,
           CASE WHEN list_contains(near_kinds(), kind) THEN kind END AS kind_apart
    FROM matches GROUP BY ALL
) found
ASOF JOIN planted_probabilities steps
    ON steps.detector = found.detector AND steps.kind = found.kind
       AND round(found.score, 9) >= steps.score_from
WHERE concat_ws(' ', found.detector, kind_apart) NOT IN (SELECT detector FROM calibration)
ORDER BY ALL;
COMMENT ON VIEW text_probabilities IS
    'Per matched text, detector and benchmark: the probability for its score, with its 95 % interval and the number of judged pairs or planted places in the step (n_in_step). Basis "judged here": probability of a semantic duplicate, from the curve of the benchmark, or of all benchmarks if fewer than 50 of its matched texts are judged; variants, parts and other kinds that are not copies have a curve of their own. Basis "planted benchmarks", used if there is no such curve: see planted_probabilities. Matched texts with scores below the whole curve are left out';

CREATE VIEW probabilities_in_words AS
SELECT text_id, string_agg(in_words, '; ' ORDER BY detector) AS probability
FROM (
    SELECT text_id, detector, arg_max(format('{}: {:.0f} % ({:.0f} to {:.0f} %) of {}', detector,
        100 * probability, 100 * low, 100 * high,
        CASE basis WHEN 'judged here' THEN format('{:,} judged pairs were duplicates', n_in_step)
             ELSE format('{:,} places with such a score were copies (measured on planted items)', n_in_step) END),
        probability) AS in_words
    FROM text_probabilities GROUP BY text_id, detector
)
GROUP BY text_id
ORDER BY text_id;
COMMENT ON VIEW probabilities_in_words IS
    'Per matched text: its highest probability by each detector, as shown on the page and in review';
