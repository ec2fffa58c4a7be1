-- What the tables of a report take from the lines that were read.

-- name: matched_texts
-- Each with what its first match has of it.
SELECT text_id, fingerprint, benchmark, split, instance_index, 'decon' AS detectors,
       max(score) OVER same AS score, is_by_score, is_contaminated,
       count(DISTINCT (source, shard_name, row)) OVER same AS n_documents,
       count(*) OVER same AS n_matches, source, shard_name, row,
       question_overlap, answer_overlap, passage_overlap,
       question, answer, passage, text, text_marks, why_no_text
FROM lines
WINDOW same AS (PARTITION BY text_id)
QUALIFY row_number() OVER (PARTITION BY text_id ORDER BY file_row_number) = 1
ORDER BY text_id

-- name: items
-- All are indexed, as they have a match.
WITH numbered AS (
    SELECT *, row_number() OVER (
        PARTITION BY benchmark, split, instance_index, fingerprint ORDER BY file_row_number
    ) AS nth
    FROM lines
)
SELECT benchmark, split, instance_index, first(question ORDER BY file_row_number) AS question,
       coalesce(bool_or(answer <> ''), false) AS has_answer, true AS is_indexed,
       coalesce(
           list(fingerprint ORDER BY file_row_number) FILTER (nth = 1 AND fingerprint <> ''), []
       ) AS fingerprints
FROM numbered
GROUP BY benchmark, split, instance_index
ORDER BY benchmark, split, instance_index

-- name: benchmarks
SELECT DISTINCT benchmark FROM lines ORDER BY benchmark

-- name: shards
SELECT DISTINCT source, shard_name FROM lines
