-- The matched texts of matches in Parquet files. The document shown is the first one with the best match.
-- A text needs no review if each of its items is a leak or has no answer in the document by other words.
-- `rank_at_place` counts the texts of a benchmark that were found at the same characters.
-- `priority` takes turns between benchmarks and classes, and between both ends of the scores: leaks with
-- the lowest scores are as doubtful as near misses with the highest.
WITH matched AS (
    SELECT * REPLACE (needs_review AND NOT bool_or(is_contaminated OR is_no_answer) OVER (
        PARTITION BY source, shard_name, row, benchmark, split, instance_index) AS needs_review)
    FROM read_parquet($files)
),
totals AS (
    SELECT text_id,
           string_agg(DISTINCT detector, ', ' ORDER BY detector) AS detectors,
           max(score) AS score,
           bool_or(is_by_score) AS is_by_score,
           bool_or(is_contaminated) AS is_contaminated,
           bool_or(is_no_answer) AND NOT bool_or(is_contaminated) AS is_no_answer,
           bool_or(needs_review) AND NOT bool_or(is_contaminated OR is_no_answer)
               AS needs_review,
           count(DISTINCT (source, shard_name, row)) AS n_documents,
           count(*) AS n_matches
    FROM matched GROUP BY text_id
),
ranked AS (
    SELECT text_id, fingerprint, benchmark, config, split, instance_index, verdict, record, kind,
           source, shard_name, shard, row, doc_id, question_part AS text_part,
           question_overlap, answer_overlap, passage_overlap,
           question_char_start, question_char_stop, answer_char_start, answer_char_stop,
           passage_char_start, passage_char_stop,
           row_number() OVER (
               PARTITION BY text_id
               ORDER BY is_contaminated DESC, is_no_answer DESC, needs_review DESC,
                        score DESC, source, shard_name, row, detector, benchmark, split, instance_index,
                        question_char_start, question_char_stop, answer_char_start,
                        answer_char_stop, passage_char_start, passage_char_stop
           ) AS rank
    FROM matched
),
placed AS (
SELECT * EXCLUDE (rank),
       row_number() OVER (
           PARTITION BY source, shard_name, row, benchmark, question_char_start, question_char_stop,
                        answer_char_start, answer_char_stop, passage_char_start, passage_char_stop
           ORDER BY is_contaminated DESC, is_no_answer DESC, needs_review DESC, score DESC, text_id
       ) AS rank_at_place
FROM ranked JOIN totals USING (text_id) WHERE rank = 1
),
turns AS (
    SELECT *, least(
        row_number() OVER (class ORDER BY rank_at_place > $most_at_a_place, score, text_id),
        row_number() OVER (class ORDER BY rank_at_place > $most_at_a_place, score DESC, text_id)
    ) AS turn
    FROM placed
    WINDOW class AS (PARTITION BY benchmark, is_contaminated, is_no_answer, needs_review)
)
SELECT * EXCLUDE (turn),
       row_number() OVER (
           ORDER BY rank_at_place > $most_at_a_place, turn, is_contaminated DESC,
                    is_no_answer DESC, needs_review DESC, score DESC, text_id
       ) AS priority
FROM turns
ORDER BY is_contaminated DESC, is_no_answer DESC, needs_review DESC, score DESC, text_id
