-- Tables of the differences between two report databases, attached as `one` and `two`. Run by
-- differences.py in an in-memory database, once per comparison.

-- Shards -------------------------------------------------------------------------------------------

-- The shards of a report: `one` or `two`.
CREATE MACRO shards_in(report) AS TABLE
SELECT source, shard_name, max(shard) AS shard
FROM (SELECT source, shard_name, shard FROM query_table(report || '.shards')
      UNION ALL SELECT DISTINCT source, shard_name, NULL FROM query_table(report || '.findings'))
GROUP BY source, shard_name;

-- Shards have the same name and source on both sides; or else the same content, or else the same
-- name (a folder scan has no sources), if only one shard of each side has it.
CREATE TABLE shard_pairs AS
WITH named AS (
    SELECT *, count(*) OVER (PARTITION BY source, shard_name) = 2 AS is_named
    FROM (SELECT *, true AS is_of_first FROM shards_in('one')
          UNION ALL SELECT *, false FROM shards_in('two'))
), by_content AS (
    SELECT *, NOT is_named AND shard IS NOT NULL
              AND count(*) FILTER (NOT is_named AND is_of_first) OVER contents = 1
              AND count(*) FILTER (NOT is_named AND NOT is_of_first) OVER contents = 1 AS is_moved
    FROM named WINDOW contents AS (PARTITION BY shard)
), keyed AS (
    SELECT *, CASE WHEN is_moved THEN ['content', shard]
                   WHEN NOT is_named
                    AND count(*) FILTER (NOT is_named AND NOT is_moved AND is_of_first) OVER names = 1
                    AND count(*) FILTER (NOT is_named AND NOT is_moved AND NOT is_of_first) OVER names = 1
                   THEN ['name', shard_name] ELSE ['place', source, shard_name] END AS key
    FROM by_content WINDOW names AS (PARTITION BY shard_name)
)
SELECT row_number() OVER (ORDER BY coalesce(a.shard_name, b.shard_name), a.source, b.source) AS number,
       a.source AS source_of_first, b.source AS source_of_second,
       a.shard_name AS name_of_first, b.shard_name AS name_of_second,
       coalesce(name_of_first, name_of_second) AS shard_name,
       CASE WHEN a.key IS NULL THEN 'only in second'
            WHEN b.key IS NULL THEN 'only in first'
            WHEN a.shard <> b.shard THEN 'changed'
            ELSE 'in both' END AS standing
FROM (FROM keyed WHERE is_of_first) a
FULL JOIN (FROM keyed WHERE NOT is_of_first) b USING (key);

-- Rows that one side could not read; the other may have matches in them.
CREATE TABLE unread AS
SELECT DISTINCT s.number, u.row, true AS is_of_first
FROM one.unreadable u
JOIN shard_pairs s ON (s.source_of_first, s.name_of_first) = (u.source, u.shard_name)
UNION ALL
SELECT DISTINCT s.number, u.row, false
FROM two.unreadable u
JOIN shard_pairs s ON (s.source_of_second, s.name_of_second) = (u.source, u.shard_name);

-- Benchmarks for which one side scanned nothing of a shard, or only a sample of its documents.
CREATE TABLE in_part AS
SELECT s.number, unnest(n.benchmarks) AS benchmark, true AS is_of_first
FROM one.not_scanned n
JOIN shard_pairs s ON (s.source_of_first, s.name_of_first) = (n.source, n.shard_name)
UNION ALL
SELECT s.number, unnest(n.benchmarks), false
FROM two.not_scanned n
JOIN shard_pairs s ON (s.source_of_second, s.name_of_second) = (n.source, n.shard_name);

-- Items --------------------------------------------------------------------------------------------

-- Where n_items is null, the report lists only the items with matches.
CREATE TABLE benchmark_pairs AS
SELECT benchmark, a.benchmark IS NOT NULL AS is_in_first, b.benchmark IS NOT NULL AS is_in_second,
       a.version AS version_of_first, b.version AS version_of_second,
       a.n_items AS n_items_of_first, b.n_items AS n_items_of_second
FROM one.benchmarks a FULL JOIN two.benchmarks b USING (benchmark);

-- Such a report also has only the fingerprints of the records with matches.
CREATE MACRO items_in(report) AS TABLE
SELECT benchmark, split, instance_index, status, is_checkable,
       nullif(fingerprints, []) AS fingerprints, n_records = len(fingerprints) AS is_whole
FROM query_table(report || '.item_status')
JOIN query_table(report || '.items') USING (benchmark, split, instance_index);

-- An item of another version of the benchmark is known by its text (the first item with this text is
-- the first one of the other side), or else by its index.
CREATE TABLE item_pairs AS
WITH every AS (
    SELECT *, true AS is_of_first FROM items_in('one')
    UNION ALL SELECT *, false FROM items_in('two')
), keyed AS (
    SELECT *, CASE WHEN is_whole AND nth <= least(
                        count(*) FILTER (is_of_first) OVER texts,
                        count(*) FILTER (NOT is_of_first) OVER texts)
                   THEN fingerprints || [nth::VARCHAR] ELSE [instance_index::VARCHAR] END AS key
    FROM (SELECT *, row_number() OVER (
              PARTITION BY benchmark, split, is_whole, fingerprints, is_of_first
              ORDER BY instance_index) AS nth
          FROM every)
    WINDOW texts AS (PARTITION BY benchmark, split, is_whole, fingerprints)
)
SELECT row_number() OVER () AS item, benchmark, split,
       a.instance_index AS index_of_first, b.instance_index AS index_of_second,
       coalesce(index_of_first, index_of_second) AS instance_index,
       a.status AS status_of_first, b.status AS status_of_second,
       a.is_checkable AS is_checkable_of_first, b.is_checkable AS is_checkable_of_second,
       CASE WHEN NOT p.is_in_first OR NOT p.is_in_second THEN 'the other side did not search for the benchmark'
            WHEN a.fingerprints <> b.fingerprints
              AND (a.is_whole AND b.is_whole OR NOT list_has_any(a.fingerprints, b.fingerprints))
            THEN 'the item has different texts on the other side'
            WHEN a.status IS NULL AND p.n_items_of_first IS NOT NULL
              OR b.status IS NULL AND p.n_items_of_second IS NOT NULL
            THEN 'the other side does not have the item' END AS why_not
FROM (FROM keyed WHERE is_of_first) a
FULL JOIN (FROM keyed WHERE NOT is_of_first) b USING (benchmark, split, key)
LEFT JOIN benchmark_pairs p USING (benchmark);

-- Findings -----------------------------------------------------------------------------------------

CREATE MACRO class_of(is_contaminated, is_no_answer, needs_review) AS
    CASE WHEN is_contaminated THEN 'leak' WHEN is_no_answer THEN 'no answer'
         WHEN needs_review THEN 'review' END;

-- Scores that differ by at most 1e-9 are the same: it is rounding.
CREATE TABLE findings AS
WITH joined AS (
    SELECT number, row, item,
           coalesce(a.doc_id, b.doc_id) AS doc_id,
           a.score AS score_of_first, b.score AS score_of_second,
           a.detectors AS detectors_of_first, b.detectors AS detectors_of_second,
           a.verdict AS verdict_of_first, b.verdict AS verdict_of_second,
           coalesce(a.is_contaminated, false) AS is_in_first,
           coalesce(b.is_contaminated, false) AS is_in_second,
           class_of(a.is_contaminated, a.is_no_answer, a.needs_review) AS class_of_first,
           class_of(b.is_contaminated, b.is_no_answer, b.needs_review) AS class_of_second
    FROM (SELECT s.number, i.item, d.* FROM one.findings d
          JOIN shard_pairs s ON (s.source_of_first, s.name_of_first) = (d.source, d.shard_name)
          JOIN item_pairs i ON (i.benchmark, i.split, i.index_of_first)
                             = (d.benchmark, d.split, d.instance_index)) a
    FULL JOIN (SELECT s.number, i.item, d.* FROM two.findings d
          JOIN shard_pairs s ON (s.source_of_second, s.name_of_second) = (d.source, d.shard_name)
          JOIN item_pairs i ON (i.benchmark, i.split, i.index_of_second)
                             = (d.benchmark, d.split, d.instance_index)) b
    USING (number, row, item)
), placed AS (
    SELECT j.*, i.benchmark, i.split, i.instance_index,
           coalesce(s.source_of_first, s.source_of_second) AS source, s.shard_name,
           CASE WHEN s.standing = 'changed' THEN 'the shard has different content or is read differently'
                WHEN s.standing <> 'in both' THEN 'the other side did not scan the shard'
                WHEN u.number IS NOT NULL THEN 'the other side could not read the row'
                WHEN EXISTS (FROM in_part p WHERE (p.number, p.benchmark) = (j.number, i.benchmark)
                             AND CASE WHEN p.is_of_first THEN class_of_first IS NULL
                                      ELSE class_of_second IS NULL END)
                THEN 'the other side scanned only part of the shard, or did not search it for the benchmark'
                ELSE i.why_not END AS why_not
    FROM joined j
    JOIN shard_pairs s USING (number)
    LEFT JOIN unread u ON (u.number, u.row, u.is_of_first) = (j.number, j.row, NOT j.is_in_first)
    JOIN item_pairs i USING (item)
    WHERE class_of_first IS NOT NULL OR class_of_second IS NOT NULL
), classed AS (
    SELECT *, CASE WHEN 'no answer' IN (class_of_first, class_of_second) THEN 'no answer'
                   ELSE 'review' END AS class
    FROM placed
)
SELECT * EXCLUDE (class),
       CASE WHEN NOT is_in_first AND NOT is_in_second THEN
                 CASE WHEN why_not IS NOT NULL THEN class || ', not comparable'
                      WHEN class_of_second IS DISTINCT FROM class THEN class || ', only in first'
                      WHEN class_of_first IS DISTINCT FROM class THEN class || ', only in second'
                      ELSE class || ' in both' END
            WHEN why_not IS NOT NULL THEN 'not comparable'
            WHEN NOT is_in_second THEN 'only in first'
            WHEN NOT is_in_first THEN 'only in second'
            WHEN abs(score_of_first - score_of_second) > 1e-9
              OR detectors_of_first IS DISTINCT FROM detectors_of_second
              OR verdict_of_first IS DISTINCT FROM verdict_of_second THEN 'changed'
            ELSE 'same' END AS kind
FROM classed;

-- Changed items and leak rates ---------------------------------------------------------------------

CREATE TABLE item_changes AS
SELECT i.*,
       -- False if the change comes from shards that only one of the two scanned.
       c.classes_of_first IS DISTINCT FROM c.classes_of_second
           OR status_of_first NOT IN ('leaked', 'no answer', 'review')
              AND status_of_second NOT IN ('leaked', 'no answer', 'review')
           AS is_comparable
FROM item_pairs i
LEFT JOIN (
    SELECT item,
           list_sort(list_distinct(list(class_of_first))) AS classes_of_first,
           list_sort(list_distinct(list(class_of_second))) AS classes_of_second
    FROM findings WHERE why_not IS NULL
    GROUP BY ALL
) c USING (item)
WHERE why_not IS NULL
  AND (status_of_first <> status_of_second
       -- An item without a status did not leak; nothing else is known about it.
       OR status_of_first IN ('leaked', 'no answer', 'review')
          AND status_of_second IS NULL
       OR status_of_second IN ('leaked', 'no answer', 'review')
          AND status_of_first IS NULL);

CREATE MACRO rates_in(report) AS TABLE
SELECT benchmark, count(*) FILTER (status = 'leaked') AS n_leaked,
       count(*) FILTER (NOT is_checkable) AS n_not_checkable,
       count(*) FILTER (status = 'leaked' AND is_checkable) AS n_leaked_checkable,
       count(*) FILTER (status = 'no answer') AS n_no_answer
FROM items_in(report) GROUP BY benchmark;

CREATE TABLE rates AS
SELECT p.*,
       CASE WHEN p.is_in_first THEN coalesce(a.n_leaked, 0) END AS n_leaked_of_first,
       CASE WHEN p.is_in_second THEN coalesce(b.n_leaked, 0) END AS n_leaked_of_second,
       p.n_items_of_first - coalesce(a.n_not_checkable, 0) AS n_checkable_of_first,
       p.n_items_of_second - coalesce(b.n_not_checkable, 0) AS n_checkable_of_second,
       coalesce(a.n_leaked_checkable, 0) AS n_leaked_checkable_of_first,
       coalesce(b.n_leaked_checkable, 0) AS n_leaked_checkable_of_second,
       n_leaked_checkable_of_first / nullif(n_checkable_of_first, 0) AS rate_of_first,
       n_leaked_checkable_of_second / nullif(n_checkable_of_second, 0) AS rate_of_second,
       rate_of_second - rate_of_first AS difference,
       coalesce(c.n_of_first, 0) AS n_shared_of_first,
       coalesce(c.n_of_second, 0) AS n_shared_of_second,
       CASE WHEN p.is_in_first THEN coalesce(a.n_no_answer, 0) END AS n_no_answer_of_first,
       CASE WHEN p.is_in_second THEN coalesce(b.n_no_answer, 0) END AS n_no_answer_of_second
FROM benchmark_pairs p
LEFT JOIN rates_in('one') a USING (benchmark)
LEFT JOIN rates_in('two') b USING (benchmark)
LEFT JOIN (
    SELECT benchmark,
           count(DISTINCT item) FILTER (is_in_first) AS n_of_first,
           count(DISTINCT item) FILTER (is_in_second) AS n_of_second
    FROM findings WHERE why_not IS NULL GROUP BY benchmark
) c USING (benchmark)
ORDER BY p.benchmark;
