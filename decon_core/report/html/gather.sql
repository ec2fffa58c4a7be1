-- The queries of the page. The limits are those of the page; the database has all rows.

-- name: runs
SELECT * EXCLUDE (policy),
       coalesce((policy::JSON ->> 'keep_no_answer')::BOOLEAN, true)
           AS keeps_no_answer
FROM runs

-- name: thresholds
-- The default (no benchmark), and those of each benchmark, by detector as JSON.
SELECT NULL AS benchmark, thresholds FROM runs WHERE thresholds <> ''
UNION ALL SELECT benchmark, thresholds FROM benchmarks WHERE thresholds <> ''
ORDER BY benchmark NULLS FIRST

-- name: totals
SELECT (SELECT CASE WHEN count(*) = count(n_items) THEN (SELECT count(*) FROM items) END
        FROM benchmarks) AS n_items,
       (SELECT CASE WHEN count(*) = count(n_items) THEN
                    (SELECT count(*) FROM items WHERE is_indexed) END
        FROM benchmarks) AS n_checkable,
       (SELECT count(*) FROM item_status WHERE status = 'leaked' AND is_checkable)
           AS n_leaked_checkable,
       (SELECT count(*) FROM benchmarks) AS n_benchmarks,
       (SELECT count(*) FILTER (n_rows = 0 OR n_unreadable IS DISTINCT FROM n_rows) FROM shards)
           AS n_shards,
       (SELECT count(DISTINCT source) FROM shards) AS n_sources,
       (SELECT CASE WHEN count(*) = count(n_documents)
                    THEN coalesce(sum(n_documents), 0)::BIGINT END
        FROM shards) AS n_documents,
       (SELECT coalesce(sum(n_characters), 0)::BIGINT FROM shards) AS n_characters,
       (SELECT coalesce(sum(n_too_short), 0)::BIGINT FROM shards) AS n_too_short,
       (SELECT CASE WHEN count(*) = count(n_unreadable)
                    THEN coalesce(sum(n_unreadable), 0)::BIGINT END
        FROM shards) AS n_unreadable,
       (SELECT count(*) FROM not_read WHERE accepted_by IS NULL) AS n_not_read,
       (SELECT sum(n_invalid_utf8)::BIGINT FROM shards) AS n_invalid_utf8,
       (SELECT count(*) FROM documents) AS n_found_documents,
       (SELECT count(*) FROM documents WHERE is_contaminated) AS n_contaminated_documents,
       (SELECT count(*) FROM documents WHERE is_no_answer)
           AS n_no_answer_documents,
       (SELECT count(*) FROM documents WHERE needs_review) AS n_review_documents,
       (SELECT count(*) FROM documents WHERE n_leaked_items > 1) AS n_crowded_documents,
       (SELECT count(*) FROM matched_texts) AS n_texts,
       (SELECT count(*) FROM matched_texts WHERE is_contaminated) AS n_leak_texts,
       (SELECT count(*) FROM matched_texts WHERE needs_review) AS n_review_texts,
       (SELECT coalesce(sum(n_leaked), 0)::BIGINT FROM by_benchmark) AS n_leaked,
       (SELECT coalesce(sum(n_no_answer), 0)::BIGINT FROM by_benchmark) AS n_no_answer,
       (SELECT coalesce(sum(n_review), 0)::BIGINT FROM by_benchmark) AS n_review,
       (SELECT count(*) FROM items WHERE NOT is_indexed) AS n_invisible,
       (SELECT count(DISTINCT pair) FROM judged_pairs WHERE is_sd IS NOT NULL AND score IS NOT NULL)
           AS n_judged,
       (SELECT count(*) FROM verdicts) AS n_verdicts,
       (SELECT count(*) FROM verdicts WHERE NOT is_found) AS n_verdicts_not_found

-- name: benchmarks
SELECT b.*, f.n_clean, f.n_with_answer, f.n_with_part_of_answer, f.n_without_answer,
       f.n_leaked_without_having_one, f.n_not_fully_scanned
FROM by_benchmark b JOIN flow f USING (benchmark, split)
ORDER BY b.leak_rate DESC NULLS LAST, b.n_items DESC, benchmark, split

-- name: ranked
-- Benchmarks, all splits together, and where most of their items leaked from: the source, or the shard if
-- there is only one source.
SELECT b.*, n_leaked_checkable / nullif(n_checkable, 0) AS rate,
       wilson_low(n_leaked_checkable, n_checkable) AS low,
       wilson_high(n_leaked_checkable, n_checkable) AS high,
       s.place, s.n_in_place, s.n_places,
       c.rate_before, c.made_before
FROM (
    SELECT benchmark, sum(n_leaked)::BIGINT AS n_leaked,
           sum(n_checkable)::BIGINT AS n_checkable,
           sum(n_leaked_checkable)::BIGINT AS n_leaked_checkable,
           sum(n_no_answer)::BIGINT AS n_no_answer,
           sum(n_review)::BIGINT AS n_review
    FROM by_benchmark GROUP BY benchmark
) b
LEFT JOIN (
    SELECT benchmark, arg_min(place, (-n, place)) AS place, max(n) AS n_in_place,
           count(*) AS n_places
    FROM (
        SELECT benchmark, count(DISTINCT (split, instance_index)) AS n,
               CASE WHEN (SELECT count(DISTINCT source) FROM shards) > 1
                    THEN source ELSE shard_name END AS place
        FROM findings WHERE is_contaminated GROUP BY benchmark, place
    )
    GROUP BY benchmark
) s USING (benchmark)
LEFT JOIN (
    SELECT benchmark, rate_before, made_before FROM rate_changes WHERE is_comparable
) c USING (benchmark)
ORDER BY rate DESC NULLS LAST, n_leaked DESC, n_no_answer + n_review DESC, benchmark

-- name: rates_by_report
-- Empty without an earlier report; this report is the last.
FROM (
    SELECT report, made_at, benchmark, n_leaked_checkable, n_checkable,
           scan_fingerprint, policy, version, is_complete
    FROM earlier_rates
    UNION ALL
    SELECT 1 + (SELECT max(report) FROM earlier_rates), made_at, benchmark, n_leaked_checkable,
           n_checkable, scan_fingerprint, policy, version, is_complete
    FROM rates_of_report WHERE EXISTS (FROM earlier_rates)
)
ORDER BY benchmark, report

-- name: versions
SELECT benchmark, version, n_items, n_records, thresholds FROM benchmarks ORDER BY benchmark

-- name: why_not_indexed
SELECT benchmark, why_not_indexed AS reason, count(*) AS n_items
FROM items WHERE NOT is_indexed GROUP BY ALL ORDER BY n_items DESC, benchmark, reason

-- name: invisible
SELECT benchmark, split, instance_index, why_not_indexed AS reason, question
FROM items WHERE NOT is_indexed
ORDER BY benchmark, split, instance_index LIMIT 500

-- name: sources
SELECT s.*, t.n_shards, t.n_characters, t.n_too_short,
       s.n_leaked_items / nullif(
           (SELECT CASE WHEN count(*) = count(n_items) THEN (SELECT count(*) FROM items) END
            FROM benchmarks), 0) AS item_share
FROM by_source s JOIN (
    SELECT source, count(*) AS n_shards, sum(n_characters)::BIGINT AS n_characters,
           sum(n_too_short)::BIGINT AS n_too_short
    FROM shards GROUP BY source
) t USING (source) ORDER BY source

-- name: cells
SELECT c.*, c.n_leaked / nullif(b.n_items, 0) AS item_share,
       c.n_documents / nullif(s.n_documents, 0) AS document_share
FROM by_benchmark_and_source c
LEFT JOIN benchmarks b USING (benchmark)
LEFT JOIN by_source s USING (source)
ORDER BY c.benchmark, c.source

-- name: positions
-- Documents with a leak in each fiftieth of a source, whose shards follow each other by name.
WITH begun AS (
    SELECT source, shard_name, sum(n_rows) OVER (PARTITION BY source) AS n_all,
           sum(n_rows) OVER (PARTITION BY source ORDER BY shard_name) - n_rows AS n_before
    FROM shards
)
SELECT d.source, least(49, 50 * (n_before + d.row) // n_all)::INTEGER AS part,
       count(*) AS n_documents
FROM documents d JOIN begun USING (source, shard_name)
WHERE d.is_contaminated AND n_all > 0 GROUP BY ALL ORDER BY d.source, part

-- name: documents_per_item
SELECT n_documents, count(*) AS n_items FROM item_status WHERE status = 'leaked'
GROUP BY n_documents ORDER BY n_documents

-- name: concentration
-- Leaked items that are in the n documents with the most of them; at most 201 values of n.
WITH ranked AS (
    SELECT source, shard_name, row,
           row_number() OVER (ORDER BY n_leaked_items DESC, source, shard_name, row) AS place
    FROM documents WHERE is_contaminated
), first AS (
    SELECT min(place) AS place
    FROM findings f JOIN ranked r
    ON (f.source, f.shard_name, f.row) IS NOT DISTINCT FROM (r.source, r.shard_name, r.row)
    WHERE is_contaminated GROUP BY benchmark, split, instance_index
), summed AS (
    SELECT place, (sum(count(*)) OVER (ORDER BY place))::BIGINT AS n_items,
           (sum(count(*)) OVER ())::BIGINT AS n_all
    FROM first GROUP BY place
)
SELECT place AS n_documents, n_items, n_all FROM summed
QUALIFY row_number() OVER (PARTITION BY 200 * n_items // n_all ORDER BY place) = 1
ORDER BY place

-- name: scores
FROM score_histogram ORDER BY benchmark, detector, bin

-- name: sweep
SELECT benchmark, detector, holds_to, count(*) AS n_items FROM item_detectors
WHERE holds_to IS NOT NULL GROUP BY ALL ORDER BY benchmark, detector, holds_to

-- name: calibration
SELECT * REPLACE (coalesce(benchmark, 'all benchmarks') AS benchmark), benchmark IS NULL AS is_all
FROM calibration ORDER BY detector, is_all DESC, benchmark, step

-- name: calibration_fit
SELECT * REPLACE (coalesce(benchmark, 'all benchmarks') AS benchmark)
FROM calibration_fit ORDER BY detector, calibration_fit.benchmark NULLS FIRST

-- name: agreement
SELECT detector, other, sum(n_both)::BIGINT AS n_both, sum(n_detector_only)::BIGINT AS n_detector_only,
       sum(n_other_only)::BIGINT AS n_other_only
FROM agreement GROUP BY detector, other ORDER BY detector, other

-- name: detectors
SELECT detector, sum(n_leaked)::BIGINT AS n_leaked, sum(n_review)::BIGINT AS n_review,
       sum(n_documents)::BIGINT AS n_documents,
       sum(n_leaked_by_it_alone)::BIGINT AS n_leaked_by_it_alone
FROM by_detector GROUP BY detector ORDER BY detector

-- name: kinds
SELECT * EXCLUDE (kind), coalesce(kind, 'none (only a score)') AS kind_name, kind
FROM by_kind ORDER BY benchmark, kind NULLS LAST

-- name: mixtures
FROM by_mixture

-- name: current_mixtures
FROM by_mixture WHERE is_current

-- name: clean_mixtures
-- Those that lack nothing but leaks: whole documents first, then the one with the most documents.
FROM by_mixture m WHERE is_current AND NOT EXISTS (
    FROM removed r WHERE r.mixture = m.mixture
    AND r.why NOT IN ('leak', 'no answer', 'review', 'unreadable')
) AND EXISTS (FROM removed r WHERE r.mixture = m.mixture)
ORDER BY n_cut, n_documents_out DESC, mixture

-- name: removed
-- A document with several reasons is counted under each, with its tokens.
SELECT mixture, what, why, count(*) AS n_documents, sum(n_tokens)::BIGINT AS n_tokens
FROM (
    SELECT mixture, what, why, source, shard_name, row, max(n_tokens) AS n_tokens
    FROM removed WHERE is_current GROUP BY ALL
)
GROUP BY mixture, what, why ORDER BY mixture, what, why

-- name: items
FROM top_items LIMIT 50

-- name: no_answer_items
SELECT benchmark, split, instance_index, n_no_answer_documents AS n_documents, question
FROM item_status WHERE status = 'no answer'
ORDER BY n_documents DESC, benchmark, split, instance_index LIMIT 50

-- name: documents
SELECT source, shard_name, row, doc_id, n_leaked_items, n_benchmarks, best_score
FROM documents WHERE n_leaked_items > 1
ORDER BY n_leaked_items DESC, source, shard_name, row LIMIT 50

-- name: not_read
SELECT what, source, place, path, reason, sum(n)::BIGINT AS n, sum(n_of)::BIGINT AS n_of,
       sum(n_bytes)::BIGINT AS n_bytes, accepted_by
FROM (
    SELECT * REPLACE (CASE WHEN what IN ('text', 'row') THEN '' ELSE place END AS place)
    FROM not_read
)
GROUP BY ALL ORDER BY accepted_by NULLS FIRST, source, what, place, path, reason LIMIT 500

-- name: all_not_read
FROM not_read ORDER BY source, what, place, path, reason

-- name: bytes_read
SELECT source, sum(n_bytes)::BIGINT AS n_bytes FROM shards GROUP BY source

-- name: origins
SELECT * EXCLUDE (is_held_out), CASE WHEN is_held_out THEN 'yes' ELSE 'no' END AS held_out,
       coalesce(value, 'other values') AS name
FROM by_origin LIMIT 200

-- name: unreadable
SELECT source, shard_name, row, reason, detail FROM unreadable
ORDER BY source, shard_name, row LIMIT 200

-- name: invalid_utf8
SELECT source, shard_name, row, "offset", detail FROM invalid_utf8
ORDER BY source, shard_name, row LIMIT 200

-- name: not_covered
SELECT benchmark, reason FROM not_covered ORDER BY is_refused, benchmark

-- name: not_scanned
SELECT source, shard_name, array_to_string(benchmarks, ', ') AS benchmarks, reason, remedy
FROM not_scanned ORDER BY source, pack, shard_name

-- name: unreadable_reasons
SELECT source, reason, count(*) AS n_rows FROM unreadable
GROUP BY source, reason ORDER BY n_rows DESC, source, reason

-- name: made
SELECT what, value FROM (
    SELECT unnest([
        {what: 'made by', value: made_by}, {what: 'made at', value: made_at},
        {what: 'report digest', value: state}, {what: 'scan digest', value: scan_fingerprint},
        {what: 'term weights', value: term_weights}
    ], recursive := true) FROM (FROM runs LIMIT 1)
) WHERE value <> ''

-- name: matched_texts
SELECT t.* REPLACE (coalesce(t.verdict, v.verdict) AS verdict),
       v.note AS verdict_note, v.said_by AS verdict_by, v.said_at AS verdict_at, j.judgement,
       q.probability, coalesce(b.benchmarks, t.benchmark) AS benchmarks
FROM matched_texts t LEFT JOIN verdicts v USING (text_id)
LEFT JOIN (
    -- several if they have an item in common
    SELECT text_id, string_agg(DISTINCT benchmark, ', ' ORDER BY benchmark) AS benchmarks
    FROM matches GROUP BY text_id
) b USING (text_id)
LEFT JOIN (
    SELECT pair AS text_id, any_value(concat_ws(' · ',
        CASE WHEN is_sd THEN 'duplicate' WHEN NOT is_sd THEN 'not a duplicate'
             ELSE concat('unjudged: ', unjudged) END,
        match_type, 'confidence ' || format('{:.2f}', confidence), judged_by, 'prompt ' || prompt,
        reasoning)) AS judgement
    FROM judged_pairs WHERE judge <> 'person' GROUP BY pair
) j USING (text_id)
LEFT JOIN probabilities_in_words q USING (text_id)
WHERE t.text_id IN (SELECT text_id FROM matched_texts ORDER BY priority, text_id LIMIT $most_texts)
ORDER BY t.is_contaminated DESC, t.is_no_answer DESC, t.needs_review DESC, t.score DESC, t.text_id

-- name: places
-- The first documents of every matched text with several documents, leaks first.
WITH first AS (
    SELECT text_id, row_number() OVER (
        ORDER BY is_contaminated DESC, is_no_answer DESC, needs_review DESC, score DESC, text_id
    ) AS number
    FROM matched_texts
    WHERE text_id IN (SELECT text_id FROM matched_texts ORDER BY priority, text_id LIMIT $most_texts)
)
SELECT text_id, text_documents.source, text_documents.shard_name, text_documents.row,
       text_documents.doc_id
FROM text_documents JOIN first USING (text_id) JOIN matched_texts USING (text_id)
WHERE matched_texts.n_documents > 1
QUALIFY row_number() OVER (
    PARTITION BY text_id ORDER BY text_documents.is_contaminated DESC, text_documents.source,
        text_documents.shard_name, text_documents.row
) <= $of_text
ORDER BY number, text_documents.is_contaminated DESC, text_documents.source,
         text_documents.shard_name, text_documents.row
LIMIT $in_all

-- name: documents_with_texts
-- `shard` is the fingerprint of the shard: with it, a link tells whether a row is still the same document.
WITH listed AS (
    SELECT *, row_number() OVER (
        ORDER BY is_contaminated DESC, is_no_answer DESC, needs_review DESC,
                 n_leaked_items DESC, best_score DESC, source, shard_name, row
    ) AS number
    FROM documents ORDER BY number LIMIT $most_documents
), found AS (
    SELECT number, list(DISTINCT text_id) AS text_ids,
           list(DISTINCT benchmark ORDER BY benchmark) AS benchmarks
    FROM listed d JOIN matches m
    ON (d.source, d.shard_name, d.row) IS NOT DISTINCT FROM (m.source, m.shard_name, m.row)
    GROUP BY number
)
SELECT d.*, s.shard, coalesce(len(f.text_ids), 0) AS n_texts, f.text_ids, f.benchmarks
FROM listed d
LEFT JOIN found f USING (number)
LEFT JOIN shards s ON (d.source, d.shard_name) IS NOT DISTINCT FROM (s.source, s.shard_name)
ORDER BY number
