"""A blend in the store: its folders, and its tables of texts, replaced documents, and items."""

from pathlib import Path

from decon_core.schemas import field, required
from decon_core.storage.store import Store

TEXTS_FILE = "texts.parquet"
REPLACED_FILE = "replaced.parquet"
ITEMS_FILE = "items.parquet"


def blend_folder(store: Store, name: str) -> Path:
    return store.root / "blends" / name


def blend_manifest(store: Store, name: str) -> Path:
    return store.root / "manifests/blends" / name / "manifest.json"


_ITEM = (
    field("benchmark", "string", "benchmark of a test item"),
    field("split", "string", "split of a test item"),
    field("instance_index", "int64", "row of a test item within its split"),
    field("sub_index", "int64", "number of the question of a test item within its row"),
)

# One row per document of a blend, in the order in which it is read.
BLENDED = (
    required("part", "int32", "number of the part, from 0"),
    required("row", "int64", "row in the part"),
    required("n_tokens", "int64", "canonical tokens"),
    required("source", "string", "source of the document, or of the one that was replaced"),
    field("shard", "string", "shard of the document in the corpus; null for a test item"),
    field("corpus_row", "int64", "row in that shard; null for a test item"),
    field("time", "int32", "number of earlier passes over its source; null for a test item"),
    *_ITEM,
    field("form", "string", "form of a test item: full, source, target, or a rewriting"),
    field("copy", "int64", "number of earlier copies of a test item"),
)

# One row per document that a test item replaced.
REPLACED = (
    required("contamination", "int32", "number of the [[blend.contamination]], from 0"),
    required("place", "int64", "number of the document among those drawn, from 0"),
    required("source", "string", "name of the source"),
    required("shard", "string", "name of the shard in the corpus"),
    required("corpus_row", "int64", "row in that shard"),
    required("time", "int32", "number of earlier passes over its source"),
    required("n_tokens", "int64", "canonical tokens"),
)

# One row per item of the benchmarks that contaminate a blend.
BLEND_ITEMS = (
    required("contamination", "int32", "number of the [[blend.contamination]], from 0"),
    *_ITEM,
    required("is_seen", "bool", "whether the item is in the blend; false: it is held back"),
    required("n_copies", "int64", "number of texts of the item in the blend"),
)
