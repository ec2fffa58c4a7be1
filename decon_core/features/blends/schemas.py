"""Tables of a blend: its texts, the documents that items replaced, and the items."""

import pyarrow as pa

from decon_core.schemas import field, required

_ITEM = (
    field("benchmark", pa.string(), "of a test item: name of the benchmark"),
    field("split", pa.string(), "of a test item: its split"),
    field("instance_index", pa.int64(), "of a test item: its row within the split"),
    field("sub_index", pa.int64(), "of a test item: which of several questions of that row"),
)

# One row per document of a blend, in the order in which it is read.
BLENDED = pa.schema(
    [
        required("part", pa.int32(), "number of the part, from 0"),
        required("row", pa.int64(), "row in the part"),
        required("n_tokens", pa.int64(), "canonical tokens"),
        required("source", pa.string(), "of the document, or of the one that a test item replaced"),
        field("shard", pa.string(), "name of its shard in the corpus; null: a test item"),
        field("corpus_row", pa.int64(), "row in that shard; null: a test item"),
        field("time", pa.int32(), "how often its source had been gone through; null: a test item"),
        *_ITEM,
        field("form", pa.string(), "of a test item: full, source, target, or how it was rewritten"),
        field("copy", pa.int64(), "of a test item: how many copies of it came before"),
    ]
)

# One row per document that a test item replaced.
REPLACED = pa.schema(
    [
        required("contamination", pa.int32(), "which of the blend's contaminations, from 0"),
        required("place", pa.int64(), "number of the document in the stream, as it was drawn"),
        required("source", pa.string(), "name of the source"),
        required("shard", pa.string(), "name of the shard in the corpus"),
        required("corpus_row", pa.int64(), "row in that shard"),
        required("time", pa.int32(), "how often its source had been gone through"),
        required("n_tokens", pa.int64(), "canonical tokens"),
    ]
)

# One row per item of the benchmarks that contaminate a blend.
BLEND_ITEMS = pa.schema(
    [
        required("contamination", pa.int32(), "which of the blend's contaminations, from 0"),
        *_ITEM,
        required("is_seen", pa.bool_(), "whether it is in the blend; the others are held back"),
        required("n_copies", pa.int64(), "texts of it that are in the blend"),
    ]
)
