"""Paragraphs of a sample of the corpus that are nearest to benchmark items by their embeddings."""

from decon_core.feature import Feature

FEATURE = Feature(
    name="neighbours",
    requires=("endpoints", "similarity"),
    tables={"neighbours": "decon_core.features.neighbours.settings:Neighbours"},
    columns={"neighbours": "decon_core.features.neighbours.schemas:NEIGHBOURS"},
    products={"neighbours": "decon_core.features.neighbours.product:is_missing"},
    report="decon_core.features.neighbours.product:report_addition",
    report_tables={
        "neighbours": "decon_core.features.neighbours.schemas:NEIGHBOURS",
        "neighbour_similarity": "decon_core.features.neighbours.schemas:SIMILARITY",
        "neighbour_sample": "decon_core.features.neighbours.schemas:STRATA",
    },
    nominations={"neighbours": "decon_core.features.neighbours.product:nominations"},
)
