"""n-grams of benchmarks that many documents hold: boilerplate, not evidence.

A scan counts in how many documents each indexed n-gram stands (`gram_counts.py`); a file for every
shard and benchmark version keeps that, beside the tile. Here they are added up by source. What is
common at the policy's share is frozen, as idf is: what counts as a leak must not move while it is
decided.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import TOLERANCE, Policy
from decon_core.corpus.packs import Pack
from decon_core.errors import MissingError, Problem
from decon_core.index.ngram_counts import Grams, grams_of
from decon_core.index.parts import Part, open_part
from decon_core.kernels import clusters
from decon_core.schemas import COMMON, GRAM_COUNTS
from decon_core.storage.store import (
    Store,
    read_json,
    read_parquet,
    tiles_with_rows,
    write_json,
    write_parquet,
)
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary

Integers = npt.NDArray[np.int64]

Lacking = Mapping[str, Collection[str]]  # by fingerprint of a shard, benchmarks without a tile

_NONE: Lacking = MappingProxyType({})
_TABLE_MB = 16
_TILES_AT_ONCE = 500  # whose content is in memory


# Frozen -------------------------------------------------------------------------------------------


def freeze_common(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    *,
    index: str,
    scan: str,
    lacking: Lacking = _NONE,
) -> pa.Table:
    """Add up over all shards, and make what is common the list that counts from now on.

    `lacking`: the benchmarks that shards could not be scanned against; those are left out.
    """
    tables = [COMMON.empty_table()]
    sources: dict[str, list[Pack]] = defaultdict(list)
    for pack in packs:
        sources[pack.source.name].append(pack)
    for source, own in sorted(sources.items()):
        shards = [shard.fingerprint for pack in own for shard in pack.shards]
        sizes = {
            shard: read_json(store.ledger(scan, shard))["n_documents"]
            for shard in shards
            if len(lacking.get(shard, ())) < max(len(versions), 1)
        }
        for version in sorted(versions, key=lambda version: version.benchmark):
            read = [one for one in shards if version.benchmark not in lacking.get(one, ())]
            n_documents = sum(sizes[shard] for shard in read)
            paths = [store.gram_counts(scan, shard, version.fingerprint) for shard in read]
            counted = _total(paths)
            common = counted.filter(_are_common(counted["n_documents"], n_documents, policy))
            told = _told(store, version, common, policy, index=index)
            tables.append(_named(told, source, version.benchmark, n_documents))
    table = pa.concat_tables(tables)
    fingerprint = sha256(repr(table.to_pydict()).encode()).hexdigest()[:16]
    write_parquet(store.common(fingerprint), table)
    write_json(
        store.current_common,
        {
            "fingerprint": fingerprint,
            "scan": scan,
            "share": _limits(policy),
            "inputs": _inputs(packs, versions, lacking),
        },
    )
    return table


def _are_common(counts: pa.ChunkedArray, n_documents: int, policy: Policy) -> pa.ChunkedArray:
    # 0.29 * 100 is 28.999999999999996, and 29 documents are not more than that.
    limit = math.floor(policy.common_share * n_documents + TOLERANCE)
    return pc.and_(
        pc.greater(counts, limit),
        pc.greater_equal(counts, policy.common_least_documents),
    )


def has_common(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
    lacking: Lacking = _NONE,
) -> bool:
    """Whether the list that counts was added up from these very packs and versions."""
    if not store.current_common.is_file():
        return False
    value = read_json(store.current_common)
    today = (scan, _limits(policy), _inputs(packs, versions, lacking))
    return (value["scan"], value["share"], value["inputs"]) == today


def _limits(policy: Policy) -> list[float]:
    return [policy.common_share, policy.common_least_documents]


def _inputs(packs: Sequence[Pack], versions: Sequence[Version], lacking: Lacking) -> str:
    shards = sorted(shard.fingerprint for pack in packs for shard in pack.shards)
    named = sorted(f"{version.benchmark} {version.fingerprint}" for version in versions)
    absent = sorted(f"{shard} without {sorted(names)}" for shard, names in lacking.items())
    return sha256("\n".join([*shards, *named, *absent]).encode()).hexdigest()[:16]


def _total(paths: Sequence[Path]) -> pa.Table:
    """Counts of many shards, summed by n-gram. One file after the other takes six times as long."""
    n_documents = pl.col("n_documents").cast(pl.Int64).sum()
    sums = [pl.LazyFrame(GRAM_COUNTS.empty_table())]
    for first in range(0, len(paths), _TILES_AT_ONCE):
        contents = tiles_with_rows(paths[first : first + _TILES_AT_ONCE], GRAM_COUNTS)
        if contents:
            counts = pl.scan_parquet(contents)
            sums.append(counts.group_by("place").agg(n_documents).collect().lazy())
    every = pl.concat(sums, how="vertical_relaxed")
    return every.group_by("place").agg(n_documents).sort("place").collect().to_arrow()


def _named(told: pa.Table, source: str, benchmark: str, n_documents: int) -> pa.Table:
    n = told.num_rows
    columns = {name: told[name] for name in told.column_names}
    columns["source"] = pa.repeat(pa.scalar(source), n)
    columns["benchmark"] = pa.repeat(pa.scalar(benchmark), n)
    columns["share"] = pc.divide(told["n_documents"].cast(pa.float64()), float(n_documents or 1))
    return pa.table({name: columns[name] for name in COMMON.names}).cast(COMMON)


def _told(
    store: Store, version: Version, common: pa.Table, policy: Policy, *, index: str
) -> pa.Table:
    """How the n-grams read, cut out of a question that holds each, and how many others do."""
    places = common["place"].to_numpy().astype(np.int64)
    grams, part = _grams(store.root, version, index, policy.ngram_size)
    numbers = np.searchsorted(grams.first, places)
    n_questions = np.bincount(grams.rows.values, minlength=len(grams))[numbers]
    field = part.entries.fields["question"]
    questions = np.searchsorted(field.texts.offsets, places, "right") - 1
    texts = []
    if places.size:
        strings = load_records(store, version, columns=["question"])["question"].to_pylist()
        entry_of = np.zeros(len(field.texts), np.int64)
        entry_of[field.of_entry[::-1]] = np.arange(field.of_entry.size)[::-1]
        encoder = Encoder(
            load_tokenizer(policy.tokenizer_str),
            FixedVocabulary(part.entries.ids),
            form=policy.form,
            table_mb=_TABLE_MB,
        )
        for place, question in zip(places.tolist(), questions.tolist(), strict=True):
            text = strings[int(part.entries.records[entry_of[question]])]
            content = np.frombuffer(text.encode(), np.uint8)
            encoder.encode(content, np.zeros(1, np.int64), np.array([content.size]))
            at = place - int(field.texts.offsets[question])
            start, stop = encoder.places(0, text).characters(at, at + policy.ngram_size)
            texts.append(text[start:stop])
    return pa.table(
        {
            "place": common["place"],
            "text": pa.array(texts, pa.string()),
            "n_questions": pa.array(n_questions, pa.int64()),
            "n_documents": common["n_documents"],
        }
    )


@lru_cache(maxsize=16)
def _grams(root: Path, version: Version, index: str, size: int) -> tuple[Grams, Part]:
    part = open_part(Store(root), version, index)
    return grams_of(part.entries.fields["question"].texts, size), part


def current_common(store: Store, scan: str, policy: Policy) -> tuple[str, pa.Table]:
    """The list that counts, and its fingerprint. Refused when it was frozen from something else."""
    remedy = (
        "`decon-assets run`, or materialize the asset `common_ngrams`; "
        "or set policy.leave_out_common = false"
    )
    if not store.current_common.is_file():
        raise MissingError(
            Problem(str(store.current_common), "no list of common n-grams", "one", remedy)
        )
    value: dict[str, Any] = read_json(store.current_common)
    if (value["scan"], value["share"]) != (scan, _limits(policy)):
        found = "a list of common n-grams of another scan or share"
        raise MissingError(Problem(str(store.current_common), found, "one of today's", remedy))
    fingerprint = value["fingerprint"]
    return fingerprint, read_parquet(store.common(fingerprint), schema=COMMON)


def places_of(common: pa.Table, source: str) -> dict[str, Integers]:
    """The places of what is common in a source, by benchmark."""
    own = common.filter(pc.equal(common["source"], source))
    benchmarks = np.asarray(own["benchmark"].to_numpy(zero_copy_only=False))
    places = own["place"].to_numpy().astype(np.int64)
    return {name: places[benchmarks == name] for name in sorted({*benchmarks.tolist()})}


# Left out -----------------------------------------------------------------------------------------


def without_common(
    matches: pa.Table,
    places: Integers,
    store: Store,
    version: Version,
    policy: Policy,
    *,
    index: str,
) -> pa.Table:
    """The matches of `decon` with a benchmark as if the n-grams at these places were not there.

    A match must have reached the evidence floor with them: this only ever takes matches away.
    """
    is_decon = pc.equal(matches["detector"], "decon").to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(is_decon)
    if not rows.size or not places.size:
        return matches
    overlap, base = _rescored(matches.take(pa.array(rows)), places, store, version, policy, index)
    for column, lowered in (("question_overlap", overlap), ("base_score", base)):
        values = matches[column].to_numpy().copy()
        values[rows] = np.minimum(values[rows], lowered)
        at = matches.schema.get_field_index(column)
        matches = matches.set_column(at, matches.schema.field(at), pa.array(values))
    return matches


def _rescored(
    matches: pa.Table,
    places: Integers,
    store: Store,
    version: Version,
    policy: Policy,
    index: str,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Overlap of the question and base score, without the n-grams at these places."""
    grams, part = _grams(store.root, version, index, policy.ngram_size)
    is_common = np.zeros(len(grams), np.bool_)
    is_common[np.searchsorted(grams.first, places)] = True
    fields = part.entries.fields
    entries = np.searchsorted(part.entries.records, matches["record"].to_numpy())
    questions = fields["question"].of_entry[entries]
    answers = fields["answer"].of_entry[entries]
    n_different = np.append(grams_of(fields["answer"].texts, 1).rows.lengths, 0)
    overlaps = np.zeros((matches.num_rows, 3))
    for column, name in enumerate(("question_overlap", "answer_overlap", "passage_overlap")):
        overlaps[:, column] = matches[name].fill_null(0.0).to_numpy()
    for row, (question, matched) in enumerate(
        zip(questions.tolist(), matches["matched"].to_pylist(), strict=True)
    ):
        numbers = grams.rows.row(question)
        bits = np.unpackbits(np.frombuffer(matched, np.uint8), count=numbers.size).astype(np.bool_)
        df = part.df["question"].row(question).tolist()
        overlaps[row, 0] = _share(part.n_records, df, bits.tolist(), is_common[numbers].tolist())
    scores = np.empty(matches.num_rows)
    clusters.base_scores(
        grams.rows.lengths[questions],
        n_different[answers],
        (fields["passage"].of_entry[entries] >= 0).astype(np.uint8),
        overlaps,
        scores,
    )
    return overlaps[:, 0], scores


def _share(
    n_records: int, df: Sequence[int], is_matched: Sequence[bool], is_common: Sequence[bool]
) -> float:
    """Summed in order, as the kernels do."""
    part = whole = 0.0
    for records, matched, common in zip(df, is_matched, is_common, strict=True):
        if not common:
            weight = math.log(n_records / records)
            whole += weight
            part += weight if matched else 0.0
    return part / whole if whole > 0 else 0.0
