-- Compare a report with a truth file.

-- name: flagged
CREATE TEMP TABLE flagged AS
SELECT DISTINCT source, parse_filename(shard_name) AS shard, row,
                benchmark, split, instance_index
FROM report.matches WHERE is_contaminated

-- name: truth
-- A hard negative may name no item: then nothing may be flagged in its document. `document` rows are
-- flagged by any match, all others by a match with the same item.
CREATE TEMP TABLE truth AS
SELECT t.*, parse_filename(t.shard) AS file,
       EXISTS (
           FROM flagged f
           WHERE f.source = t.source AND f.shard = parse_filename(t.shard) AND f.row = t.row
             AND (t.instance_index IS NULL
                  OR (f.benchmark, f.split, f.instance_index)
                   = (t.benchmark, t.split, t.instance_index))
       ) AS is_flagged
FROM read_json(?, format = 'newline_delimited', columns = {
    source: 'VARCHAR', shard: 'VARCHAR', row: 'BIGINT', kind: 'VARCHAR',
    phenomenon: 'VARCHAR', benchmark: 'VARCHAR', split: 'VARCHAR',
    instance_index: 'BIGINT', expected: 'BOOLEAN'}) t
WHERE benchmark IS NULL OR benchmark IN (SELECT benchmark FROM report.benchmarks)

-- name: benchmarks
-- `n_found`: planted items that were found. `n_false_alarms`: findings that were not planted, or
-- planted as negatives.
SELECT b.benchmark,
       (SELECT count(*) FROM report.items i WHERE i.benchmark = b.benchmark) AS n_items,
       (SELECT count(DISTINCT (split, instance_index))
          FROM flagged f WHERE f.benchmark = b.benchmark) AS n_leaked,
       (SELECT count(*) FROM truth t WHERE t.benchmark = b.benchmark AND expected) AS n_planted,
       (SELECT count(*) FROM truth t
         WHERE t.benchmark = b.benchmark AND expected AND is_flagged) AS n_found,
       (SELECT count(*) FROM flagged f
         WHERE f.benchmark = b.benchmark AND NOT EXISTS (
             FROM truth t
             WHERE t.kind = 'plant' AND t.expected IS DISTINCT FROM false
               AND (t.source, t.file, t.row) = (f.source, f.shard, f.row)
               AND (t.benchmark, t.split, t.instance_index)
                 = (f.benchmark, f.split, f.instance_index))) AS n_false_alarms
FROM report.benchmarks b ORDER BY b.benchmark

-- name: phenomena
-- `n_expected`: expected to be flagged. `n_wrong`: flagged where it must not be, or not flagged
-- where it must.
SELECT kind, phenomenon, count(*) AS n, count(*) FILTER (is_flagged) AS n_flagged,
       count(*) FILTER (expected) AS n_expected,
       count(*) FILTER (expected IS NOT NULL AND expected <> is_flagged) AS n_wrong
FROM truth GROUP BY kind, phenomenon ORDER BY kind DESC, phenomenon
