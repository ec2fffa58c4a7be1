"""idf that does not move: frequencies frozen from a named set of benchmark versions.

The reference implementation counts over whatever benchmarks are present, so that adding one changes
the score of every other. Here the counts come from a snapshot that is part of the policy. A
benchmark inside the snapshot uses it as it is; one outside, or in another version than the one
inside, uses the snapshot plus itself. So a benchmark's scores depend on itself and the snapshot
only, and scanning one by one, in any order, equals scanning all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
import pyarrow as pa

from decon_core.errors import MissingError, Problem, StaleError
from decon_core.policy import Policy
from decon_core.records import Version, load_records, records_of
from decon_core.reference import Frequencies, count, index_records
from decon_core.schemas import FREQUENCIES
from decon_core.store import Store, read_arrow, read_json, write_arrow, write_json
from decon_core.tokens import load_tokenizer


@dataclass(frozen=True)
class Snapshot:
    """Frozen frequencies and the benchmark versions that they were counted over."""

    fingerprint: str
    members: Mapping[str, str]
    frequencies: Frequencies

    def frequencies_for(self, version: Version, own: Frequencies) -> Frequencies:
        """What a benchmark is weighed with, given its own counts."""
        if self.members.get(version.benchmark) == version.fingerprint:
            return self.frequencies
        return self.frequencies + own


def freeze(store: Store, versions: Sequence[Version], policy: Policy) -> Snapshot:
    """Count over these benchmark versions, and make the result the snapshot that counts."""
    tokenizer = load_tokenizer(policy.tokenizer_str)
    members = {version.benchmark: version.fingerprint for version in versions}
    counting = policy.index_fingerprint(tokenizer=tokenizer.fingerprint)
    identity = orjson.dumps([counting, members], option=orjson.OPT_SORT_KEYS)
    frequencies = Frequencies()
    for version in versions:
        entries = index_records(records_of(load_records(store, version)), policy, tokenizer)
        frequencies += count(entries, policy)
    snapshot = Snapshot(sha256(identity).hexdigest()[:16], members, frequencies)
    write_arrow(store.snapshot(snapshot.fingerprint), _to_table(frequencies))
    write_json(
        store.current_snapshot,
        {
            "fingerprint": snapshot.fingerprint,
            "members": members,
            "n_records": frequencies.n_records,
            "counting": counting,
        },
    )
    return snapshot


def current_snapshot(store: Store, policy: Policy) -> Snapshot:
    """The snapshot that counts today, as it was frozen."""
    require_counted_under(store, policy)
    value = read_current(store)
    path = store.snapshot(value["fingerprint"])
    if not path.is_file():
        raise MissingError(
            Problem(str(path), "no such file", "the frozen counts", "`decon-assets run --refreeze`")
        )
    table = read_arrow(path)
    return Snapshot(value["fingerprint"], value["members"], _from_table(table, value["n_records"]))


def require_counted_under(store: Store, policy: Policy) -> None:
    """Raise when the snapshot was counted under other indexing settings than today's."""
    value = read_current(store)
    counting = policy.index_fingerprint(tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint)
    if value["counting"] != counting:
        raise StaleError(
            Problem(
                str(store.current_snapshot),
                "an idf snapshot that was counted under other policy settings",
                "one counted under today's",
                "count it anew: `decon-assets run --refreeze`, or materialize `idf_snapshot` with "
                "`refreeze: true`; everything is then scanned again",
            )
        )


def require_frozen_from(store: Store, names: Sequence[str] | None) -> None:
    """Raise when the configuration names other benchmarks than the snapshot was frozen from."""
    members = sorted(read_current(store)["members"])
    if names is not None and sorted(names) != members:
        raise StaleError(
            Problem(
                "idf.snapshot",
                ", ".join(sorted(names)),
                f"the benchmarks that it was frozen from: {', '.join(members)}",
                "name those, or count anew: `decon-assets run --refreeze`",
            )
        )


def current_snapshot_fingerprint(store: Store) -> str:
    """Its name alone, without reading the counts."""
    return str(read_current(store)["fingerprint"])


def read_current(store: Store) -> dict[str, Any]:
    if not store.current_snapshot.is_file():
        raise MissingError(
            Problem(
                str(store.current_snapshot),
                "no frozen idf snapshot",
                "one",
                "materialize the asset `idf_snapshot` first",
            )
        )
    value: dict[str, Any] = read_json(store.current_snapshot)
    return value


def _to_table(frequencies: Frequencies) -> pa.Table:
    kinds: Iterable[tuple[str, Mapping[tuple[int, ...], int]]] = (
        ("question", frequencies.question),
        ("answer", frequencies.answer),
        ("passage", frequencies.passage),
        ("token", {(token,): df for token, df in frequencies.token.items()}),
    )
    rows = [
        {"kind": kind, "gram": gram, "df": df}
        for kind, counts in kinds
        for gram, df in sorted(counts.items())
    ]
    return pa.Table.from_pylist(rows, schema=FREQUENCIES)


def _from_table(table: pa.Table, n_records: int) -> Frequencies:
    counts: dict[str, dict[tuple[int, ...], int]] = {
        kind: {} for kind in ("question", "answer", "passage", "token")
    }
    for row in table.to_pylist():
        counts[row["kind"]][tuple(row["gram"])] = row["df"]
    return Frequencies(
        n_records,
        counts["question"],
        counts["answer"],
        counts["passage"],
        {gram[0]: df for gram, df in counts["token"].items()},
    )
