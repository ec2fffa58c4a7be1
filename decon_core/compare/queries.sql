-- The rows of a comparison, from the tables of differences.sql.

-- name: rates
FROM rates

-- name: n_shards
SELECT standing, count(*) AS n FROM shard_pairs GROUP BY standing ORDER BY standing

-- name: n_findings
SELECT kind, count(*) AS n FROM findings GROUP BY kind ORDER BY kind

-- name: findings
SELECT source, shard_name, row, doc_id, benchmark, split, instance_index,
       score_of_first, score_of_second, detectors_of_first, detectors_of_second,
       verdict_of_first, verdict_of_second, class_of_first, class_of_second
FROM findings WHERE kind = ?
ORDER BY source, shard_name, row, benchmark, split, instance_index LIMIT ?

-- name: not_comparable
SELECT why_not, count(*) FILTER (is_in_first) AS n_in_first,
       count(*) FILTER (is_in_second) AS n_in_second
FROM findings WHERE kind = 'not comparable' GROUP BY why_not ORDER BY why_not

-- name: items
SELECT benchmark, split, instance_index, status_of_first, status_of_second, is_comparable
FROM item_changes ORDER BY benchmark, split, instance_index LIMIT ?

-- name: statuses
SELECT status_of_first, status_of_second, count(*) AS n,
       count(*) FILTER (is_comparable) AS n_comparable
FROM item_changes GROUP BY ALL ORDER BY ALL

-- name: shards
SELECT coalesce(source_of_first, source_of_second) AS source, shard_name, standing
FROM shard_pairs WHERE standing <> 'in both' ORDER BY ALL LIMIT ?
