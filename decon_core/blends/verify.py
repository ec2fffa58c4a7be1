"""A blend held to its account: the bytes, the counts, and a scan of what is in it.

Its parts are scanned like shards of a corpus, into the same store. Where the mixture that it was
drawn from holds no leak, no text may hold one but those that were put in on purpose; and of these
the scan must find what it can see, or a study would measure something else than it says.
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
from decon_core.blends.build import ITEMS_FILE, TEXTS_FILE, Blender, blend_damage, has_card
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

_MOST_TOLD = 20
_REMEDY = "remove the folder; `decon-assets run` builds it anew"

Name = tuple[str, str, int]  # benchmark, split, row


def changed_blend_damage(store: Store, blends: Sequence[Blend]) -> Inspection:
    """What does not add up in blends that were drawn, or touched, since they were looked at."""
    folders = {one.name: store.blend(one.name) for one in blends}
    stamps = {
        name: stamp_of_files(folder, MANIFEST)
        for name, folder in folders.items()
        if (folder / MANIFEST).is_file()
    }
    return inspect_changed(store, "blends", stamps, lambda name: blend_damage(folders[name]))


@dataclass
class BlendVerdict:
    """What is wrong with a blend; nothing, if all is as it says."""

    problems: list[Problem] = field(default_factory=list)
    n_documents: int = 0
    n_tokens: int = 0
    n_leaks: int = 0  # documents that hold one, and were drawn from the mixture
    n_test_texts: int = 0
    n_found: int = 0  # texts of test items in which the scan finds their item
    n_given_away: int = 0  # items that are to stay unseen, and are found in the text of another


def verify_blend(
    blender: Blender, blend: Blend, *, workers: int = 1, on_progress: Progress | None = None
) -> BlendVerdict:
    """Check that a blend is there, whole, of today, and holds what it says and nothing else."""
    builder, folder = blender.builder, blender.builder.store.blend(blend.name)
    found = BlendVerdict(problems=[*_standing(blender, blend, folder)])
    if found.problems:
        return found
    source = Source(name=blend.name, path="", text=TEXT, id=ID)
    names = [part["file"] for part in read_json(folder / MANIFEST)["parts"]]
    shards = tuple(shard_at(source, folder / name, folder) for name in names)
    pack = Pack(name=blend.name, source=source, shards=shards)
    problems = scan_output(builder, [pack], workers=workers, on_progress=on_progress)
    if problems:
        found.problems += problems
        return found
    _look_into(blender, blend, pack, found)
    return found


def _standing(blender: Blender, blend: Blend, folder: Path) -> list[Problem]:
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a blend", "`decon-assets run` builds it")]
    if not blender.is_of_today(blend):
        return [
            Problem(
                str(folder),
                "a manifest of another mixture, benchmarks or settings, or one that is damaged",
                "one of today's",
                "`decon-assets run` builds it anew",
            )
        ]
    return blend_damage(folder) or [*_other_words(blender, blend, folder)]


def _other_words(blender: Blender, blend: Blend, folder: Path) -> Iterator[Problem]:
    """Where manifest or card say something else than a plan that is made once more."""
    manifest = read_json(folder / MANIFEST)
    texts = read_parquet(folder / TEXTS_FILE, schema=BLENDED, columns=["n_tokens"])
    try:
        plan = plan_blend(blender.builder, blend)
    except DeconError as error:  # of the mixture, say
        yield from error.problems
        return
    account = account_of(plan, texts["n_tokens"].to_numpy())
    for name, planned in json.loads(json.dumps(account)).items():
        if manifest[name] != planned:
            where = f"{folder / MANIFEST}: {name}"
            yield Problem(where, "other numbers", "those of the plan", _REMEDY)
    if not has_card(folder, manifest):
        remedy = "`decon-assets run` writes it anew"
        yield Problem(str(folder / CARD), "another text", "what the manifest says", remedy)


def _look_into(blender: Blender, blend: Blend, pack: Pack, found: BlendVerdict) -> None:
    """Counts and leaks of what was scanned."""
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
        found.n_documents += ledger["n_documents"]
        found.n_tokens += n_tokens
        there = (ledger["n_documents"], n_tokens, len(ledger["unreadable"]))
        wanted = (listed.num_rows, int(listed["n_tokens"].to_numpy().sum()), 0)
        if there != wanted:
            told = "{} documents, {} tokens, {} rows unread"
            found.problems.append(Problem(shard.path, told.format(*there), told.format(*wanted)))
            continue
        items = _items_by_row(listed)
        found.n_test_texts += len(items)
        for row, entries in _leaks(blender, mixture, shard, listed):
            names = {(one["benchmark"], one["split"], one["instance_index"]) for one in entries}
            if row in items:
                found.n_found += items[row] in names
                given_away |= unseen.intersection(
                    (one["benchmark"], one["split"], one["instance_index"])
                    for one in entries
                    if one["is_contaminated"]
                )
                continue
            found.n_leaks += 1
            if mixture.take == "clean" and len(found.problems) < _MOST_TOLD:
                item = " ".join(map(str, min(names)))
                where = f"{Path(shard.path).name}: row {row}"
                found.problems.append(Problem(where, f"a leak of {item}", "none"))
    found.n_given_away = len(given_away)


def _leaks(
    blender: Blender, mixture: Mixture, shard: Shard, listed: pa.Table
) -> list[tuple[int, list[Any]]]:
    """What is found in the rows of a part, as in the sources that they are of."""
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
    """The test items of a part, by row."""
    items = listed.filter(pa.compute.is_null(listed["shard"]))
    columns = (items[name].to_pylist() for name in ("row", "benchmark", "split", "instance_index"))
    return {row: (name, split, at) for row, name, split, at in zip(*columns, strict=True)}


def _unseen(folder: Path) -> set[Name]:
    """The items that are to stay unseen: by no contamination of the blend seen."""
    table = read_parquet(folder / ITEMS_FILE, schema=BLEND_ITEMS)
    columns = (table[name].to_pylist() for name in ("benchmark", "split", "instance_index"))
    names = [*zip(*columns, strict=True)]
    is_seen = table["is_seen"].to_numpy()
    seen = {names[at] for at in np.flatnonzero(is_seen).tolist()}
    return {names[at] for at in np.flatnonzero(~is_seen).tolist()} - seen
