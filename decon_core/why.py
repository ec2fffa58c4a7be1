"""Why a document is in a mixture, or is not: what was found of it, by what, made from what.

Read off the store's own accounts: ledgers and tiles, what mixtures and blends list. A report need
not have been made. Which run of a scheduler made a tile is not known here: `made` has the place on
disk by which whoever knows can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.blending.build import REPLACED_FILE, TEXTS_FILE
from decon_core.blends import Blend
from decon_core.config import Showing
from decon_core.corpus import Pack, Shard
from decon_core.errors import CorpusError, InputError, Problem
from decon_core.idf import current_snapshot_fingerprint
from decon_core.mixtures.build import Builder
from decon_core.mixtures.choice import Sizes
from decon_core.mixtures.standing import MANIFEST, REMOVED_FILE
from decon_core.reading.documents import Document, Unreadable
from decon_core.reading.shards import read_shard
from decon_core.records import Version, load_records
from decon_core.report.evidence import PARTS, shown
from decon_core.schemas import BLENDED, REMOVED, REPLACED
from decon_core.store import read_json
from decon_core.variants import Mixture

SCHEMA = "decon-assets/why/1"

_OF_ENTRY = (
    *("is_contaminated", "is_by_score", "detector", "benchmark", "config", "split"),
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
    builder: Builder, asked: str, *, shard: str | None = None, is_everywhere: bool = False
) -> list[Place]:
    """The documents of an id, or the one that is named as `shard:row`.

    Ids stand in tiles and in lists of what was removed. Where they have none of that name, or
    `is_everywhere`, every row is read.
    """
    shards = [(pack, one) for pack, one in builder.shards if shard in (None, one.name, one.path)]
    if not shards:
        found = repr(shard) if shard else "no registered shard"
        raise InputError(Problem("shard", found, "the name of a registered shard", _STATUS))
    named = _named(shards, asked)
    if named:
        return named
    known = [] if is_everywhere else list(_known(builder, shards, asked))
    return known or list(_read(shards, asked))


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
    sight = builder.sight
    tiles = [
        path
        for _, shard in shards
        for version in builder.versions
        if (path := sight.store.tile(sight.scan, shard.fingerprint, version.fingerprint)).is_file()
    ]
    found: dict[str, set[int]] = {}
    if tiles:
        frame = pl.scan_parquet(tiles, glob=False).filter(pl.col("doc_id") == asked)
        for name, row in frame.select("shard", "row").collect().iter_rows():
            found.setdefault(name, set()).add(row)
    return found


def _listed(builder: Builder, pack: Pack, asked: str) -> Iterator[tuple[str, int]]:
    for folder in builder.store.mixtures_of(pack.name):
        path = folder / REMOVED_FILE
        if path.is_file():
            table = pq.read_table(path, schema=REMOVED, columns=["shard", "row", "doc_id"])
            rows = table.filter(pc.field("doc_id") == asked).to_pylist()
            yield from ((row["shard"], row["row"]) for row in rows)


def _read(shards: Sequence[tuple[Pack, Shard]], asked: str) -> Iterator[Place]:
    for pack, shard in shards:
        if pack.source.id is None:
            continue
        for row in read_shard(shard, pack.source):
            if isinstance(row, Document) and row.id == asked:
                yield Place(pack, shard, row.row)


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
    return {
        "schema": SCHEMA,
        "document": _document(builder, place, row),
        "not_scanned_against": _not_scanned(builder, place),
        "found": _found(builder, place, text if showing.snippets else None, showing),
        "mixtures": [_in_mixture(builder, place, mixture) for mixture in mixtures],
        "blends": [_in_blend(builder, place, blend) for blend in blends],
        "settings": {
            "scan": builder.sight.scan,
            "idf_snapshot": current_snapshot_fingerprint(builder.store),
            "thresholds": builder.policy.thresholds,
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
    scan = builder.sight.scan
    if not builder.store.documents(scan, place.shard.fingerprint).is_file():
        return None
    sizes = Sizes.of(builder.store, place.shard, scan)
    at = int(sizes.at([place.row])[0])
    is_there = at < sizes.rows.size and sizes.rows[at] == place.row
    return int(sizes.n_tokens[at]) if is_there else None


def _not_scanned(builder: Builder, place: Place) -> list[str]:
    return [v.benchmark for v in builder.versions if v not in _scanned(builder, place)]


def _scanned(builder: Builder, place: Place) -> list[Version]:
    store, scan, shard = builder.store, builder.sight.scan, place.shard.fingerprint
    if not store.ledger(scan, shard).is_file():
        return []
    return [v for v in builder.versions if store.tile(scan, shard, v.fingerprint).is_file()]


def _found(builder: Builder, place: Place, text: str | None, showing: Showing) -> list[Told]:
    """Leaks first, then what came closest."""
    versions = {version.benchmark: version for version in _scanned(builder, place)}
    entries = builder.sight.entries(
        place.shard, [*versions.values()], source=place.pack.source.name
    )
    own = entries.filter(pc.field("row") == place.row).to_pylist()
    own.sort(key=lambda one: (not one["is_contaminated"], -one["score"], one["benchmark"]))
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
    tile = builder.store.tile(builder.sight.scan, place.shard.fingerprint, version.fingerprint)
    said = builder.verdicts.by_pair.get(entry["pair"])
    return {
        **{name: entry[name] for name in _OF_ENTRY},
        "threshold": builder.policy.thresholds[entry["detector"]],
        "characters": {part: [*span] for part, span in spans.items()},
        "parts": {part: entry[f"{part}_part"] for part in spans},
        "said": asdict(said) if said else None,
        "benchmark_version": version.fingerprint,
        "texts": _texts(builder, entry, version, spans, text, showing),
        "made": str(tile),
    }


def _texts(
    builder: Builder,
    entry: Mapping[str, Any],
    version: Version,
    spans: Mapping[str, tuple[int, int]],
    text: str | None,
    showing: Showing,
) -> Told | None:
    """Both sides; nothing where texts of the corpus are not to be shown."""
    if text is None:
        return None
    record = load_records(builder.store, version, columns=[*PARTS])
    (item,) = record.slice(entry["record"], 1).to_pylist()
    piece = shown(
        text,
        spans,
        item,
        context=showing.context,
        punctuation=builder.policy.punctuation_chars,
    )
    return {"document": piece.text, "from_character": piece.start, "item": item}


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
        "is_todays": builder.stands(mixture, place.pack),
        "fingerprint": manifest["fingerprint"],
        "scan": manifest["scan"],
        "idf_snapshot": manifest["idf_snapshot"],
        "benchmarks": manifest["benchmarks"],
        "made": str(folder / MANIFEST),
    }


def _reasons(path: Path, place: Place) -> list[Told]:
    if not path.is_file():
        return []
    rows = pq.read_table(path, schema=REMOVED, filters=_of_row("shard", "row", place))
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
    texts = pq.read_table(folder / TEXTS_FILE, schema=BLENDED, filters=own)
    replaced = pq.read_table(folder / REPLACED_FILE, schema=REPLACED, filters=own)
    parts = sorted({*texts["part"].to_pylist()})
    return {
        **told,
        "is_built": True,
        "n_texts": texts.num_rows,
        "parts": parts,
        "n_replaced": replaced.num_rows,
    }
