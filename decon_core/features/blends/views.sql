-- Views of blends in the report, run after those of the core.

CREATE VIEW composition_by_blend AS
SELECT blend, is_current, phase, label, value, n_documents,
       n_documents / nullif(sum(n_documents) OVER whole, 0) AS share_of_documents,
       n_tokens, n_tokens / nullif(sum(n_tokens) OVER whole, 0) AS share_of_tokens
FROM (
    SELECT blend, bool_and(is_current) AS is_current, phase, label, value,
           sum(n_documents)::BIGINT AS n_documents, sum(n_tokens)::BIGINT AS n_tokens
    FROM (
        SELECT blend, is_current, phase, label, value,
               n_drawn - coalesce(n_replaced, 0) AS n_documents,
               n_drawn_tokens - coalesce(n_replaced_tokens, 0) AS n_tokens
        FROM blend_sources JOIN source_groups USING (source)
        UNION ALL
        SELECT blend, is_current, phase, label, items_of_benchmarks(), n_test_texts, n_test_tokens
        FROM blend_phases CROSS JOIN (SELECT DISTINCT label FROM source_groups)
        WHERE n_test_texts > 0
    )
    GROUP BY GROUPING SETS ((blend, phase, label, value), (blend, label, value))
)
WINDOW whole AS (PARTITION BY blend, phase, label)
ORDER BY blend, phase NULLS LAST, label <> 'source', label, n_tokens DESC, value;
COMMENT ON VIEW composition_by_blend IS
    'Documents and tokens per blend and phase (null: all phases), by source and by each label of the sources, with their shares; benchmark items have a row of their own';
