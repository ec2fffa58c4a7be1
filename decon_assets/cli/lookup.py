"""`decon-assets lookup`: find a text or new benchmark items in the corpus."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_assets.terminal.options import ConfigPath, Workers, argument, flag, optional
from decon_assets.terminal.output import say, say_table, warn
from decon_assets.terminal.progress import ShardProgress
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.corpus.registration import list_packs
from decon_core.decisions.lookup import FoundItems, bounded, look_up
from decon_core.errors import InputError, Problem
from decon_core.execution.jobs import wanted_workers
from decon_core.execution.local import LOCAL
from decon_core.library.evals import records_of
from decon_core.scan.answers import why_unbounded
from decon_core.wording import counted, to_scan

if TYPE_CHECKING:
    import pyarrow as pa


_NAME = "text"  # The benchmark that holds a text of the command line.
_MOST_ROWS = 50


def lookup(
    text: str | None = argument("the text to look up, at least 12 tokens", "TEXT", default=None),
    *,
    items: Path | None = optional(
        "look up these items instead: normalized records (a JSONL file or a folder), or a recipe "
        "file (.yaml)",
        "PATH",
    ),
    as_json: bool = flag("--json", "print everything as JSON"),
    workers: Workers = None,
    config: ConfigPath,
) -> int:
    """Find a text or new benchmark items in the corpus.

    If decon.toml has a [sketch] table (docs/sketch.md), the command reads and scans only the blocks
    of documents that may contain a match. It runs only the policy's detectors that work with the
    sketch; they find the same matches as in a scan of the whole corpus. Without a sketch, all
    shards are scanned, which takes as long as a full scan. The command registers and stores
    nothing.

    TEXT is treated as a question without an answer. Records for --items have the fields eval_key,
    split and question, and also answer and passage if the item has them.

    Examples:
      decon-assets lookup "Natalia sold clips to 48 of her friends in April, and then she sold ..."
      decon-assets lookup --items new.jsonl
      decon-assets lookup --items new.jsonl --json

    Exit codes: 0 everything was searched; 1 some packs have no sketch and were not searched; 2
    invalid input.
    """
    loaded = load_config(config)
    store = open_store(loaded)
    packs, records = list_packs(store), _records(text, items)
    with ShardProgress(sys.stderr, LOCAL) as progress:

        def say_scan() -> None:
            if loaded.sketch:
                return
            shards = [shard for pack in packs for shard in pack.shards]
            progress.step(f"no [sketch] in decon.toml: scanning {counted(len(shards), 'shard')}")
            progress.step(to_scan(len(shards), sum(shard.n_bytes for shard in shards)))

        found = look_up(
            store,
            packs,
            records,
            loaded.policy,
            loaded.sketch,
            workers=workers or wanted_workers(),
            before_scan=say_scan,
            on_progress=progress.update if not loaded.sketch else None,
        )
    if as_json:
        say(json.dumps(_as_json(found), indent=1, ensure_ascii=False))
    else:
        _say_found(found)
    if loaded.sketch and (why := why_unbounded(loaded.policy)):
        warn(f"searched with {', '.join(bounded(loaded.policy).detectors)} only: {why}")
    for pack in found.not_sketched:
        warn(f"not searched: {pack.name} has no sketch; `decon-assets run` builds it")
    return 1 if found.not_sketched else 0


def _records(text: str | None, items: Path | None) -> Mapping[str, pa.Table]:
    if (text is None) == (items is None):
        found = "nothing to look for" if text is None else "TEXT and --items"
        raise InputError(Problem("lookup", found, "a TEXT, or --items PATH"))
    record = {"eval_key": _NAME, "split": _NAME, "question": text, "answer": ""}
    return records_of([record] if items is None else items)


_COLUMNS = ("benchmark", "split", "instance_index", "detector", "row", "doc_id", "score")


def _rows(found: FoundItems) -> list[dict[str, Any]]:
    rows = []
    for entry in found.entries.to_pylist():
        pack, shard = found.shards[entry["shard"]]
        kind = "leak" if entry["is_contaminated"] else "no answer"
        if not (entry["is_contaminated"] or entry["is_no_answer"]):
            kind = "below the threshold"
        place = {"pack": pack.name, "shard": shard.name, "kind": kind}
        rows.append(place | {name: entry[name] for name in _COLUMNS})
    return sorted(rows, key=lambda row: (-row["score"], row["shard"], row["row"]))


def _as_json(found: FoundItems) -> dict[str, Any]:
    return {
        "matches": _rows(found),
        "blocks": [
            {"pack": pack.name, "shard": shard.name, "block": block}
            for pack, shard, block in found.blocks
        ],
        "n_blocks": found.n_blocks,
        "n_items": found.n_items,
        "not_indexed": dict(found.dropped),
        "not_searched": [pack.name for pack in found.not_sketched],
    }


def _item(row: Mapping[str, Any]) -> str:
    if row["benchmark"] == row["split"] == _NAME:
        return "the text"
    return f"{row['benchmark']} {row['split']} {row['instance_index']}"


def _say_found(found: FoundItems) -> None:
    if found.n_blocks:
        say(f"{len(found.blocks)} of {counted(found.n_blocks, 'block')} may contain a match")
    for reason, n in found.dropped.items():
        say(f"not searched: {counted(n, 'item')} ({reason})")
    rows = _rows(found)
    if not rows:
        say("no match")
        return
    heads = ("item", "kind", "score", "shard:row", "id")
    table = [
        (
            _item(row),
            row["kind"],
            round(row["score"], 3),
            f"{row['shard']}:{row['row']}",
            row["doc_id"] or "",
        )
        for row in rows[:_MOST_ROWS]
    ]
    say_table(heads, table)
    if len(rows) > _MOST_ROWS:
        say(f"... and {len(rows) - _MOST_ROWS} more (--json prints all)")
