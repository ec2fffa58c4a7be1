"""Plantings into documents, documents into shards, and the truth of what is where.

<out>/planted-text-0000.jsonl.zst    rows with "id" and "text"
<out>/planted-chat-0000.jsonl.zst    rows with "id" and "messages"
<out>/truth.jsonl                    one planted item of one document a line
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import orjson
import polars as pl

from decon_core.config.load import Source
from decon_core.quality.scorecard.edits import Turn
from decon_core.quality.scorecard.plan import Plan, Planting, seeded
from decon_core.storage.compression import create
from decon_core.storage.store import atomic_path

TRUTH_FILE = "truth.jsonl"
TRUTH = pl.Schema(
    {
        "shard": pl.String,  # file name
        "row": pl.Int64,
        "planting": pl.String,
        "kind": pl.String,  # plant or hard_negative
        "transformation": pl.String,
        "grade": pl.String,
        "benchmark": pl.String,
        "split": pl.String,
        "instance_index": pl.Int64,  # of a hard negative: the item that it was made of
        "start": pl.Int64,  # the planted text in the document's, in characters
        "stop": pl.Int64,
        "place": pl.String,  # alone, start, middle, end
    }
)

_TEXT, _CHAT = "planted-text", "planted-chat"
_BETWEEN = "\n\n"  # as documents of several messages are read
_ALONE_SHARE = 0.25
_MOST_REUSED = 500  # hosts that are kept to be used again when the corpus has too few


@dataclass(frozen=True)
class World:
    """What was written."""

    n_documents: int
    n_background: int
    n_hosts: int  # different ones, background included


def sources(out: Path) -> tuple[Source, ...]:
    """How to read the shards that there are."""
    both = (
        Source(name=_TEXT, path=str(out / f"{_TEXT}-*.jsonl.zst"), text="text", id="id"),
        Source(name=_CHAT, path=str(out / f"{_CHAT}-*.jsonl.zst"), messages="messages", id="id"),
    )
    return tuple(source for source in both if any(out.glob(f"{source.name}-*")))


def read_truth(out: Path) -> pl.DataFrame:
    return pl.read_ndjson(out / TRUTH_FILE, schema=TRUTH)


def write_world(
    plan: Plan,
    hosts: Iterable[str],
    out: Path,
    *,
    n_background: int = 1000,
    documents_per_shard: int = 2000,
    most_host_characters: int = 20_000,
) -> World:
    """Plant everything into texts of a corpus, and write shards and truth, whole or not at all.

    A quarter of the plantings stand alone. Each of the others has a host of its own, and so many
    hosts stay as they are; when the corpus has too few, hosts are used again, and background is
    what suffers. Very long hosts are cut: they would make up the whole.
    """
    queue = _Hosts(hosts, most_host_characters)
    order = _order(plan, n_background)
    n_background = 0
    with atomic_path(out) as draft:
        draft.mkdir()
        shards = _Shards(draft, documents_per_shard)
        with create(draft / TRUTH_FILE, "") as truth:
            for number, planting in enumerate(order):
                if planting is None:
                    text = queue.fresh()
                    if text is not None:
                        shards.add(_TEXT, {"id": f"background-{number:06}", "text": text})
                        n_background += 1
                    continue
                placed = _placed(planting, queue, seeded(plan.seed, "place", planting.id))
                shard, row = shards.add(placed.name, {"id": f"planted-{number:06}", **placed.row})
                for line in _truth(planting, placed, shard, row):
                    truth.write(orjson.dumps(line) + b"\n")
        shards.close()
    return World(shards.n_documents, n_background, queue.n_fresh)


def _order(plan: Plan, n_background: int) -> list[Planting | None]:
    order: list[Planting | None] = [*plan.plantings, *[None] * n_background]
    seeded(plan.seed, "order of documents").shuffle(order)
    return order


class _Hosts:
    """Texts of the corpus, each once; then some of them again."""

    def __init__(self, texts: Iterable[str], most_characters: int) -> None:
        self._texts: Iterator[str] = iter(texts)
        self._most = most_characters
        self._seen: list[str] = []
        self.n_fresh = 0

    def fresh(self) -> str | None:
        text = next((text for text in self._texts if text.strip()), None)
        if text is None:
            return None
        text = _cut(text.strip(), self._most)
        self.n_fresh += 1
        if len(self._seen) < _MOST_REUSED:
            self._seen.append(text)
        return text

    def any(self, rng: Random) -> str:
        text = self.fresh()
        if text is None:
            text = rng.choice(self._seen) if self._seen else ""
        return text


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    line = text.rfind("\n", 0, most)
    return text[: line if line > 0 else most].rstrip()


# One document -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Placed:
    name: str  # of its shards
    row: dict[str, Any]
    start: int
    stop: int
    place: str


def _placed(planting: Planting, hosts: _Hosts, rng: Random) -> _Placed:
    is_alone = rng.random() < _ALONE_SHARE
    host = "" if is_alone else hosts.any(rng)
    if isinstance(planting.written, str):
        return _in_text(planting.written, host, rng)
    return _in_chat(planting.written, host, rng)


def _in_text(planted: str, host: str, rng: Random) -> _Placed:
    """Between two paragraphs, or two lines where there are no paragraphs."""
    between = _BETWEEN if _BETWEEN in host else "\n"
    parts = host.split(between) if host else []
    at = rng.randint(0, len(parts))
    start = sum(len(part) + len(between) for part in parts[:at])
    text = between.join([*parts[:at], planted, *parts[at:]])
    return _Placed(_TEXT, {"text": text}, start, start + len(planted), _place(at, len(parts)))


def _in_chat(planted: Sequence[Turn], host: str, rng: Random) -> _Placed:
    """Between two turns that somebody made of a host's paragraphs."""
    paragraphs = [part.strip() for part in host.split("\n") if part.strip()][:8]
    exchanges = [paragraphs[at : at + 2] for at in range(0, len(paragraphs) - 1, 2)]
    at = rng.randint(0, len(exchanges))
    before, after = (_turns(part) for part in (exchanges[:at], exchanges[at:]))
    contents = [turn.content for turn in planted if turn.content]
    start = sum(len(turn.content) + len(_BETWEEN) for turn in before)
    stop = start + len(_BETWEEN.join(contents))
    messages = [
        {"role": turn.role, "content": turn.content} for turn in (*before, *planted, *after)
    ]
    return _Placed(_CHAT, {"messages": messages}, start, stop, _place(at, len(exchanges)))


def _turns(exchanges: Iterable[Sequence[str]]) -> list[Turn]:
    return [
        Turn(role, content)
        for exchange in exchanges
        for role, content in zip(("user", "assistant"), exchange, strict=True)
    ]


def _place(at: int, n: int) -> str:
    if n == 0:
        return "alone"
    return "start" if at == 0 else "end" if at == n else "middle"


def _truth(planting: Planting, placed: _Placed, shard: str, row: int) -> Iterator[dict[str, Any]]:
    for key in planting.items:
        yield {
            "shard": shard,
            "row": row,
            "planting": planting.id,
            "kind": planting.kind,
            "transformation": planting.transformation,
            "grade": planting.grade,
            **key._asdict(),
            "start": placed.start,
            "stop": placed.stop,
            "place": placed.place,
        }


# Shards -------------------------------------------------------------------------------------------


class _Shards:
    """Rows by kind of shard; a full one is written at once."""

    def __init__(self, folder: Path, rows_per_shard: int) -> None:
        self._folder = folder
        self._rows_per_shard = rows_per_shard
        self._rows: dict[str, list[bytes]] = {_TEXT: [], _CHAT: []}
        self._numbers = {_TEXT: 0, _CHAT: 0}
        self.n_documents = 0

    def add(self, name: str, row: dict[str, Any]) -> tuple[str, int]:
        """The shard and the row where it stands."""
        rows = self._rows[name]
        place = self._file(name), len(rows)
        rows.append(orjson.dumps(row) + b"\n")
        self.n_documents += 1
        if len(rows) == self._rows_per_shard:
            self._write(name)
        return place

    def close(self) -> None:
        for name, rows in self._rows.items():
            if rows:
                self._write(name)

    def _file(self, name: str) -> str:
        return f"{name}-{self._numbers[name]:04}.jsonl.zst"

    def _write(self, name: str) -> None:
        with create(self._folder / self._file(name), ".zst") as file:
            file.write(b"".join(self._rows[name]))
        self._rows[name] = []
        self._numbers[name] += 1
