-- What a report reads from the files of a folder scan.

-- name: matches
-- The columns of matches.parquet that a report uses.
SELECT $source AS source, file AS shard_name, shard, row, doc_id, detector, benchmark, config,
       split, instance_index, record, fingerprint, text_id, is_correct, base_score,
       question_overlap, answer_overlap, passage_overlap, kind, searched_text, n_matched, n_grams,
       question_tokens, total_tokens, score, is_by_score, holds_to, verdict, is_contaminated,
       needs_review, is_no_answer
FROM read_parquet($path)

-- name: items
SELECT benchmark, any_value(config) AS config, split, instance_index,
       max(n_records) AS n_records, any_value(fingerprints) AS fingerprints,
       bool_or(is_visible AND CASE
           WHEN list_contains($with_own::VARCHAR[], benchmark)
           THEN list_contains($own::VARCHAR[], benchmark || ' ' || detector)
           ELSE list_contains($proving::VARCHAR[], detector) END) AS is_indexed,
       CASE WHEN NOT is_indexed THEN coalesce(any_value(reason), $only_review) END
           AS why_not_indexed
FROM read_parquet($path)
GROUP BY benchmark, split, instance_index
ORDER BY benchmark, split, instance_index

-- name: visibility
SELECT benchmark, config, split, instance_index, detector, is_visible, reason, n_records, detail
FROM read_parquet($path)
