"""The Arrow schemas of neighbours."""

from __future__ import annotations

import pyarrow as pa

from decon_core.schemas import field, required

# One row per benchmark item and neighbour.
NEIGHBOURS = pa.schema(
    [
        required("benchmark", pa.string(), "name of the benchmark"),
        required("split", pa.string(), "split of the item"),
        required("instance_index", pa.int64(), "row of the item within its split"),
        required("rank", pa.int64(), "rank by similarity; 1: the nearest in the sample"),
        required("similarity", pa.float64(), "cosine similarity of item and paragraph"),
        required("pair", pa.string(), "key of the item and paragraph; `text_id` in `matches`"),
        required("source", pa.string(), "name of the source"),
        required("shard_name", pa.string(), "name of the shard within its source"),
        required("shard", pa.string(), "fingerprint of the shard"),
        required("row", pa.int64(), "row of the document in the shard"),
        field("doc_id", pa.string(), "the document's own id, if it has one"),
        required("start", pa.int64(), "first character of the paragraph in the document"),
        required("stop", pa.int64(), "character after the last of the paragraph"),
        field("text", pa.string(), "the paragraph; null if the report has no corpus text"),
        required("weight", pa.float64(), "documents of the source per sampled document"),
        required(
            "stands_for",
            pa.float64(),
            "number of near paragraphs that this one represents; 1 unless drawn at random",
        ),
    ]
)

# One row per benchmark, source and lower edge of similarity.
SIMILARITY = pa.schema(
    [
        required("benchmark", pa.string(), "name of the benchmark"),
        required("source", pa.string(), "name of the source"),
        required("similarity", pa.float64(), "lower edge of the bin, which is 0.05 wide"),
        required("n_items", pa.int64(), "items whose best similarity is in the bin"),
        required("n_documents", pa.int64(), "sampled documents at least this similar to any item"),
        required("share", pa.float64(), "these documents as a share of the sample"),
        required("low", pa.float64(), "lower end of the share's 95 % Wilson interval"),
        required("high", pa.float64(), "upper end of the share's 95 % Wilson interval"),
        required("n_estimated", pa.float64(), "the share times all documents of the source"),
    ]
)

# One row per source: its sample.
STRATA = pa.schema(
    [
        required("source", pa.string(), "name of the source"),
        required("n_documents", pa.int64(), "documents of the source"),
        required("n_sampled", pa.int64(), "documents in the sample"),
        required("n_paragraphs", pa.int64(), "paragraphs of these documents"),
        required("n_without_paragraph", pa.int64(), "sampled documents too short for a paragraph"),
        required("n_unreadable", pa.int64(), "rows of the source that could not be read"),
        required("weight", pa.float64(), "documents of the source per sampled document"),
    ]
)

# One row per paragraph of a sampled document of a shard, in order.
PARAGRAPHS = pa.schema(
    [
        required("row", pa.int64(), "row of the document in the shard"),
        field("doc_id", pa.string(), "the document's own id, if it has one"),
        required("start", pa.int64(), "first character of the paragraph in the document"),
        required("stop", pa.int64(), "character after the last of the paragraph"),
        required("text", pa.string(), "the paragraph"),
    ]
)
