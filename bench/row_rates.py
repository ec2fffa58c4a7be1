"""`python -m bench.row_rates --texts FOLDER --evals FOLDER`: speed by the shape of rows.

Writes the same texts as rows of plain text, of text with metadata, of conversations, of tool calls,
and with most of the text in a field that is not read; each shape in a file of the same size.
Measures reading alone, and reading, tokenizing and searching together, one shape after the other,
in several rounds on one core. Prints the median speeds in bytes of the file per second, and the
medians of their ratios to plain text in the same round.

For text that is not read, the speed without counting it (`ignore = ["*"]`) is also shown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from bench.corpus import make_corpus
from bench.stages import index, pack_texts, stages
from decon_core.kernels.jit import compiled_at_once

Row = dict[str, Any]
_TURN_CHARACTERS = 500
_N_TURNS = 6


def _plain(texts: Iterable[str]) -> Iterator[Row]:
    for text in texts:
        yield {"text": text}


def _web(texts: Iterable[str]) -> Iterator[Row]:
    for number, text in enumerate(texts):
        yield {
            "text": text,
            "id": f"<urn:uuid:{number:032x}>",
            "dump": "CC-MAIN-2024-10",
            "url": f"https://site-{number % 997}.example.org/articles/{number}",
            "date": "2024-02-21T00:41:07Z",
            "file_path": f"s3://crawl/segments/{number % 89}/warc/part-{number:05}.warc.gz",
            "language": "en",
            "language_score": 0.9731,
            "token_count": len(text) // 4,
        }


def _chats(texts: Iterable[str]) -> Iterator[Row]:
    turns = _turns(texts)
    for number in count():
        roles = ["user", "assistant"] * (_N_TURNS // 2)
        messages = [
            {"role": role, "content": turn} for role, turn in zip(roles, turns, strict=False)
        ]
        if not messages:
            return
        yield {"id": f"chat-{number}", "messages": messages}


def _tool_calls(texts: Iterable[str]) -> Iterator[Row]:
    for row in _chats(texts):
        for at, message in enumerate(row["messages"]):
            if message["role"] == "assistant":
                arguments = json.dumps(
                    {"path": f"notes-{at}.md", "text": message.pop("content")}, ensure_ascii=False
                )
                function = {"name": "write_file", "arguments": arguments}
                call = {"id": f"call-{at}", "type": "function", "function": function}
                message |= {"content": None, "tool_calls": [call]}
        yield row


def _mostly_unread(texts: Iterable[str]) -> Iterator[Row]:
    for text in texts:
        yield {"text": text[: len(text) // 5], "raw": text[len(text) // 5 :]}


def _turns(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for at in range(0, len(text), _TURN_CHARACTERS):
            yield text[at : at + _TURN_CHARACTERS]


_SHAPES: dict[str, tuple[Callable[[Iterable[str]], Iterator[Row]], Row]] = {
    "plain text": (_plain, {}),
    "text and metadata": (_web, {}),
    'text and metadata, `text = "text"`': (_web, {"text": "text"}),
    'text and metadata, `text = "text"`, not counted': (_web, {"text": "text", "ignore": ["*"]}),
    "conversations": (_chats, {}),
    "conversations with tool calls": (_tool_calls, {}),
    "four fifths of the text unread": (_mostly_unread, {"text": "text"}),
    "four fifths of the text unread, not counted": (
        _mostly_unread,
        {"text": "text", "ignore": ["*"]},
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--evals", type=Path, required=True)
    parser.add_argument("--mb", type=float, default=60, help="of each file (default 60)")
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    options = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):  # "one core" must not mean a thread on each
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory(prefix="decon-bench-") as folder, compiled_at_once():
        print(_measured(Path(folder), options))


def _measured(folder: Path, options: argparse.Namespace) -> str:
    corpus, store = folder / "corpus", folder / "store"
    make_corpus(corpus, texts=options.texts, evals=options.evals, mb=options.mb)
    job = {"store": str(store), "evals": str(options.evals)}
    job["benchmarks"] = index(job)["benchmarks"]
    texts = [*pack_texts({"store": str(store), "corpus": str(corpus)})]
    files = {shape: folder / f"{shape.__name__}.jsonl" for shape, _ in _SHAPES.values()}
    for shape, file in files.items():
        _write(shape(texts), file, int(options.mb * 1e6))
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in _SHAPES}
    for number in range(options.rounds + 1):
        for name, (shape, settings) in _SHAPES.items():
            seconds = stages({**job, "corpus": str(files[shape]), "source": settings})["seconds"]
            n_mb = files[shape].stat().st_size / 1e6
            if number:  # the first round compiles
                rates[name].append((n_mb / seconds["read"], n_mb / sum(seconds.values())))
    lines = [f"{'MB/s':52} reading  ratio    all  ratio"]
    first = rates["plain text"]
    for name, rounds in rates.items():
        line = f"{name:52}"
        for at in (0, 1):
            ratios = [one[at] / plain[at] for one, plain in zip(rounds, first, strict=True)]
            rate = statistics.median(one[at] for one in rounds)
            line += f" {rate:7.0f}  {statistics.median(ratios):5.2f}"
        lines.append(line)
    return "\n".join(lines)


def _write(rows: Iterable[Row], path: Path, n_bytes: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            if file.tell() >= n_bytes:
                return


if __name__ == "__main__":
    main()
