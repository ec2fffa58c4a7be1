"""Verify a blend against its manifest: checksums, counts, and a scan of its content.

Its parts are scanned like shards of a corpus, into the same store. If the mixture is clean, only
the inserted items may leak. The scan also counts in how many of these it finds the item.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.errors import DeconError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.local import LOCAL
from decon_core.features.blends.build import Blender, blend_faults
from decon_core.features.blends.counts import account_of
from decon_core.features.blends.plan import plan_blend
from decon_core.features.blends.schemas import (
    BLEND_ITEMS,
    BLENDED,
    ITEMS_FILE,
    TEXTS_FILE,
    blend_folder,
    blend_manifest,
)
from decon_core.features.blends.settings import Blend
from decon_core.mixtures.card import CARD
from decon_core.mixtures.choice import leaks_of
from decon_core.mixtures.layouts import ID, TEXT
from decon_core.mixtures.manifest import REBUILD, inspect_products, read_manifest
from decon_core.mixtures.verify import Verification
from decon_core.scan.scanner import Progress
from decon_core.schemas import schema_of
from decon_core.storage.files import read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet
from decon_core.storage.verification import Inspection

_MOST_LISTED = 20

Name = tuple[str, str, int]
_NAME = ("benchmark", "split", "instance_index")


def inspect_changed_blends(store: Store, blends: Sequence[Blend]) -> Inspection:
    """Verify the blends that were built or modified since the last inspection."""
    products = {
        blend.name: (blend_manifest(store, blend.name), blend_folder(store, blend.name))
        for blend in blends
    }
    return inspect_products(store, "blends", products, blend_faults)


@dataclass
class BlendVerification(Verification):
    n_test_texts: int = 0
    n_found: int = 0  # inserted texts in which the scan finds their item
    n_given_away: int = 0  # unseen items that are found in the text of another item


def verify_blend(
    blender: Blender,
    blend: Blend,
    *,
    workers: int = 1,
    engine: Engine = LOCAL,
    on_progress: Progress | None = None,
) -> BlendVerification:
    """Verify a blend: it exists, is intact and current, and has the content of its manifest."""
    builder, store = blender.builder, blender.builder.store
    folder, path = blend_folder(store, blend.name), blend_manifest(store, blend.name)
    if not path.is_file():
        remedy = "`decon-assets run` builds it"
        return BlendVerification([Problem(str(folder), "not built", remedy=remedy)])
    manifest = read_manifest(path)
    if manifest is None or manifest.get("fingerprint") != blender.fingerprint(blend):
        found = (
            "the manifest is damaged, or the blend was built from another mixture, benchmarks or "
            "settings than the current ones"
        )
        remedy = "`decon-assets run` builds it again"
        return BlendVerification([Problem(str(folder), found, remedy=remedy)])
    faults = blend_faults(path, folder) or [*_check_plan(blender, blend, path, folder)]
    result = BlendVerification(faults)
    if faults:
        return result
    source = Source(name=blend.name, path="", text=TEXT, id=ID)
    names = [part["file"] for part in manifest["parts"]]
    shards = tuple(shard_at(source, folder / name, folder) for name in names)
    pack = Pack(name=blend.name, source=source, shards=shards)
    if result.scan(builder, [pack], workers=workers, engine=engine, on_progress=on_progress):
        _check_scan(blender, blend, pack, result)
    return result


def _check_plan(blender: Blender, blend: Blend, path: Path, folder: Path) -> Iterator[Problem]:
    """Compare the manifest with a new plan of the blend, and the card with the manifest."""
    manifest = read_json(path)
    texts = read_parquet(
        path.with_name(TEXTS_FILE), schema=schema_of(BLENDED), columns=["n_tokens"]
    )
    try:
        plan = plan_blend(blender.builder, blend, blender.rewordings)
    except DeconError as error:  # the mixture may not be current
        yield from error.problems
        return
    account = account_of(plan, texts["n_tokens"].to_numpy())
    for name, planned in json.loads(json.dumps(account)).items():
        if manifest[name] != planned:
            where = f"{path}: {name}"
            yield Problem(where, "the numbers differ from those of the plan", remedy=REBUILD)
    if not blender.has_card(folder, manifest):
        found, remedy = "it does not match the manifest", "`decon-assets run` writes it again"
        yield Problem(str(folder / CARD), found, remedy=remedy)


def _check_scan(blender: Blender, blend: Blend, pack: Pack, result: BlendVerification) -> None:
    """Compare counts and leaks of the scanned parts with the tables; add them to `result`."""
    builder = blender.builder
    path = blend_manifest(builder.store, blend.name)
    mixture = blender.mixture_of(blend)
    texts = read_parquet(path.with_name(TEXTS_FILE), schema=schema_of(BLENDED))
    columns = [*_NAME, "is_seen"]
    items = read_parquet(path.with_name(ITEMS_FILE), schema=schema_of(BLEND_ITEMS), columns=columns)
    names: dict[bool, set[Name]] = {True: set(), False: set()}
    for item in items.to_pylist():
        names[item["is_seen"]].add(_name(item))
    unseen = names[False] - names[True]  # no contamination of the blend inserts them
    given_away: set[Name] = set()
    parts = read_json(path)["parts"]
    for number, shard in enumerate(pack.shards):
        listed = texts.filter(pa.compute.equal(texts["part"], number))
        # Hidden text of documents is among other fields, which are not read.
        n_tokens = int(listed["n_tokens"].to_numpy().sum())
        n_tokens -= parts[number].get("n_hidden_tokens", 0)
        if not result.add_counts(builder.reader, shard, listed.num_rows, n_tokens):
            continue
        inserted = listed.filter(pa.compute.is_null(listed["shard"])).select(["row", *_NAME])
        items_by_row = {item["row"]: _name(item) for item in inserted.to_pylist()}
        result.n_test_texts += len(items_by_row)
        for row, entries in _leaks(blender, mixture, shard, listed):
            if row in items_by_row:
                result.n_found += items_by_row[row] in map(_name, entries)
                leaked = (_name(entry) for entry in entries if entry["is_contaminated"])
                given_away |= unseen.intersection(leaked)
                continue
            result.n_leaks += 1
            if mixture.take == "clean" and len(result.problems) < _MOST_LISTED:
                leaked_item = " ".join(map(str, min(map(_name, entries))))
                where = f"{Path(shard.path).name}: row {row}"
                result.problems.append(Problem(where, f"a leak of {leaked_item}", "no leak"))
    result.n_given_away = len(given_away)


def _leaks(
    blender: Blender, mixture: Mixture, shard: Shard, listed: pa.Table
) -> list[tuple[int, list[Any]]]:
    """Return the leaks in the rows of a part, by row, with the settings of each row's source."""
    looked_for = Mixture(name=mixture.name, leaks=mixture.leaks)
    sources, reader = listed["source"].to_pylist(), blender.builder.reader_for(mixture)
    return sorted(
        (row, entries)
        for source in sorted(set(sources))
        for row, entries in leaks_of(reader, shard, looked_for, source=source).items()
        if sources[row] == source
    )


def _name(entry: Mapping[str, Any]) -> Name:
    return entry["benchmark"], entry["split"], entry["instance_index"]
