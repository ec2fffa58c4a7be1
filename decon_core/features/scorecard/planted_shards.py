"""Write plantings into documents, documents into shards, and the truth file.

<out>/planted-text-0000.jsonl.zst    rows with "id" and "text"
<out>/planted-chat-0000.jsonl.zst    rows with "id" and "messages"
<out>/truth.jsonl                    one line per planted item and document
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import orjson
import polars as pl

from decon_core.config.sources import Source
from decon_core.features.scorecard.edits.edit import Turn
from decon_core.features.scorecard.marks import TRUTH
from decon_core.features.scorecard.plan import Plan, Planting, seeded
from decon_core.storage.compression import create
from decon_core.storage.files import atomic_path

TRUTH_FILE = "truth.jsonl"

_TEXT, _CHAT = "planted-text", "planted-chat"
_BETWEEN = "\n\n"  # separator of messages when a conversation is read
_ALONE_SHARE = 0.25
_MAX_REUSED = 500  # hosts kept for reuse if the corpus has too few


@dataclass(frozen=True)
class PlantedCorpus:
    """Numbers of documents that were written."""

    n_documents: int
    n_background: int
    n_hosts: int  # distinct hosts, background included


def sources(out: Path) -> tuple[Source, ...]:
    """Return the sources to read the shards that exist."""
    both = (
        Source(name=_TEXT, path=str(out / f"{_TEXT}-*.jsonl.zst"), text="text", id="id"),
        Source(name=_CHAT, path=str(out / f"{_CHAT}-*.jsonl.zst"), messages="messages", id="id"),
    )
    return tuple(source for source in both if any(out.glob(f"{source.name}-*")))


def read_truth(out: Path) -> pl.DataFrame:
    return pl.read_ndjson(out / TRUTH_FILE, schema=TRUTH)


def write_planted_corpus(
    plan: Plan,
    hosts: Iterable[str],
    out: Path,
    *,
    n_background: int = 1000,
    documents_per_shard: int = 2000,
    most_host_characters: int = 20_000,
) -> PlantedCorpus:
    """Plant everything into texts of a corpus, and write shards and truth atomically.

    A quarter of the plantings are documents without a host. The others have a different host each,
    and `n_background` hosts stay unchanged. If the corpus has too few hosts, they are reused and
    there is less background. Hosts longer than `most_host_characters` are cut.
    """
    queue = _Hosts(hosts, most_host_characters)
    order: list[Planting | None] = [*plan.plantings, *[None] * n_background]
    seeded(plan.seed, "order of documents").shuffle(order)
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
                rng = seeded(plan.seed, "place", planting.id)
                host = "" if rng.random() < _ALONE_SHARE else queue.any(rng)
                if isinstance(planting.written, str):
                    placed = _in_text(planting.written, host, rng)
                else:
                    placed = _in_chat(planting.written, host, rng)
                shard, row = shards.add(placed.name, {"id": f"planted-{number:06}", **placed.row})
                names = planting.id, planting.kind, planting.transformation, planting.grade
                where = placed.start, placed.stop, placed.place
                for item in planting.items:
                    line = dict(zip(TRUTH, (shard, row, *names, *item, *where), strict=True))
                    truth.write(orjson.dumps(line) + b"\n")
        shards.close()
    return PlantedCorpus(shards.n_documents, n_background, queue.n_fresh)


class _Hosts:
    """Texts of the corpus, each once; then some of them repeatedly."""

    def __init__(self, texts: Iterable[str], most_characters: int) -> None:
        self._texts = (_cut(text.strip(), most_characters) for text in texts if text.strip())
        self._seen: list[str] = []
        self.n_fresh = 0

    def fresh(self) -> str | None:
        text = next(self._texts, None)
        if text is None:
            return None
        self.n_fresh += 1
        if len(self._seen) < _MAX_REUSED:
            self._seen.append(text)
        return text

    def any(self, rng: Random) -> str:
        text = self.fresh()
        if text is None and self._seen:
            text = rng.choice(self._seen)
        return text or ""


def _cut(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    line = text.rfind("\n", 0, max_characters)
    return text[: line if line > 0 else max_characters].rstrip()


@dataclass(frozen=True)
class _Placed:
    name: str  # name of its shards
    row: dict[str, Any]
    start: int
    stop: int
    place: str


def _in_text(planted: str, host: str, rng: Random) -> _Placed:
    """Plant between two paragraphs, or between two lines if there are no paragraphs."""
    between = _BETWEEN if _BETWEEN in host else "\n"
    parts = host.split(between) if host else []
    at = rng.randint(0, len(parts))
    start = sum(len(part) + len(between) for part in parts[:at])
    text = between.join([*parts[:at], planted, *parts[at:]])
    return _Placed(_TEXT, {"text": text}, start, start + len(planted), _place(at, len(parts)))


def _in_chat(planted: Sequence[Turn], host: str, rng: Random) -> _Placed:
    """Plant between two turns made of the host's paragraphs."""
    paragraphs = [part.strip() for part in host.split("\n") if part.strip()][:8]
    n = len(paragraphs) // 2  # exchanges
    at = rng.randint(0, n)
    turns = [*map(Turn, ("user", "assistant") * n, paragraphs)]
    before, after = turns[: 2 * at], turns[2 * at :]
    contents = [turn.content for turn in planted if turn.content]
    start = sum(len(turn.content) + len(_BETWEEN) for turn in before)
    stop = start + len(_BETWEEN.join(contents))
    messages = [asdict(turn) for turn in (*before, *planted, *after)]
    return _Placed(_CHAT, {"messages": messages}, start, stop, _place(at, n))


def _place(at: int, n: int) -> str:
    if n == 0:
        return "alone"
    return "start" if at == 0 else "end" if at == n else "middle"


class _Shards:
    """Rows by kind of shard; a full shard is written immediately."""

    def __init__(self, folder: Path, rows_per_shard: int) -> None:
        self._folder, self._rows_per_shard = folder, rows_per_shard
        self._rows: dict[str, list[bytes]] = {_TEXT: [], _CHAT: []}
        self._numbers: Counter[str] = Counter()
        self.n_documents = 0

    def add(self, name: str, row: dict[str, Any]) -> tuple[str, int]:
        """Add a row; return its shard and row number."""
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
