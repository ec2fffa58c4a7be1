"""`python -m bench.unrelated FOLDER ...`: what the default detector reports in unrelated text.

    python -m bench.unrelated /usr/share/doc /usr/share/man /usr/lib/python3 .venv/lib

Every text file below the folders (UTF-8, also in gz) is searched in parts, each different part
once, for the items of the benchmarks of `bench.forms` that were not made from text. Prints how much
text it was, the number of findings by outcome, and the findings.
"""

from __future__ import annotations

import argparse
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from bench.forms import index_of, items_of
from decon_core.kernels.jit import compiled_at_once

_WORLDS = ("evals", "truthful_qa", "humaneval")
_PART_CHARACTERS = 200_000
_LARGEST_FILE, _SMALLEST_PART = 60_000_000, 200
_PARTS_TOGETHER = 200
_OUTCOMES = ("leak", "no answer", "review")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    index = index_of([item for world in _WORLDS for item in items_of(world)], "aligned")
    n_bytes, counts = 0, Counter[str]()
    lines: list[str] = []
    with compiled_at_once():
        every = _parts_below(given.folders)
        while parts := list(islice(every, _PARTS_TOGETHER)):
            texts = [text for _, text in parts]
            n_bytes += sum(len(text.encode()) for text in texts)
            for (path, text), findings in zip(parts, index.check_all(texts), strict=True):
                for finding in findings:
                    counts[finding.outcome] += 1
                    if finding.outcome in _OUTCOMES:
                        excerpt = " ".join(text[slice(*(finding.question_span or (0, 0)))].split())
                        lines.append(f"{finding.outcome}, {finding.kind}: {path}: {excerpt}")
    print(f"{n_bytes / 1e6:,.0f} MB")
    print(", ".join(f"{outcome}: {counts[outcome]}" for outcome in _OUTCOMES))
    print("\n".join(lines))


def _parts_below(folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the parts of texts, each different part once."""
    seen: set[int] = set()
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        text = _text_of(path)
        for at in range(0, len(text), _PART_CHARACTERS):
            part = text[at : at + _PART_CHARACTERS]
            if len(part) >= _SMALLEST_PART and hash(part) not in seen:
                seen.add(hash(part))
                yield path, part


def _text_of(path: Path) -> str:
    """Return the text of a file; empty if it is none."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return ""
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        text = content.decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return ""
    return "" if "\0" in text else text


if __name__ == "__main__":
    main()
