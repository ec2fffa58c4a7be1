"""The items that paragraphs are compared with, and their neighbours as rows like matches."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.decisions.candidates import key_of_texts
from decon_core.decisions.nominations import NOMINATED
from decon_core.storage.store import Store

ITEM = ["benchmark", "split", "instance_index"]
_OF_RECORD = ("config", "question", "answer", "is_correct", "fingerprint")


def items_of(store: Store, version: Version, what: str) -> pl.DataFrame:
    """Return the items of a benchmark by their first record, with the text that is embedded.

    `what`: question, answer or both. Of several answers the first right one is taken. Items without
    an answer are left out where only that is embedded.
    """
    records = pl.DataFrame(load_records(store, version, columns=[*ITEM, *_OF_RECORD]))
    is_right = pl.col("is_correct").fill_null(value=True) & (pl.col("answer").fill_null("") != "")
    items = (
        records.with_row_index("record")
        .group_by(ITEM, maintain_order=True)
        .agg(
            pl.col("record", "config", "question", "fingerprint").first(),
            pl.col("answer").filter(is_right).first(),
        )
    )
    question, answer = pl.col("question"), pl.col("answer")
    both = pl.concat_str(question, answer, separator="\n\n", ignore_nulls=True)
    texts = {"question": question, "answer": answer, "both": both}
    return items.with_columns(texts[what].alias("embedded")).drop_nulls("embedded")


def with_pairs(neighbours: pl.DataFrame) -> pl.DataFrame:
    """Add the key of each pair, which is made from its two texts, as of a file of candidates."""
    texts = neighbours.select("benchmark", "question", "text")
    pairs = [key_of_texts(*row) for row in texts.iter_rows()]
    return neighbours.with_columns(pl.Series("pair", pairs, pl.String))


def nominated(neighbours: pa.Table, items: pl.DataFrame, detector: str, key: str) -> pa.Table:
    """Return the neighbours of a benchmark as rows like matches, by shard."""
    of_items = items.select(*ITEM, "record", "config", "fingerprint")
    rows = pl.DataFrame(neighbours).join(of_items, on=ITEM, maintain_order="left")
    # Two shards may have the same content: their matches are the same.
    rows = rows.unique(["shard", "row", "start", *ITEM], keep="first", maintain_order=True)
    kept = ["shard", "row", "doc_id", *ITEM, "record", "config", "fingerprint", "text"]
    known = rows.select(
        *kept,
        pl.col("pair").alias("text_id"),
        pl.lit("visible").alias("slot_kind"),
        pl.lit(detector).alias("detector"),
        pl.lit(key).alias("detector_fingerprint"),
        pl.col("similarity").clip(lower_bound=0.0).alias("base_score"),
        pl.col("start").alias("question_char_start"),
        pl.col("stop").alias("question_char_stop"),
    ).sort("shard", "row", "question_char_start", *ITEM)
    missing = [
        pl.lit(None if field.nullable else 0, pl.Schema(NOMINATED)[field.name]).alias(field.name)
        for field in NOMINATED
        if field.name not in known.columns
    ]
    return known.with_columns(missing).select(NOMINATED.names).to_arrow().cast(NOMINATED)
