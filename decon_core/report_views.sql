-- The report's views: what people ask of it. Run once, into a new database, by report.py.

CREATE VIEW item_status AS
SELECT i.benchmark, i.split, i.instance_index, i.config, i.question,
       CASE WHEN f.n_documents > 0 THEN 'leaked'
            WHEN NOT i.is_indexed THEN 'not indexable'
            ELSE 'clean' END AS status,
       coalesce(f.n_documents, 0) AS n_documents,
       f.best_score,
       f.found_by
FROM items i
LEFT JOIN (
    SELECT benchmark, split, instance_index,
           count(DISTINCT (shard_name, source, row)) AS n_documents,
           max(score) AS best_score,
           string_agg(DISTINCT detector, ', ' ORDER BY detector) AS found_by
    FROM matches WHERE is_contaminated
    GROUP BY benchmark, split, instance_index
) f USING (benchmark, split, instance_index);
COMMENT ON VIEW item_status IS
    'Every benchmark item with the verdict: leaked (by any rule), clean, or not indexable (by none)';

CREATE VIEW by_benchmark AS
SELECT benchmark, split, count(*) AS n_items,
       count(*) FILTER (status = 'leaked') AS n_leaked,
       count(*) FILTER (status = 'not indexable') AS n_not_indexable,
       count(*) FILTER (status = 'leaked') / count(*) AS leak_rate,
       sum(n_documents)::BIGINT AS n_leaks
FROM item_status
GROUP BY benchmark, split
ORDER BY benchmark, split;
COMMENT ON VIEW by_benchmark IS
    'Per benchmark and split: items, how many leaked; n_leaks counts pairs of item and document';

CREATE VIEW by_source AS
SELECT s.source, s.n_documents, s.n_unreadable,
       coalesce(f.n_contaminated_documents, 0) AS n_contaminated_documents,
       coalesce(f.n_leaked_items, 0) AS n_leaked_items,
       coalesce(f.n_contaminated_documents, 0) / nullif(s.n_documents, 0)
           AS contaminated_share
FROM (
    SELECT source, sum(n_documents)::BIGINT AS n_documents,
           sum(n_unreadable)::BIGINT AS n_unreadable
    FROM shards GROUP BY source
) s
LEFT JOIN (
    SELECT source,
           count(DISTINCT (shard_name, row)) AS n_contaminated_documents,
           count(DISTINCT (benchmark, split, instance_index)) AS n_leaked_items
    FROM matches WHERE is_contaminated
    GROUP BY source
) f USING (source)
ORDER BY s.source;
COMMENT ON VIEW by_source IS
    'Per source: documents read, documents that hold a leak, items that leaked from there';

CREATE VIEW by_benchmark_and_source AS
SELECT benchmark, source, count(DISTINCT (split, instance_index)) AS n_leaked,
       count(DISTINCT (shard_name, row)) AS n_documents
FROM matches
WHERE is_contaminated
GROUP BY benchmark, source
ORDER BY benchmark, source;
COMMENT ON VIEW by_benchmark_and_source IS
    'Per benchmark and source: leaked items and the documents they leaked into';

CREATE VIEW items_by_rule AS
SELECT i.benchmark, i.config, i.split, i.instance_index, i.rule,
       CASE WHEN f.n_documents > 0 THEN 'leaked'
            WHEN NOT i.is_visible THEN 'not indexable'
            ELSE 'clean' END AS status,
       coalesce(f.n_documents, 0) AS n_documents,
       f.best_score,
       i.reason, i.detail
FROM indexability i
LEFT JOIN (
    SELECT benchmark, split, instance_index, detector AS rule,
           count(DISTINCT (shard_name, source, row)) AS n_documents,
           max(score) AS best_score
    FROM matches WHERE is_contaminated
    GROUP BY ALL
) f USING (benchmark, split, instance_index, rule);
COMMENT ON VIEW items_by_rule IS
    'Every benchmark item with the verdict of each chosen rule, and why a rule cannot see it';

CREATE VIEW by_rule AS
SELECT i.benchmark, i.rule,
       count(*) FILTER (i.status = 'leaked') AS n_leaked,
       coalesce(any_value(f.n_documents), 0) AS n_documents,
       count(*) FILTER (i.status = 'leaked' AND s.found_by = i.rule) AS n_leaked_by_it_alone
FROM items_by_rule i
JOIN item_status s USING (benchmark, split, instance_index)
LEFT JOIN (
    SELECT benchmark, detector AS rule, count(DISTINCT (shard_name, source, row)) AS n_documents
    FROM matches WHERE is_contaminated
    GROUP BY ALL
) f ON (f.benchmark, f.rule) = (i.benchmark, i.rule)
GROUP BY i.benchmark, i.rule
ORDER BY i.benchmark, i.rule;
COMMENT ON VIEW by_rule IS
    'Per benchmark and chosen rule: items that leaked, documents they leaked into, items that only this rule finds';

CREATE VIEW indexability_by_rule AS
SELECT benchmark, rule, count(*) AS n_items,
       count(*) FILTER (is_visible) AS n_visible,
       count(*) FILTER (is_visible) / count(*) AS share,
       mode(reason ORDER BY reason) AS most_common_reason
FROM indexability
GROUP BY benchmark, rule
ORDER BY benchmark, rule;
COMMENT ON VIEW indexability_by_rule IS
    'Per benchmark and chosen rule: items that the rule can see, and why most of the others not';
