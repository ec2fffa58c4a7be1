"""The term weights: frequencies frozen from a named set of benchmark versions.

The reference implementation counts over all benchmarks present, so adding one changes the scores of
the others. Here the counts come from a snapshot that is part of the policy. A benchmark version in
the snapshot is weighted with the snapshot alone; any other one with the snapshot plus its own
counts. So a benchmark's scores depend only on itself and the snapshot, and scanning benchmarks one
by one, in any order, equals scanning all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

from decon_core.benchmarks.records import Version, current_version, load_records
from decon_core.config.policy import VERDICT_VERSION, Policy
from decon_core.errors import MissingError, Problem, StaleError
from decon_core.index.entries import (
    COLUMNS,
    Entries,
    RecordTokenizer,
    count_grams,
    grams_of_fields,
    joined,
)
from decon_core.index.ngram_counts import KINDS, Counted, Counts, GramTable, gram_sizes
from decon_core.schemas import FREQUENCIES
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import Array, map_arrays, write_arrays
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Ragged
from decon_core.wording import counted


@dataclass(frozen=True)
class Snapshot:
    """Frozen frequencies and the benchmark versions that they were counted over."""

    fingerprint: str
    members: Mapping[str, str]
    counts: Counts
    # The document frequencies of the n-grams of each text, by benchmark and kind of text; of a
    # snapshot that was read they are looked up.
    df: Mapping[str, Mapping[str, Ragged]] = field(default_factory=dict)

    def has(self, version: Version) -> bool:
        """Return whether this benchmark version was counted in the snapshot."""
        return self.members.get(version.benchmark) == version.fingerprint


def freeze(
    store: Store,
    versions: Sequence[Version],
    policy: Policy,
    entries_of: Callable[[Version], Entries] | None = None,
) -> Snapshot:
    """Count over these benchmark versions, save the snapshot and make it the current snapshot.

    `entries_of` returns the entries of a version; by default they are made from its saved records.
    """
    entries_of = entries_of or stored_entries(store, policy)
    fingerprint, members = _identity(versions, policy)
    in_order = sorted(versions, key=lambda version: version.benchmark)
    each = {version.benchmark: entries_of(version) for version in in_order}
    counts, df = count_members(each, policy)
    arrays: dict[str, Array] = {"ids": counts.ids, "token_df": counts.token_df}
    for kind, of_kind in counts.kinds.items():
        arrays |= {f"{kind}.tokens": of_kind.grams.tokens, f"{kind}.df": of_kind.df}
    write_arrays(store.snapshot(fingerprint), arrays, schema=FREQUENCIES)
    write_json(
        store.current_snapshot,
        {
            "fingerprint": fingerprint,
            "members": members,
            "n_records": counts.n_records,
            "counting": _counting(policy),
            "version": VERDICT_VERSION,
        },
    )
    return Snapshot(fingerprint, members, counts, df)


def count_members(
    entries: Mapping[str, Entries], policy: Policy
) -> tuple[Counts, dict[str, dict[str, Ragged]]]:
    """Count over the entries of several benchmarks.

    Also return, by benchmark and kind of text, the document frequencies of the n-grams of each
    text. They are taken from the numbers of the n-grams, which saves looking each n-gram up again.
    """
    whole = joined([*entries.values()])
    grams = grams_of_fields(whole, policy)
    counts = count_grams(whole, grams)
    df: dict[str, dict[str, Ragged]] = {benchmark: {} for benchmark in entries}
    for kind, of_kind in grams.items():
        of_all, first = of_kind.per_row(counts.kinds[kind].df), 0
        for benchmark, each in entries.items():
            stop = first + len(each.fields[kind].texts)
            df[benchmark][kind] = of_all.between(first, stop)
            first = stop
    return counts, df


def stored_entries(store: Store, policy: Policy) -> Callable[[Version], Entries]:
    """Return a function that tokenizes the saved records of a benchmark version."""
    tokenizer = RecordTokenizer(policy, load_tokenizer(policy.tokenizer_str))
    return lambda version: tokenizer.entries_of(load_records(store, version, columns=COLUMNS))


def _counting(policy: Policy) -> str:
    """Return the fingerprint of the settings that decide how records are counted."""
    return policy.index_fingerprint(tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint)


def _identity(versions: Sequence[Version], policy: Policy) -> tuple[str, dict[str, str]]:
    """Return the fingerprint and the members of the snapshot of these versions."""
    members = {version.benchmark: version.fingerprint for version in versions}
    identity = orjson.dumps([_counting(policy), members], option=orjson.OPT_SORT_KEYS)
    return sha256(identity).hexdigest()[:16], members


def require_no_other(store: Store, versions: Sequence[Version], policy: Policy) -> None:
    """Raise `MissingError` if `current.json` is lost and freezing anew would give another snapshot.

    All weights would then change silently; only `--new-term-weights` may do that.
    """
    frozen = sorted(path.stem for path in store.current_snapshot.parent.glob("[!.]*.arrow"))
    if frozen and _identity(versions, policy)[0] not in frozen:
        raise MissingError(
            Problem(
                str(store.current_snapshot),
                "the file, which names the current snapshot, is missing, and the existing "
                "snapshots are of other benchmark versions or settings: "
                f"{', '.join(frozen)}",
                remedy=REFREEZE,
            )
        )


def current_snapshot(store: Store, policy: Policy) -> Snapshot:
    """Read the current snapshot. Raise `MissingError` without one, `StaleError` if outdated."""
    require_counted_under(store, policy)
    value = read_current(store)
    path = store.snapshot(value["fingerprint"])
    if not path.is_file():
        remedy = "`decon-assets run --new-term-weights`"
        found = "the file with the frozen counts is missing"
        raise MissingError(Problem(str(path), found, remedy=f"run {remedy}"))
    arrays, _ = map_arrays(path)
    sizes = gram_sizes(policy)
    kinds = {
        kind: Counted(
            GramTable.of_distinct(arrays[f"{kind}.tokens"], sizes[kind]), arrays[f"{kind}.df"]
        )
        for kind in KINDS
    }
    counts = Counts(value["n_records"], arrays["ids"], arrays["token_df"], kinds)
    return Snapshot(value["fingerprint"], value["members"], counts)


def require_counted_under(store: Store, policy: Policy) -> None:
    """Raise `StaleError` if the snapshot was counted with other settings or by another version."""
    current = read_current(store)
    if current["counting"] != _counting(policy):
        is_old = current.get("version") != VERDICT_VERSION
        how = "by another version of decon-assets" if is_old else "with other policy settings"
        raise StaleError(
            Problem(
                str(store.current_snapshot),
                f"the term weights were counted {how}",
                remedy="recount them with `decon-assets run --new-term-weights`, or materialize "
                "`term_weights` with `refreeze: true`; everything is then scanned again",
            )
        )


def require_frozen_from(store: Store, names: Sequence[str] | None) -> None:
    """Raise `StaleError` if `term_weights.benchmarks` names others than the snapshot has."""
    members = sorted(read_current(store)["members"])
    if names is not None and sorted(names) != members:
        raise StaleError(
            Problem(
                "term_weights.benchmarks",
                ", ".join(sorted(names)),
                f"the benchmarks that the weights were frozen from: {', '.join(members)}",
                "list these benchmarks, or recount with `decon-assets run --new-term-weights`",
            )
        )


REFREEZE = (
    "the weights stay unchanged until `decon-assets run --new-term-weights` recounts them; all "
    "scores then change, so everything is scanned again"
)


def outdated_members(store: Store) -> list[Problem]:
    """Return a problem for each benchmark whose current version is not the one in the snapshot."""
    problems = []
    for name, frozen in sorted(read_current(store)["members"].items()):
        if store.current_records(name).is_file():
            current = current_version(store, name).fingerprint
            if current != frozen:
                expected = f"version {current} ({_difference(store, name, frozen)})"
                found = f"weights frozen from version {frozen}"
                problems.append(Problem(f"term weights: {name}", found, expected, REFREEZE))
    return problems


def _difference(store: Store, name: str, frozen: str) -> str:
    """Describe how many items differ between the frozen and the current version."""
    version = current_version(store, name)
    if not store.records(name, frozen).is_file():
        return (
            f"{counted(version.n_items, 'item')}; the records of the frozen version no longer exist"
        )
    old, new = _items_by_text(store, Version(name, frozen, 0, 0)), _items_by_text(store, version)
    removed = {old[text] for text in old.keys() - new.keys()}
    added = {new[text] for text in new.keys() - old.keys()}
    n_changed = len(added & removed)
    return (
        f"{n_changed} of {counted(version.n_items, 'item')} changed, "
        f"{len(added) - n_changed} added, {len(removed) - n_changed} removed"
    )


def _items_by_text(store: Store, version: Version) -> dict[tuple[str | int, ...], tuple[str, int]]:
    """Return the items by split and text; equal ones are numbered in order."""
    columns = ["split", "instance_index", "fingerprint"]
    texts: dict[tuple[str, int], list[str]] = {}
    for row in load_records(store, version, columns=columns).to_pylist():
        texts.setdefault((row["split"], row["instance_index"]), []).append(row["fingerprint"])
    seen = Counter[tuple[str, ...]]()
    items: dict[tuple[str | int, ...], tuple[str, int]] = {}
    for item, fingerprints in texts.items():
        text = (item[0], *fingerprints)
        seen[text] += 1
        items[*text, seen[text]] = item
    return items


def current_snapshot_fingerprint(store: Store) -> str:
    """Return the fingerprint of the current snapshot without reading the counts."""
    return str(read_current(store)["fingerprint"])


def read_current(store: Store) -> dict[str, Any]:
    path = store.current_snapshot
    if not path.is_file():
        remedy = "run `decon-assets run`, or materialize the `term_weights` asset"
        raise MissingError(Problem(str(path), "there are no term weights yet", remedy=remedy))
    value: dict[str, Any] = read_json(path)
    return value
