-- Items by what was judged of their neighbours.

CREATE VIEW item_duplicates AS
WITH judged AS (
    SELECT pair, bool_or(is_sd) AS is_duplicate
    FROM judged_pairs WHERE detector = 'neighbours' AND is_sd IS NOT NULL
    GROUP BY pair
), of_document AS (
    SELECT benchmark, split, instance_index, source, shard_name, row,
           min(rank) FILTER (is_duplicate) AS rank,
           max(weight * stands_for) FILTER (is_duplicate) AS weight,
           min(rank) FILTER (is_duplicate IS NOT NULL) AS judged_rank,
           count(*) AS n_neighbours, count(is_duplicate) AS n_judged,
           count(*) FILTER (is_duplicate) AS n_duplicates
    FROM neighbours LEFT JOIN judged USING (pair)
    GROUP BY ALL
)
SELECT i.benchmark, i.config, i.split, i.instance_index, i.extras, s.source,
       coalesce(sum(d.n_neighbours), 0)::BIGINT AS n_neighbours,
       coalesce(sum(d.n_judged), 0)::BIGINT AS n_judged,
       coalesce(sum(d.n_duplicates), 0)::BIGINT AS n_duplicates,
       min(d.judged_rank) AS first_judged, min(d.rank) AS first_duplicate,
       coalesce(sum(d.weight), 0) AS n_documents
FROM items i CROSS JOIN neighbour_sample s
LEFT JOIN of_document d USING (benchmark, split, instance_index, source)
GROUP BY ALL;
COMMENT ON VIEW item_duplicates IS
    'Per item and source: number of neighbours, of judged neighbours and of duplicates, and the estimated number of documents with a duplicate; empty without [neighbours]';
COMMENT ON COLUMN item_duplicates.first_judged IS 'rank of the nearest judged neighbour; null if there is none';
COMMENT ON COLUMN item_duplicates.first_duplicate IS
    'rank of the nearest duplicate; null if there is none';
COMMENT ON COLUMN item_duplicates.n_documents IS
    'estimated number of documents of the source with a duplicate; a lower bound, because only neighbours count';

-- Groups of a number are named by their edges, as 1200 to 1600.
CREATE MACRO group_of(value, edges) AS CASE
    WHEN len(edges) = 0 OR TRY_CAST(value AS DOUBLE) IS NULL THEN value
    WHEN TRY_CAST(value AS DOUBLE) < edges[1] THEN concat('below ', edges[1])
    WHEN TRY_CAST(value AS DOUBLE) >= edges[-1] THEN concat('from ', edges[-1])
    ELSE concat(list_max(list_filter(edges, lambda e: e <= TRY_CAST(value AS DOUBLE))), ' to ',
                list_min(list_filter(edges, lambda e: e > TRY_CAST(value AS DOUBLE)))) END;

-- The share of judged items with a duplicate among their nearest neighbours, by any column of items.
CREATE MACRO duplicates_by(name, edges := [], top := NULL) AS TABLE
SELECT benchmark, category, count(*) AS n_items,
       count(*) FILTER (is_judged) AS n_judged,
       count(*) FILTER (is_duplicated) AS n_duplicated,
       n_duplicated / nullif(n_judged, 0) AS share,
       wilson_low(n_duplicated, n_judged) AS low,
       wilson_high(n_duplicated, n_judged) AS high,
       avg(10000 * n_documents / n_of_source) FILTER (is_judged) AS per_10_000
FROM (
    SELECT benchmark, split, instance_index, category,
           coalesce(bool_or(first_judged <= coalesce(top, first_judged)), false) AS is_judged,
           coalesce(bool_or(first_duplicate <= coalesce(top, first_duplicate)), false)
               AS is_duplicated,
           sum(d.n_documents) AS n_documents, sum(s.n_documents) AS n_of_source
    FROM (
        SELECT *, group_of(CASE name
            WHEN 'source' THEN source WHEN 'split' THEN split WHEN 'config' THEN config
            WHEN 'benchmark' THEN benchmark
            ELSE json_extract_string(extras, concat('$."', name, '"')) END, edges) AS category
        FROM item_duplicates
    ) d JOIN neighbour_sample s USING (source)
    GROUP BY benchmark, split, instance_index, category
)
GROUP BY benchmark, category
ORDER BY benchmark, category;

CREATE VIEW duplicates_by_benchmark AS
SELECT benchmark, category AS split, * EXCLUDE (benchmark, category) FROM duplicates_by('split');
COMMENT ON VIEW duplicates_by_benchmark IS
    'Per benchmark and split: number of items, of items with a judged neighbour, and of those with a duplicate among their neighbours; their share of the judged items, with its 95 % interval; average number of documents in 10,000 that contain a duplicate of a judged item (a lower bound)';

CREATE VIEW duplicates_by_source AS
SELECT benchmark, category AS source, * EXCLUDE (benchmark, category) FROM duplicates_by('source');
COMMENT ON VIEW duplicates_by_source IS
    'Like duplicates_by_benchmark, but per benchmark and source; counts only neighbours in that source';
