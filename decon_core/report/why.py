"""Why a document is in a mixture, or is not: what was found of it, by what, made from what.

Read off the store's own accounts: ledgers and tiles, what mixtures and blends list. A report need
not have been made. Which run of a scheduler made a tile is not known here: `made` has the place on
disk by which whoever knows can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.compute as pc

from decon_core.benchmarks.records import Version, load_records
from decon_core.blends.build import REPLACED_FILE, TEXTS_FILE
from decon_core.config.blends import Blend
from decon_core.config.load import Showing
from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy, reaches
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import read_shard
from decon_core.errors import CorpusError, InputError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.mixtures.build import Builder
from decon_core.mixtures.choice import Sizes
from decon_core.mixtures.manifest import MANIFEST, REMOVED_FILE
from decon_core.report.evidence import PARTS, shown
from decon_core.scan.tiles import gaps_of
from decon_core.schemas import BLENDED, MATCHES, REMOVED, REPLACED
from decon_core.storage.store import read_json, read_parquet, tiles_with_rows

SCHEMA = "decon-assets/why/1"

_TILES_AT_ONCE = 500  # whose content is in memory
_OF_ENTRY = (
    *(
        "is_contaminated",
        "is_question_only",
        "is_by_score",
        "detector",
        "benchmark",
        "config",
        "split",
    ),
    *("instance_index", "record", "score", "base_score"),
    *("question_overlap", "answer_overlap", "passage_overlap", "pair", "verdict"),
)

Told = dict[str, Any]  # as JSON has it


@dataclass(frozen=True)
class Place:
    """Where a document stands."""

    pack: Pack
    shard: Shard
    row: int


# Which document -----------------------------------------------------------------------------------


def places_of(
    builder: Builder,
    asked: str,
    *,
    shard: str | None = None,
    is_everywhere: bool = False,
    on_unread: Callable[[Problem], None] = lambda _: None,
) -> list[Place]:
    """The documents of an id, or the one that is named as `shard:row`.

    Ids stand in tiles and in lists of what was removed. Where they have none of that name, or
    `is_everywhere`, every row is read. `on_unread` gets each shard that cannot be read to its end:
    the id may stand behind that place, and the other shards are searched all the same.
    """
    shards = [(pack, one) for pack, one in builder.shards if shard in (None, one.name, one.path)]
    if not shards:
        found = repr(shard) if shard else "no registered shard"
        raise InputError(Problem("shard", found, "the name of a registered shard", _STATUS))
    named = _named(shards, asked)
    if named:
        return named
    known = [] if is_everywhere else list(_known(builder, shards, asked))
    return known or list(_read(shards, asked, on_unread))


_STATUS = "`decon-assets status` counts them; `decon-assets register` finds new ones"


def _named(shards: Sequence[tuple[Pack, Shard]], asked: str) -> list[Place]:
    name, _, row = asked.rpartition(":")
    if not row.isdecimal():
        return []
    return [Place(pack, one, int(row)) for pack, one in shards if name in (one.name, one.path)]


def _known(builder: Builder, shards: Sequence[tuple[Pack, Shard]], asked: str) -> Iterator[Place]:
    """Documents of which anything was found, or that a mixture lists."""
    matched = _matched(builder, shards, asked)
    listed = {pack.name: set(_listed(builder, pack, asked)) for pack, _ in shards}
    for pack, shard in shards:
        rows = matched.get(shard.fingerprint, set())
        rows = rows | {row for name, row in listed[pack.name] if name == shard.name}
        yield from (Place(pack, shard, row) for row in sorted(rows))


def _matched(
    builder: Builder, shards: Sequence[tuple[Pack, Shard]], asked: str
) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for name, row in _rows_where(builder, shards, pl.col("doc_id") == asked, ["shard", "row"]):
        found.setdefault(name, set()).add(row)
    return found


def _rows_where(
    builder: Builder,
    shards: Iterable[tuple[Pack, Shard]],
    condition: pl.Expr,
    columns: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    """Columns of the different matches that meet a condition, in all tiles of these shards."""
    tiles = [*_tiles(builder, shards)]
    for first in range(0, len(tiles), _TILES_AT_ONCE):
        contents = tiles_with_rows(tiles[first : first + _TILES_AT_ONCE], MATCHES)
        if contents:
            frame = pl.scan_parquet(contents).filter(condition)
            yield from frame.select(columns).unique().collect().iter_rows()


def _tiles(builder: Builder, shards: Iterable[tuple[Pack, Shard]]) -> Iterator[Path]:
    """The tiles that are there, of these shards and of all benchmarks."""
    reader = builder.reader
    for fingerprint in dict.fromkeys(shard.fingerprint for _, shard in shards):
        for version in builder.versions:
            path = reader.store.tile(reader.scan, fingerprint, version.fingerprint)
            if path.is_file():
                yield path


def _listed(builder: Builder, pack: Pack, asked: str) -> Iterator[tuple[str, int]]:
    for folder in builder.store.mixtures_of(pack.name):
        path = folder / REMOVED_FILE
        if path.is_file():
            table = read_parquet(path, schema=REMOVED, columns=["shard", "row", "doc_id"])
            rows = table.filter(pc.field("doc_id") == asked).to_pylist()
            yield from ((row["shard"], row["row"]) for row in rows)


def _read(
    shards: Sequence[tuple[Pack, Shard]], asked: str, on_unread: Callable[[Problem], None]
) -> Iterator[Place]:
    for pack, shard in shards:
        if pack.source.id is None:
            continue
        try:
            for row in read_shard(shard, pack.source):
                if isinstance(row, Document) and row.id == asked:
                    yield Place(pack, shard, row.row)
        except CorpusError as error:
            for problem in error.problems:
                on_unread(problem)


def _row_at(place: Place) -> Document | str | None:
    """The row itself, or why it cannot be read; None behind the end of its shard."""
    try:
        rows = read_shard(place.shard, place.pack.source)
        row = next((row for row in rows if row.row == place.row), None)
    except CorpusError as error:
        return str(error)
    return f"{row.reason} ({row.detail})" if isinstance(row, Unreadable) else row


# What became of it --------------------------------------------------------------------------------


def account(
    builder: Builder,
    place: Place,
    *,
    mixtures: Sequence[Mixture],
    blends: Sequence[Blend] = (),
    showing: Showing,
) -> Told:
    """All that the store says of a document, as JSON has it."""
    row = _row_at(place)
    text = row.text if isinstance(row, Document) else None
    found = _found(builder, place, text if showing.snippets else None, showing)
    documents = documents_of(builder, [entry["pair"] for entry in found])
    for entry in found:
        entry["documents"] = documents[entry["pair"]]
    return {
        "schema": SCHEMA,
        "document": _document(builder, place, row),
        "scanned_against": [version.benchmark for version in _scanned(builder, place)],
        "not_scanned_against": _not_scanned(builder, place),
        "why_not_scanned": _why_not_scanned(builder, place),
        "found": found,
        "mixtures": [_in_mixture(builder, place, mixture) for mixture in mixtures],
        "blends": [_in_blend(builder, place, blend) for blend in blends],
        "settings": {
            "scan": builder.reader.scan,
            "idf_snapshot": current_snapshot_fingerprint(builder.store),
            "thresholds": builder.policy.thresholds,
            "thresholds_by_benchmark": builder.policy.benchmark,
            "evidence_floor": builder.policy.evidence_floor,
            "policy": asdict(builder.policy),
        },
    }


def _document(builder: Builder, place: Place, row: Document | str | None) -> Told:
    return {
        "id": row.id if isinstance(row, Document) else None,
        "source": place.pack.source.name,
        "pack": place.pack.name,
        "shard": place.shard.name,
        "path": place.shard.path,
        "shard_fingerprint": place.shard.fingerprint,
        "row": place.row,
        "n_tokens": _n_tokens(builder, place),
        "is_there": row is not None,
        "why_unreadable": row if isinstance(row, str) else None,
    }


def _n_tokens(builder: Builder, place: Place) -> int | None:
    scan = builder.reader.scan
    if not builder.store.documents(scan, place.shard.fingerprint).is_file():
        return None
    sizes = Sizes.of(builder.store, place.shard, scan)
    at = int(sizes.at([place.row])[0])
    is_there = at < sizes.rows.size and sizes.rows[at] == place.row
    return int(sizes.n_tokens[at]) if is_there else None


def _not_scanned(builder: Builder, place: Place) -> list[str]:
    return [v.benchmark for v in builder.versions if v not in _scanned(builder, place)]


def _why_not_scanned(builder: Builder, place: Place) -> str | None:
    """The reason and what to do; None where the shard was scanned against all benchmarks."""
    gaps = gaps_of(
        builder.store,
        [replace(place.pack, shards=(place.shard,))],
        builder.versions,
        builder.reader.scan,
    )
    return ". ".join(filter(None, (gaps[0].reason, gaps[0].cause.remedy))) if gaps else None


def _scanned(builder: Builder, place: Place) -> list[Version]:
    store, scan, shard = builder.store, builder.reader.scan, place.shard.fingerprint
    if not store.ledger(scan, shard).is_file():
        return []
    return [v for v in builder.versions if store.tile(scan, shard, v.fingerprint).is_file()]


def _found(builder: Builder, place: Place, text: str | None, showing: Showing) -> list[Told]:
    """Leaks first, then questions without their answer, then what came closest."""
    versions = {version.benchmark: version for version in _scanned(builder, place)}
    entries = builder.reader.entries(
        place.shard, [*versions.values()], source=place.pack.source.name
    )
    own = entries.filter(pc.field("row") == place.row).to_pylist()
    own.sort(
        key=lambda one: (
            *(not one["is_contaminated"], not one["is_question_only"]),
            *(-one["score"], one["benchmark"]),
        )
    )
    return [_entry(builder, place, one, versions[one["benchmark"]], text, showing) for one in own]


def _entry(
    builder: Builder,
    place: Place,
    entry: Mapping[str, Any],
    version: Version,
    text: str | None,
    showing: Showing,
) -> Told:
    spans = {
        part: (entry[f"{part}_char_start"], entry[f"{part}_char_stop"])
        for part in PARTS
        if entry[f"{part}_char_start"] is not None
    }
    tile = builder.store.tile(builder.reader.scan, place.shard.fingerprint, version.fingerprint)
    said = builder.verdicts.by_pair.get(entry["pair"])
    record = _record_of(builder, entry, version)
    policy = builder.policy.for_benchmark(version.benchmark)
    return {
        **{name: entry[name] for name in _OF_ENTRY},
        "missing": missing(entry, policy, record=record),
        "threshold": policy.thresholds[entry["detector"]],
        "characters": {part: [*span] for part, span in spans.items()},
        "parts": {part: entry[f"{part}_part"] for part in spans},
        "said": asdict(said) if said else None,
        "benchmark_version": version.fingerprint,
        "texts": _texts(builder, spans, record, text, showing),
        "made": str(tile),
    }


def documents_of(builder: Builder, pairs: Sequence[str]) -> dict[str, list[Told]]:
    """Every document in which each pair stands, in order of source, shard and row."""
    found: dict[str, list[Told]] = {pair: [] for pair in pairs}
    if not pairs:
        return found
    columns = ["row", "doc_id", "pair", "shard"]
    rows = {*_rows_where(builder, builder.shards, pl.col("pair").is_in([*found]), columns)}
    by_shard: dict[str, list[tuple[int, str | None, str]]] = {}
    for row, doc_id, pair, shard in sorted(rows, key=lambda one: (one[0], one[2])):
        by_shard.setdefault(shard, []).append((row, doc_id, pair))
    places = sorted(builder.shards, key=lambda one: (one[0].source.name, one[1].name))
    for pack, shard in places:  # of which two may hold the same bytes
        for row, doc_id, pair in by_shard.get(shard.fingerprint, ()):
            place = {"source": pack.source.name, "shard": shard.name, "row": row, "id": doc_id}
            found[pair].append(place)
    return found


def _record_of(builder: Builder, entry: Mapping[str, Any], version: Version) -> Told:
    """The texts of the record that was found."""
    records = load_records(builder.store, version, columns=[*PARTS])
    (record,) = records.slice(entry["record"], 1).to_pylist()
    return dict(record)


def _texts(
    builder: Builder,
    spans: Mapping[str, tuple[int, int]],
    record: Told,
    text: str | None,
    showing: Showing,
) -> Told | None:
    """Both sides; nothing where texts of the corpus are not to be shown."""
    if text is None:
        return None
    piece = shown(
        text,
        spans,
        record,
        context=showing.context,
        form=builder.policy.form,
    )
    return {"document": piece.text, "from_character": piece.start, "item": record}


# What a near miss lacks ---------------------------------------------------------------------------


def missing(entry: Mapping[str, Any], policy: Policy, *, record: Mapping[str, Any]) -> list[str]:
    """What an entry lacks to be a leak by its score, in words; nothing for one that is."""
    if entry["is_by_score"]:
        return []
    if entry["detector"] != "decon":
        return [_score_missing(entry, policy)]
    return [*_decon_missing(entry, policy, record)]


def _decon_missing(
    entry: Mapping[str, Any], policy: Policy, record: Mapping[str, Any]
) -> Iterator[str]:
    """The conditions of `decisions.judge` that fail, and texts that would raise the score."""
    least = policy.least_question_overlap
    length = np.array([entry["question_tokens"]])
    needed = max(least, float(policy.decay(length, least)[0]))
    if not reaches(entry["question_overlap"], needed):
        yield f"question overlap {_of_needed(entry['question_overlap'], needed)}"
    threshold = policy.threshold_of("decon")
    if reaches(entry["score"], threshold):
        return
    for part in ("answer", "passage"):
        if record[part]:
            setting = f"index_{part}s"
            if getattr(policy, setting):
                yield from _part_missing(part, entry[f"{part}_overlap"])
            else:
                yield f"{part} not looked for ({setting} is off)"
    yield _score_missing(entry, policy)
    if entry["score"] < entry["base_score"]:
        yield (
            f"the score was lowered from {entry['base_score']:.3f}, because the matched texts "
            f"are short ({entry['total_tokens']} tokens)"
        )


def _part_missing(part: str, overlap: float | None) -> Iterator[str]:
    if not overlap:
        yield f"{part} not found"
    elif overlap < 1:
        yield f"only {overlap:.2f} of the {part} found"


def _score_missing(entry: Mapping[str, Any], policy: Policy) -> str:
    rule = entry["detector"]
    threshold = policy.threshold_of(rule)
    more = "more than " if rule == "longest_match" else ""
    return f"score {_of_needed(entry['score'], threshold, more)}"


def _of_needed(value: float, needed: float, more: str = "") -> str:
    """Two values with as many decimals as it takes to tell them apart."""
    decimals = next((n for n in (2, 3, 4) if f"{value:.{n}f}" != f"{needed:.{n}f}"), 6)
    return f"{value:.{decimals}f} of {more}{needed:.{decimals}f} needed"


def _in_mixture(builder: Builder, place: Place, mixture: Mixture) -> Told:
    folder = builder.store.mixture(mixture.name, place.pack.name)
    told: Told = {"mixture": mixture.name, "state": "kept", "reasons": [], "folder": str(folder)}
    if not builder.effective(mixture).has_source(place.pack.source.name):
        return {**told, "state": "not taken", "is_todays": None, "made": None}
    if not (folder / MANIFEST).is_file():
        return {**told, "state": "not built", "is_todays": None, "made": None}
    manifest = read_json(folder / MANIFEST)
    reasons = _reasons(folder / REMOVED_FILE, place)
    if place.shard.name not in {one["shard"] for one in manifest["shards"]}:
        told["state"] = "not there when it was built"
    elif any(reason["what"] == "document" for reason in reasons):
        told["state"] = "removed"
    elif reasons:
        told["state"] = "cut"
    return {
        **told,
        "reasons": reasons,
        "is_todays": builder.is_current(mixture, place.pack),
        "fingerprint": manifest["fingerprint"],
        "scan": manifest["scan"],
        "idf_snapshot": manifest["idf_snapshot"],
        "benchmarks": manifest["benchmarks"],
        "made": str(folder / MANIFEST),
    }


def _reasons(path: Path, place: Place) -> list[Told]:
    if not path.is_file():
        return []
    rows = read_parquet(path, schema=REMOVED, filters=_of_row("shard", "row", place))
    told = rows.drop_columns(["shard", "row", "doc_id"]).to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in told]


def _of_row(shard: str, row: str, place: Place) -> Any:
    return (pc.field(shard) == place.shard.name) & (pc.field(row) == place.row)


def _in_blend(builder: Builder, place: Place, blend: Blend) -> Told:
    """How often it was drawn, and where it stands; how often a test item took its place."""
    folder = builder.store.blend(blend.name)
    told: Told = {"blend": blend.name, "of": blend.of, "is_built": False, "n_texts": 0}
    if not (folder / MANIFEST).is_file():
        return {**told, "parts": [], "n_replaced": 0}
    own = _of_row("shard", "corpus_row", place) & (pc.field("source") == place.pack.source.name)
    texts = read_parquet(folder / TEXTS_FILE, schema=BLENDED, filters=own)
    replaced = read_parquet(folder / REPLACED_FILE, schema=REPLACED, filters=own)
    parts = sorted({*texts["part"].to_pylist()})
    return {
        **told,
        "is_built": True,
        "n_texts": texts.num_rows,
        "parts": parts,
        "n_replaced": replaced.num_rows,
    }
