"""Verify a blend against its manifest: checksums, counts, and a scan of its content.

Its parts are scanned like shards of a corpus, into the same store. If the mixture is clean, only
the inserted items may leak. The scan also counts in how many of these it finds the item.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.blends.account import account_of
from decon_core.blends.build import ITEMS_FILE, TEXTS_FILE, Blender, blend_faults, has_card
from decon_core.blends.plan import plan_blend
from decon_core.config.blends import Blend
from decon_core.config.load import Source
from decon_core.config.mixtures import Mixture
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.errors import DeconError, Problem
from decon_core.mixtures.card import CARD
from decon_core.mixtures.choice import leaks_of
from decon_core.mixtures.layouts import ID, TEXT
from decon_core.mixtures.manifest import MANIFEST
from decon_core.mixtures.verify import scan_output
from decon_core.scan.scanner import Progress
from decon_core.schemas import BLEND_ITEMS, BLENDED
from decon_core.storage.store import Store, read_json, read_parquet
from decon_core.storage.verification import Inspection, inspect_changed, stamp_of_files

_MOST_LISTED = 20
_REMEDY = "remove the folder; `decon-assets run` builds it again"

Name = tuple[str, str, int]  # benchmark, split, row


def inspect_changed_blends(store: Store, blends: Sequence[Blend]) -> Inspection:
    """Verify the blends that were built or modified since the last inspection."""
    folders = {one.name: store.blend(one.name) for one in blends}
    stamps = {
        name: stamp_of_files(folder, MANIFEST)
        for name, folder in folders.items()
        if (folder / MANIFEST).is_file()
    }
    return inspect_changed(store, "blends", stamps, lambda name: blend_faults(folders[name]))


@dataclass
class BlendVerification:
    """The result of verifying a blend. Without problems, it matches its manifest."""

    problems: list[Problem] = field(default_factory=list)
    n_documents: int = 0
    n_tokens: int = 0
    n_leaks: int = 0  # documents of the mixture with a leak
    n_test_texts: int = 0
    n_found: int = 0  # inserted texts in which the scan finds their item
    n_given_away: int = 0  # unseen items that are found in the text of another item


def verify_blend(
    blender: Blender, blend: Blend, *, workers: int = 1, on_progress: Progress | None = None
) -> BlendVerification:
    """Verify a blend: it exists, is intact and current, and has the content of its manifest."""
    builder, folder = blender.builder, blender.builder.store.blend(blend.name)
    result = BlendVerification(problems=_check_files(blender, blend, folder))
    if result.problems:
        return result
    source = Source(name=blend.name, path="", text=TEXT, id=ID)
    names = [part["file"] for part in read_json(folder / MANIFEST)["parts"]]
    shards = tuple(shard_at(source, folder / name, folder) for name in names)
    pack = Pack(name=blend.name, source=source, shards=shards)
    problems = scan_output(builder, [pack], workers=workers, on_progress=on_progress)
    if problems:
        result.problems += problems
        return result
    _check_scan(blender, blend, pack, result)
    return result


def _check_files(blender: Blender, blend: Blend, folder: Path) -> list[Problem]:
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a blend", "`decon-assets run` builds it")]
    if not blender.has_current_manifest(blend):
        return [
            Problem(
                str(folder),
                "a manifest of another mixture, benchmarks or settings, or a damaged one",
                "one made from the current inputs",
                "`decon-assets run` builds it again",
            )
        ]
    return blend_faults(folder) or [*_check_plan(blender, blend, folder)]


def _check_plan(blender: Blender, blend: Blend, folder: Path) -> Iterator[Problem]:
    """Compare the manifest with a new plan of the blend, and the card with the manifest."""
    manifest = read_json(folder / MANIFEST)
    texts = read_parquet(folder / TEXTS_FILE, schema=BLENDED, columns=["n_tokens"])
    try:
        plan = plan_blend(blender.builder, blend)
    except DeconError as error:  # for example, the mixture is not current
        yield from error.problems
        return
    account = account_of(plan, texts["n_tokens"].to_numpy())
    for name, planned in json.loads(json.dumps(account)).items():
        if manifest[name] != planned:
            where = f"{folder / MANIFEST}: {name}"
            yield Problem(where, "other numbers", "those of the plan", _REMEDY)
    if not has_card(folder, manifest):
        remedy = "`decon-assets run` writes it again"
        expected = "the card rendered from the manifest"
        yield Problem(str(folder / CARD), "another text", expected, remedy)


def _check_scan(blender: Blender, blend: Blend, pack: Pack, result: BlendVerification) -> None:
    """Compare counts and leaks of the scanned parts with the tables; add them to `result`."""
    builder = blender.builder
    store, reader = builder.store, builder.reader
    folder = store.blend(blend.name)
    mixture = blender.mixture_of(blend)
    texts = read_parquet(folder / TEXTS_FILE, schema=BLENDED)
    unseen = _unseen(folder)
    given_away: set[Name] = set()
    for number, shard in enumerate(pack.shards):
        listed = texts.filter(pa.compute.equal(texts["part"], number))
        ledger = read_json(store.ledger(reader.scan, shard.fingerprint))
        n_tokens = _tokens_scanned(blender, shard.fingerprint)
        result.n_documents += ledger["n_documents"]
        result.n_tokens += n_tokens
        counts = (ledger["n_documents"], n_tokens, len(ledger["unreadable"]))
        expected = (listed.num_rows, int(listed["n_tokens"].to_numpy().sum()), 0)
        if counts != expected:
            text = "{} documents, {} tokens, {} unreadable rows"
            problem = Problem(shard.path, text.format(*counts), text.format(*expected))
            result.problems.append(problem)
            continue
        items = _items_by_row(listed)
        result.n_test_texts += len(items)
        for row, entries in _leaks(blender, mixture, shard, listed):
            names = {(one["benchmark"], one["split"], one["instance_index"]) for one in entries}
            if row in items:
                result.n_found += items[row] in names
                given_away |= unseen.intersection(
                    (one["benchmark"], one["split"], one["instance_index"])
                    for one in entries
                    if one["is_contaminated"]
                )
                continue
            result.n_leaks += 1
            if mixture.take == "clean" and len(result.problems) < _MOST_LISTED:
                item = " ".join(map(str, min(names)))
                where = f"{Path(shard.path).name}: row {row}"
                result.problems.append(Problem(where, f"a leak of {item}", "no leak"))
    result.n_given_away = len(given_away)


def _leaks(
    blender: Blender, mixture: Mixture, shard: Shard, listed: pa.Table
) -> list[tuple[int, list[Any]]]:
    """Return the leaks in the rows of a part, by row, with the settings of each row's source."""
    looked_for = Mixture(name=mixture.name, leaks=mixture.leaks)
    sources = listed["source"].to_pylist()
    return sorted(
        (row, entries)
        for source in sorted(set(sources))
        for row, entries in leaks_of(
            blender.builder.reader, shard, looked_for, source=source
        ).items()
        if sources[row] == source
    )


def _tokens_scanned(blender: Blender, shard: str) -> int:
    path = blender.builder.store.documents(blender.builder.reader.scan, shard)
    return int(read_parquet(path, columns=["n_tokens"])["n_tokens"].to_numpy().sum())


def _items_by_row(listed: pa.Table) -> dict[int, Name]:
    """Return the inserted items of a part, by row."""
    items = listed.filter(pa.compute.is_null(listed["shard"]))
    columns = (items[name].to_pylist() for name in ("row", "benchmark", "split", "instance_index"))
    return {row: (name, split, at) for row, name, split, at in zip(*columns, strict=True)}


def _unseen(folder: Path) -> set[Name]:
    """Return the items that no contamination of the blend inserts."""
    table = read_parquet(folder / ITEMS_FILE, schema=BLEND_ITEMS)
    columns = (table[name].to_pylist() for name in ("benchmark", "split", "instance_index"))
    names = [*zip(*columns, strict=True)]
    is_seen = table["is_seen"].to_numpy()
    seen = {names[at] for at in np.flatnonzero(is_seen).tolist()}
    return {names[at] for at in np.flatnonzero(~is_seen).tolist()} - seen
