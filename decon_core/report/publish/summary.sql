-- The tables of a summary.

-- name: run
-- One row, also in a report without runs.
SELECT made_by, made_at, state, scan_fingerprint, term_weights, thresholds, policy,
       verdicts AS verdicts_digest,
       (SELECT count(*) FROM verdicts WHERE NOT is_found) AS n_verdicts_not_found,
       (SELECT count(DISTINCT pair) FROM judged_pairs WHERE judge <> 'person') AS n_judgements
FROM (SELECT 1) LEFT JOIN runs ON true LIMIT 1

-- name: benchmarks
-- Rates are of the items that can be found. If the number of items is unknown, so are its rates.
SELECT b.benchmark, b.version, b.revision, b.n_items, b.n_records, b.is_in_term_weights,
       b.n_shards_not_scanned,
       coalesce(i.n_leaked, 0) AS n_leaked,
       b.n_items - coalesce(i.n_blind, 0) AS n_checkable,
       CASE WHEN b.n_items IS NOT NULL THEN coalesce(i.n_leaked_checkable, 0) END
           AS n_leaked_checkable,
       n_leaked_checkable / nullif(n_checkable, 0) AS leak_rate,
       wilson_low(n_leaked_checkable, n_checkable) AS low,
       wilson_high(n_leaked_checkable, n_checkable) AS high,
       CASE WHEN b.n_items IS NOT NULL THEN coalesce(i.n_unknown, 0) END AS n_unknown,
       n_leaked / nullif(b.n_items, 0) AS at_least,
       (n_leaked + n_unknown) / nullif(b.n_items, 0) AS at_most,
       coalesce(i.n_with_answer, 0) AS n_with_answer,
       coalesce(i.n_with_part, 0) AS n_with_part_of_answer,
       coalesce(i.n_without_answer, 0) AS n_without_answer,
       coalesce(i.n_leaked_without_having_one, 0) AS n_leaked_without_having_one,
       coalesce(i.n_no_answer, 0) AS n_no_answer,
       CASE WHEN n_checkable > 0 THEN n_no_answer / b.n_items END AS no_answer_rate,
       CASE WHEN n_checkable > 0 THEN wilson_high(n_no_answer, b.n_items) END AS no_answer_high,
       CASE WHEN b.n_items IS NOT NULL THEN coalesce(i.n_not_checkable, 0) END
           AS n_not_checkable,
       coalesce(i.n_review, 0) AS n_review,
       coalesce(i.n_not_fully_scanned, 0) AS n_not_fully_scanned,
       coalesce(d.n_documents, 0) AS n_documents,
       coalesce(d.n_no_answer_documents, 0) AS n_no_answer_documents
FROM benchmarks b
LEFT JOIN (
    SELECT benchmark, count(*) FILTER (status = 'leaked') AS n_leaked,
           count(*) FILTER (status = 'leaked' AND is_checkable) AS n_leaked_checkable,
           count(*) FILTER (what_leaked = 'with its answer') AS n_with_answer,
           count(*) FILTER (what_leaked = 'with part of its answer') AS n_with_part,
           count(*) FILTER (what_leaked = 'without its answer') AS n_without_answer,
           count(*) FILTER (what_leaked = 'has no answer') AS n_leaked_without_having_one,
           count(*) FILTER (status = 'no answer') AS n_no_answer,
           count(*) FILTER (status = 'review') AS n_review,
           count(*) FILTER (status = 'not fully scanned') AS n_not_fully_scanned,
           count(*) FILTER (status = 'cannot be checked') AS n_not_checkable,
           count(*) FILTER (NOT is_checkable) AS n_blind,
           count(*) FILTER (NOT is_checkable AND status <> 'leaked') AS n_unknown
    FROM item_status GROUP BY benchmark
) i USING (benchmark)
LEFT JOIN (
    SELECT d.benchmark,
           count(DISTINCT (source, shard_name, row)) FILTER (d.is_contaminated)
               AS n_documents,
           count(DISTINCT (source, shard_name, row))
               FILTER (d.is_no_answer AND documents.is_no_answer)
               AS n_no_answer_documents
    FROM findings d JOIN documents USING (source, shard_name, row)
    WHERE d.is_contaminated OR d.is_no_answer GROUP BY d.benchmark
) d USING (benchmark)
ORDER BY b.benchmark

-- name: splits
SELECT s.benchmark, s.split,
       CASE WHEN b.n_items IS NOT NULL THEN s.n_items END AS n_items,
       s.n_checkable, s.n_leaked, s.n_leaked_checkable, s.n_no_answer,
       s.leak_rate, s.low, s.high, s.at_least, s.at_most
FROM by_benchmark s JOIN benchmarks b USING (benchmark)
ORDER BY s.benchmark, s.split

-- name: detectors
SELECT benchmark, detector, count(*) FILTER (n_documents > 0) AS n_leaked
FROM item_detectors GROUP BY benchmark, detector ORDER BY benchmark, detector

-- name: not_checkable
SELECT benchmark, why_not_indexed AS reason, count(*) AS n_items
FROM items WHERE NOT is_indexed GROUP BY ALL ORDER BY ALL

-- name: checkable_by_others
SELECT benchmark, detector, n_items FROM checkable_by_others ORDER BY benchmark, n_items DESC, detector

-- name: sources
-- A row per source, and one of all sources together, without a name. A sum over shards is null if the
-- count of any shard is. A shard of which no row could be read was not searched.
WITH all_shards AS (
    SELECT source,
           count(*) FILTER (coalesce(n_rows = 0 OR n_unreadable < n_rows, true)) AS n_shards,
           CASE WHEN count(n_rows) = count(*) THEN sum(n_rows)::BIGINT END AS n_rows,
           CASE WHEN count(n_documents) = count(*) THEN sum(n_documents)::BIGINT END AS n_documents,
           CASE WHEN count(n_characters) = count(*) THEN sum(n_characters)::BIGINT END
               AS n_characters,
           sum(n_bytes)::BIGINT AS n_bytes,
           CASE WHEN count(n_too_short) = count(*) THEN sum(n_too_short)::BIGINT END AS n_too_short,
           CASE WHEN count(n_unreadable) = count(*) THEN sum(n_unreadable)::BIGINT END
               AS n_unreadable,
           CASE WHEN count(n_invalid_utf8) = count(*) THEN sum(n_invalid_utf8)::BIGINT END
               AS n_invalid_utf8
    FROM shards GROUP BY GROUPING SETS ((source), ())
), found AS (
    SELECT source, count(*) FILTER (is_contaminated) AS n_contaminated,
           count(*) FILTER (is_no_answer) AS n_no_answer,
           count(*) FILTER (needs_review) AS n_review
    FROM documents GROUP BY GROUPING SETS ((source), ())
), leaked AS (
    SELECT source, count(DISTINCT (benchmark, split, instance_index)) AS n
    FROM findings WHERE is_contaminated GROUP BY GROUPING SETS ((source), ())
)
SELECT s.*,
       coalesce(f.n_contaminated, 0) AS n_contaminated_documents,
       n_contaminated_documents / nullif(s.n_documents, 0) AS document_rate,
       wilson_low(n_contaminated_documents, s.n_documents) AS low,
       wilson_high(n_contaminated_documents, s.n_documents) AS high,
       coalesce(l.n, 0) AS n_leaked_items,
       coalesce(f.n_no_answer, 0) AS n_no_answer_documents,
       n_no_answer_documents / nullif(s.n_documents, 0) AS no_answer_rate,
       wilson_high(n_no_answer_documents, s.n_documents) AS no_answer_high,
       coalesce(f.n_review, 0) AS n_review_documents
FROM all_shards s
LEFT JOIN found f ON f.source IS NOT DISTINCT FROM s.source
LEFT JOIN leaked l ON l.source IS NOT DISTINCT FROM s.source
ORDER BY s.source

-- name: not_read
-- Without shards, which are among those that were not scanned.
SELECT what, source, CASE WHEN what IN ('text', 'row') THEN '' ELSE place END AS place, path, reason,
       sum(n)::BIGINT AS n, sum(n_of)::BIGINT AS n_of, sum(n_bytes)::BIGINT AS n_bytes
FROM not_read WHERE accepted_by IS NULL AND what <> 'shard' GROUP BY ALL
ORDER BY source, what, place, path, reason

-- name: origins
SELECT source, field, value, split, benchmark, n_rows, n_shards, shard
FROM by_origin WHERE is_evidence

-- name: removed
SELECT mixture, what, why, count(DISTINCT (source, shard_name, row)) AS n_documents
FROM removed GROUP BY ALL ORDER BY ALL

-- name: verdicts
SELECT verdict, count(*) AS n FROM verdicts WHERE is_found GROUP BY ALL ORDER BY ALL

-- name: documents
SELECT (SELECT CASE WHEN count(*) = count(n_documents) THEN sum(n_documents)::BIGINT END
        FROM shards) AS n_documents,
       (SELECT sum(n_invalid_utf8)::BIGINT FROM shards) AS n_invalid_utf8,
       count(*) FILTER (is_contaminated) AS n_leaks,
       count(*) FILTER (is_no_answer) AS n_no_answer,
       count(*) FILTER (needs_review) AS n_review,
       (SELECT any_value(policy) FROM runs) AS policy,
       (SELECT count(*) FROM verdicts WHERE NOT is_found) AS n_verdicts_not_found,
       (SELECT CASE WHEN count(*) = count(n_unknown) THEN coalesce(sum(n_unknown), 0)::BIGINT END
        FROM by_benchmark) AS n_unknown
FROM documents

-- name: mixtures
SELECT by_mixture.*, coalesce(n, 0) AS n_removed_or_cut
FROM by_mixture LEFT JOIN (
    SELECT mixture, count(DISTINCT (source, shard_name, row)) AS n
    FROM removed GROUP BY mixture
) USING (mixture)
ORDER BY mixture

-- name: thresholds
SELECT benchmark, thresholds FROM benchmarks WHERE thresholds IS NOT NULL ORDER BY benchmark
