"""The columns of the tables of neighbours."""

from __future__ import annotations

from decon_core.schemas import field, required

# One row per benchmark item and neighbour.
NEIGHBOURS = (
    required("benchmark", "string", "name of the benchmark"),
    required("split", "string", "split of the item"),
    required("instance_index", "int64", "row of the item within its split"),
    required("rank", "int64", "rank by similarity; 1: the nearest in the sample"),
    required("similarity", "double", "cosine similarity of item and paragraph"),
    required("pair", "string", "key of the item and paragraph; `text_id` in `matches`"),
    required("source", "string", "name of the source"),
    required("shard_name", "string", "name of the shard within its source"),
    required("shard", "string", "fingerprint of the shard"),
    required("row", "int64", "row of the document in the shard"),
    field("doc_id", "string", "the document's own id, if it has one"),
    required("start", "int64", "first character of the paragraph in the document"),
    required("stop", "int64", "character after the last of the paragraph"),
    field("text", "string", "the paragraph; null if the report has no corpus text"),
    required("weight", "double", "documents of the source per sampled document"),
    required(
        "stands_for",
        "double",
        "number of near paragraphs that this one represents; 1 unless drawn at random",
    ),
)

# One row per benchmark, source and lower edge of similarity.
SIMILARITY = (
    required("benchmark", "string", "name of the benchmark"),
    required("source", "string", "name of the source"),
    required("similarity", "double", "lower edge of the bin, which is 0.05 wide"),
    required("n_items", "int64", "items whose best similarity is in the bin"),
    required("n_documents", "int64", "sampled documents at least this similar to any item"),
    required("share", "double", "these documents as a share of the sample"),
    required("low", "double", "lower end of the share's 95 % Wilson interval"),
    required("high", "double", "upper end of the share's 95 % Wilson interval"),
    required("n_estimated", "double", "the share times all documents of the source"),
)

# One row per source: its sample.
STRATA = (
    required("source", "string", "name of the source"),
    required("n_documents", "int64", "documents of the source"),
    required("n_sampled", "int64", "documents in the sample"),
    required("n_paragraphs", "int64", "paragraphs of these documents"),
    required("n_without_paragraph", "int64", "sampled documents too short for a paragraph"),
    required("n_unreadable", "int64", "rows of the source that could not be read"),
    required("weight", "double", "documents of the source per sampled document"),
)

# One row per paragraph of a sampled document of a shard, in order.
PARAGRAPHS = (
    required("row", "int64", "row of the document in the shard"),
    field("doc_id", "string", "the document's own id, if it has one"),
    required("start", "int64", "first character of the paragraph in the document"),
    required("stop", "int64", "character after the last of the paragraph"),
    required("text", "string", "the paragraph"),
)
