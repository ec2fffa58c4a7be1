"""Index parts: tokens and frequencies of one benchmark version, saved and memory-mapped.

A part is content-addressed by its records, the indexing settings and the term weights. It holds
document frequencies, not weights: a weight is `ln(N / df)`, and the two integers are the same on
every machine. `joined_index.py` joins parts into the index that a scan searches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy
from decon_core.errors import MissingError, Problem, StaleError
from decon_core.index.entries import (
    EXACT_REPEAT,
    REASONS,
    Entries,
    Field,
    count_grams,
    grams_of_fields,
)
from decon_core.index.ngram_counts import KINDS, Counts
from decon_core.index.term_weights import (
    Snapshot,
    current_snapshot,
    current_snapshot_fingerprint,
    freeze,
    stored_entries,
)
from decon_core.schemas import INDEX
from decon_core.storage.store import Store
from decon_core.storage.tables import Array, map_arrays, write_arrays
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Ragged, edges_of

_N_RECORDS = "n_records"  # N of idf = ln(N / df)


@dataclass(frozen=True)
class IndexSummary:
    """How many records of a benchmark were indexed and dropped."""

    n_indexed: int
    dropped: dict[str, int]  # dropped records, by reason


@dataclass(frozen=True, eq=False)
class Part:
    """The index part of one benchmark version."""

    n_records: int  # N
    entries: Entries
    # The df of each text's distinct n-grams in order of first occurrence, by kind; of a short
    # answer, the df of its distinct tokens.
    df: Mapping[str, Ragged]
    n_per_item: float = 1.0  # records of an item on average, mostly one for each choice

    @property
    def sizes(self) -> tuple[int, float]:
        return self.n_records, self.n_per_item

    @property
    def why_dropped(self) -> list[str | None]:
        """Return, per record, why it is not indexed; None if it is."""
        return [REASONS[code] for code in self.entries.dropped.tolist()]


def index_fingerprint(store: Store, policy: Policy) -> str:
    """Return the fingerprint in the names of the current index parts."""
    return policy.index_fingerprint(
        tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint,
        snapshot=current_snapshot_fingerprint(store),
    )


def build_part(
    store: Store,
    version: Version,
    snapshot: Snapshot,
    policy: Policy,
    entries_of: Callable[[Version], Entries] | None = None,
) -> IndexSummary:
    """Index a benchmark version and save the part. `entries_of`: see `freeze`."""
    tokenizer = load_tokenizer(policy.tokenizer_str)
    entries = (entries_of or stored_entries(store, policy))(version)
    df = snapshot.df.get(version.benchmark) if snapshot.has(version) else None
    part = weigh(entries, snapshot.counts, policy, is_counted=snapshot.has(version), df=df)
    name = policy.index_fingerprint(tokenizer=tokenizer.fingerprint, snapshot=snapshot.fingerprint)
    path = store.index_part(name, version.benchmark, version.fingerprint)
    arrays: dict[str, Array] = {"dropped": entries.dropped, "ids": entries.ids}
    for kind, field in entries.fields.items():
        arrays[f"{kind}.tokens"] = field.texts.values
        arrays[f"{kind}.offsets"] = field.texts.offsets
        arrays[f"{kind}.of_entry"] = field.of_entry
        arrays[f"{kind}.df"] = part.df[kind].values
        arrays[f"{kind}.df_offsets"] = part.df[kind].offsets
    write_arrays(path, arrays, schema=INDEX, about={_N_RECORDS: str(part.n_records)})
    dropped = Counter(reason for reason in part.why_dropped if reason)
    return IndexSummary(entries.records.size, dict(sorted(dropped.items())))


def index_alone(store: Store, versions: Sequence[Version], policy: Policy) -> int:
    """Freeze idf over exactly these benchmarks, build missing parts, and return their number."""
    try:
        snapshot = current_snapshot(store, policy)
        is_current = snapshot.members == {
            version.benchmark: version.fingerprint for version in versions
        }
    except (MissingError, StaleError):
        is_current = False
    entries_of = lru_cache(maxsize=None)(stored_entries(store, policy))
    if not is_current:
        snapshot = freeze(store, versions, policy, entries_of)
    index = index_fingerprint(store, policy)
    missing = [version for version in versions if not has_part(store, version, index)]
    for version in missing:
        build_part(store, version, snapshot, policy, entries_of)
    return len(missing)


def weigh(
    entries: Entries,
    counts: Counts,
    policy: Policy,
    *,
    is_counted: bool,
    df: Mapping[str, Ragged] | None = None,
) -> Part:
    """Look up frequencies in the snapshot; add the entries' own counts unless `is_counted`.

    `df`: the frequencies of the n-grams in the snapshot, if they are known.
    If every record has every n-gram of the questions, as with a single item, each idf would be 0
    and nothing could be found. N is then doubled, so that all n-grams weigh the same.
    """
    n_records, token_df = counts.n_records, counts.token_frequency(entries.ids)
    if df is None:
        grams = grams_of_fields(entries, policy)
        gram_df = {
            kind: counts.gram_frequency(kind, of_kind.table.tokens, entries.ids)
            for kind, of_kind in grams.items()
        }
        if not is_counted:
            own_counts = count_grams(entries, grams)
            n_records += own_counts.n_records
            gram_df = {kind: df + own_counts.kinds[kind].df for kind, df in gram_df.items()}
            token_df = token_df + own_counts.token_df
        df = {kind: of_kind.per_row(gram_df[kind]) for kind, of_kind in grams.items()}
    of_questions = df["question"].values
    if of_questions.size and (of_questions >= n_records).all():
        n_records *= 2
    answers = entries.fields["answer"].texts
    is_short = answers.lengths <= policy.short_answer_token_threshold
    tokens = answers.only(is_short).distinct()
    of_tokens = Ragged(np.append(0, token_df).astype(np.uint32)[tokens.values], tokens.offsets)
    return Part(n_records, entries, {**df, "answer": _interleaved(df["answer"], of_tokens)})


def _interleaved(first: Ragged, second: Ragged) -> Ragged:
    """Merge two sets of rows of which at most one is non-empty per row."""
    lengths = first.lengths + second.lengths
    values = np.empty(int(lengths.sum()), np.uint32)
    is_first = np.repeat(first.lengths > 0, lengths)
    values[is_first], values[~is_first] = first.values, second.values
    return Ragged(values, edges_of(lengths))


def has_part(store: Store, version: Version, index: str) -> bool:
    return store.index_part(index, version.benchmark, version.fingerprint).is_file()


def open_part(store: Store, version: Version, index: str) -> Part:
    """Open a saved part. Raise `MissingError` if there is none: not searched is not clean."""
    path = store.index_part(index, version.benchmark, version.fingerprint)
    if not path.is_file():
        raise MissingError(missing_part(version.benchmark, str(path)))
    arrays, about = map_arrays(path)
    fields = {
        kind: Field(
            Ragged(arrays[f"{kind}.tokens"], arrays[f"{kind}.offsets"]), arrays[f"{kind}.of_entry"]
        )
        for kind in KINDS
    }
    df = {kind: Ragged(arrays[f"{kind}.df"], arrays[f"{kind}.df_offsets"]) for kind in KINDS}
    entries = Entries(arrays["dropped"], arrays["ids"], fields)
    n_per_item = version.n_records / max(version.n_items, 1)
    return Part(int(about[_N_RECORDS]), entries, df, n_per_item)


def missing_part(benchmark: str, path: str) -> Problem:
    return Problem(
        f"benchmark {benchmark!r}",
        "no index part for its current records, policy and term weights",
        path,
        "run `decon-assets run`, or materialize the `index` asset for this benchmark",
    )


@lru_cache(maxsize=256)
def twins_of(root: Path, version: Version, index: str) -> Mapping[int, list[dict[str, Any]]]:
    """Return the records dropped as exact repeats, by the row of the record that they repeat.

    A match of the first record is a match of all its repeats, in whichever split they are.
    """
    store = Store(root)
    entries = open_part(store, version, index).entries
    rows = np.flatnonzero(entries.dropped == REASONS.index(EXACT_REPEAT))
    if not rows.size:
        return {}
    names = ["config", "split", "instance_index", "is_correct"]
    records = load_records(store, version, columns=[*names, "fingerprint"])
    fingerprints = records["fingerprint"].to_pylist()
    first: dict[str, int] = {}
    for row in entries.records.tolist():
        first.setdefault(fingerprints[row], row)
    repeats: dict[int, list[dict[str, Any]]] = {}
    repeated = records.select(names).take(rows).to_pylist()
    for row, record in zip(rows.tolist(), repeated, strict=True):
        if (of := first.get(fingerprints[row])) is not None and of < row:
            repeats.setdefault(of, []).append({"record": row, **record})
    return repeats
