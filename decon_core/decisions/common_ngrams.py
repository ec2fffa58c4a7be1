"""Common n-grams: benchmark n-grams in so many documents that they are boilerplate, not evidence.

A scan counts the documents that contain each indexed n-gram (`scan/shard_results.py`) and stores
the counts beside each scan result. This module adds them up by source. The list of n-grams above
the policy's share is frozen, like idf, so that decisions do not shift while they are made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.detector_registry import Reads, names_where
from decon_core.config.policy import Policy
from decon_core.config.rounding import TOLERANCE
from decon_core.corpus.packs import Pack
from decon_core.errors import MissingError, Problem
from decon_core.index.ngram_counts import Grams, grams_of
from decon_core.index.parts import Part, open_part
from decon_core.kernels.scores import base_scores
from decon_core.scan.scan_results import ScanResults, with_text
from decon_core.schemas import COMMON
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet, write_parquet
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary

Integers = npt.NDArray[np.int64]

# Benchmarks without a scan result, by fingerprint of the shard.
MissingByShard = Mapping[str, Collection[str]]

_TABLE_MB = 16


def freeze_common(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    *,
    index: str,
    scan: str,
    missing: MissingByShard,
) -> pa.Table:
    """Add up the counts of all scanned shards, and store the common n-grams as the current list."""
    import pyarrow.compute as pc

    tables = [COMMON.empty_table()]
    results = ScanResults(store, scan)
    source_of = attrgetter("source.name")
    for source, members in groupby(sorted(packs, key=source_of), key=source_of):
        shards = [shard.fingerprint for pack in members for shard in pack.shards]
        sizes = {
            shard: with_text(results.ledger(shard))["n_documents"]
            for shard in shards
            if len(missing.get(shard, ())) < max(len(versions), 1)
        }
        read = {
            version.fingerprint: [
                shard for shard in shards if version.benchmark not in missing.get(shard, ())
            ]
            for version in versions
        }
        counts_of = results.gram_counts(read)
        for version in sorted(versions, key=lambda version: version.benchmark):
            n_documents = sum(sizes[shard] for shard in read[version.fingerprint])
            totals = counts_of[version.fingerprint]
            common = totals.filter(_are_common(totals["n_documents"], n_documents, policy))
            described = _with_texts(store, version, common, policy, index=index)
            n, counts = common.num_rows, common["n_documents"].cast(pa.float64())
            described |= {
                "source": pa.repeat(pa.scalar(source), n),
                "benchmark": pa.repeat(pa.scalar(version.benchmark), n),
                "share": pc.divide(counts, float(n_documents or 1)),
            }
            tables.append(pa.table(described).select(COMMON.names).cast(COMMON))
    table = pa.concat_tables(tables)
    fingerprint = sha256(repr(table.to_pydict()).encode()).hexdigest()[:16]
    write_parquet(store.common(fingerprint), table)
    made_from = {"share": _limits(policy), "inputs": _inputs(packs, versions, missing)}
    write_json(store.current_common, {"fingerprint": fingerprint, "scan": scan, **made_from})
    return table


def _are_common(counts: pa.ChunkedArray, n_documents: int, policy: Policy) -> pa.ChunkedArray:
    # 0.29 * 100 is 28.999999999999996, but 29 documents must not count as more than 29 %.
    import pyarrow.compute as pc

    limit = math.floor(policy.common_share * n_documents + TOLERANCE)
    is_enough = pc.greater_equal(counts, policy.common_least_documents)
    return pc.and_(pc.greater(counts, limit), is_enough)


def common_made_from(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
    missing: MissingByShard,
) -> str:
    """Return the fingerprint of the current list; empty if it was made from other inputs.

    Inputs are packs, versions and settings.
    """
    if not store.current_common.is_file():
        return ""
    value = read_json(store.current_common)
    expected = (scan, _limits(policy), _inputs(packs, versions, missing))
    is_current = (value["scan"], value["share"], value["inputs"]) == expected
    return str(value["fingerprint"]) if is_current else ""


def _limits(policy: Policy) -> list[float]:
    return [policy.common_share, policy.common_least_documents]


def _inputs(packs: Sequence[Pack], versions: Sequence[Version], missing: MissingByShard) -> str:
    shards = sorted(shard.fingerprint for pack in packs for shard in pack.shards)
    named = sorted(f"{version.benchmark} {version.fingerprint}" for version in versions)
    absent = sorted(f"{shard} without {sorted(names)}" for shard, names in missing.items())
    return sha256("\n".join([*shards, *named, *absent]).encode()).hexdigest()[:16]


def _with_texts(
    store: Store, version: Version, common: pa.Table, policy: Policy, *, index: str
) -> dict[str, Any]:
    """Return columns with the text of each n-gram, cut from a question, and its counts."""
    columns = dict(zip(common.column_names, common.columns, strict=True))
    places = common["place"].to_numpy().astype(np.int64)
    texts: list[str] = []
    n_questions = np.zeros(0, np.int64)
    if places.size:
        grams, part = _grams(store.root, version, index, policy.ngram_size)
        numbers = np.searchsorted(grams.table.first, places)
        n_questions = np.bincount(grams.rows.values, minlength=len(grams))[numbers]
        field = part.entries.fields["question"]
        questions = np.searchsorted(field.texts.offsets, places, "right") - 1
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
    return {
        **columns,
        "text": pa.array(texts, pa.string()),
        "n_questions": pa.array(n_questions, pa.int64()),
    }


@lru_cache(maxsize=16)
def _grams(root: Path, version: Version, index: str, size: int) -> tuple[Grams, Part]:
    part = open_part(Store(root), version, index)
    return grams_of(part.entries.fields["question"].texts, size), part


def current_common(store: Store, scan: str, policy: Policy) -> tuple[str, pa.Table]:
    """Return the fingerprint and table of the current list of common n-grams.

    Raises MissingError if there is none, or if it was made from another scan or for another share.
    """
    remedy = (
        "run `decon-assets run`, materialize the `common_ngrams` asset, "
        "or set policy.leave_out_common = false"
    )
    path = store.current_common
    if not path.is_file():
        raise MissingError(Problem(str(path), "no list of common n-grams", remedy=remedy))
    value: dict[str, Any] = read_json(path)
    if (value["scan"], value["share"]) != (scan, _limits(policy)):
        found = "a list of common n-grams for another scan or share"
        expected = "a list for the current scan and policy"
        raise MissingError(Problem(str(path), found, expected, remedy))
    fingerprint = value["fingerprint"]
    return fingerprint, read_parquet(store.common(fingerprint), schema=COMMON)


def places_of(common: pa.Table, source: str) -> dict[str, Integers]:
    """Return the places of the n-grams that are common in a source, by benchmark."""
    import pyarrow.compute as pc

    rows = common.filter(pc.equal(common["source"], source))
    benchmarks = np.asarray(rows["benchmark"].to_numpy(zero_copy_only=False))
    places = rows["place"].to_numpy().astype(np.int64)
    return {name: places[benchmarks == name] for name in sorted({*benchmarks.tolist()})}


def without_common(
    matches: pa.Table,
    places: Integers,
    store: Store,
    version: Version,
    policy: Policy,
    *,
    index: str,
) -> pa.Table:
    """Rescore the matches found by n-grams with a benchmark without the n-grams at these places.

    A match was recorded only if its score with them was high enough, so scores only decrease.
    """
    import pyarrow.compute as pc

    by_index = pa.array(names_where(lambda each: each.reads is Reads.INDEX))
    is_by_index = pc.is_in(matches["detector"], by_index)
    rows = np.flatnonzero(is_by_index.to_numpy(zero_copy_only=False))
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
    matches: pa.Table, places: Integers, store: Store, version: Version, policy: Policy, index: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return question overlap and base score without the n-grams at these places."""
    grams, part = _grams(store.root, version, index, policy.ngram_size)
    is_common = np.zeros(len(grams), np.bool_)
    is_common[np.searchsorted(grams.table.first, places)] = True
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
    has_passage = (fields["passage"].of_entry[entries] >= 0).astype(np.uint8)
    lengths = grams.rows.lengths[questions], n_different[answers]
    base_scores(*lengths, has_passage, overlaps, scores)
    return overlaps[:, 0], scores


def _share(
    n_records: int, df: Sequence[int], is_matched: Sequence[bool], is_common: Sequence[bool]
) -> float:
    """Return the matched share of idf weights, summed in the same order as in the kernels."""
    part = whole = 0.0
    for records, matched, common in zip(df, is_matched, is_common, strict=True):
        if not common:
            weight = math.log(n_records / records)
            whole += weight
            part += weight if matched else 0.0
    return part / whole if whole > 0 else 0.0
