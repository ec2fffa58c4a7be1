"""Formats counts and sizes for messages, and fills the Jinja templates of pages and cards.

A template lies beside the code that gathers its data. HTML and SVG are escaped automatically.
Markdown is not: text from a corpus, a benchmark or a result file goes through `code` or `plain`
before it enters a Markdown template.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemBytecodeCache

_MOST_NAMED = 3
_MARKDOWN_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", "|": "\\|", "[": "\\[", "`": "\\`"},
)


def counted(n: int, noun: str) -> str:
    """Format a count with its noun: "1 shard", "1,200 shards"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def part_of(n: int, total: int, noun: str) -> str:
    """Format a count as a part: "1 of 2 packs", but "2 packs" if these are all."""
    return counted(n, noun) if n == total else f"{n:,} of {counted(total, noun)}"


def size(n_bytes: float) -> str:
    """Format a number of bytes in the largest unit of which there is at least one."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if n_bytes >= 10**power:
            return f"{n_bytes / 10**power:.1f} {unit}"
    return counted(round(n_bytes), "byte")


def first_of(names: Sequence[str]) -> str:
    """List the first names and count the others: "a, b, c and 2 more"."""
    n_more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {n_more:,} more" if n_more > 0 else "")


def to_scan(n_shards: int, n_bytes: int) -> str:
    """Say how much there is to scan: "4 shards to scan, 400.0 MB on disk"."""
    return f"{counted(n_shards, 'shard')} to scan, {size(n_bytes)} on disk"


def contain(n: int) -> str:
    """Return "contains" for 1 and "contain" otherwise."""
    return "contains" if n == 1 else "contain"


def have(n: int) -> str:
    """Return "has" for 1 and "have" otherwise."""
    return "has" if n == 1 else "have"


def said_by_rows(row: Mapping[str, Any]) -> str:
    """Say what rows name: "1,319 rows of a.jsonl say that they are openai/gsm8k, split test"."""
    where = row["shard"] if row["n_shards"] == 1 else counted(row["n_shards"], "shard")
    say = "says that it is" if row["n_rows"] == 1 else "say that they are"
    what = f"{row['value']}, split {row['split']}"
    notes = [] if row["benchmark"] == row["value"] else [f"benchmark {row['benchmark']}"]
    notes += ["evaluated on its split train"] if row["split"].casefold() == "train" else []
    more = f" ({', '.join(notes)})" if notes else ""
    return f"{counted(row['n_rows'], 'row')} of {where} {say} {what}{more}"


def verdicts_not_found(n: int) -> str:
    """Say that verdicts have no effect: "1 verdict is on a text that this scan did not find"."""
    of = "verdict is on a text" if n == 1 else "verdicts are on texts"
    what = f"{n:,} {of} that this scan did not find"
    return f"{what}, and {have(n)} no effect: decon-assets review status"


def percent(share: float | None, *, sign: str = "-") -> str:
    """Format a share as percent, as pages do: "17.5 %"; below 0.1 % with two significant digits.

    None is unknown; `sign` is that of a format: "+" for differences.
    """
    if share is None:
        return "unknown"
    hundred = 100 * share
    if not hundred:
        return "0 %"
    n_digits = 1 if abs(hundred) >= 0.1 else 1 - math.floor(math.log10(abs(hundred)))
    return f"{hundred:{sign}.{n_digits}f} %"


def bounds(at_least: float | None, at_most: float | None) -> str:
    """Format a range of shares as percent: one number if its ends are the same."""
    low, high = percent(at_least), percent(at_most)
    return low if low == high else f"{low} to {high}"


def of_checkable(n_leaked: int | None, n_checkable: int | None, *, n_items: int | None) -> str:
    """Return "3 of 24"; empty if that says no more than the numbers of all items."""
    if n_checkable is None or n_checkable == n_items:
        return ""
    return f"{n_leaked or 0:,} of {n_checkable:,}"


def render(template: str, **values: Any) -> str:
    """Fill a template, named by its path below decon_core; an unknown name in it is an error."""
    return _environment().get_template(template).render(values)


def pieces(template: str, **values: Any) -> Iterator[str]:
    """Fill a template piece by piece, for pages that are too large for one string."""
    return _environment().get_template(template).generate(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here),
        bytecode_cache=_byte_code(here / "__pycache__"),
        autoescape=select_autoescape(["html.j2", "svg.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    numbers = (bounds, counted, number, percent, size)
    filters = (*numbers, code, contain, plain, quoted, said_by_rows, table)
    environment.filters |= {function.__name__: function for function in filters}
    return environment


def _byte_code(folder: Path) -> FileSystemBytecodeCache | None:
    """Return where templates are kept as byte code: beside that of the modules, if it is there."""
    from jinja2 import FileSystemBytecodeCache

    if not os.access(folder, os.W_OK):
        return None
    versions = "-".join(map(version_of, ("decon-assets", "jinja2")))
    return FileSystemBytecodeCache(str(folder), f"%s.{versions}.jinja")


def number(value: float | None, form: str = ",") -> str:
    """Format a number, by default with thousands separators; None is unknown."""
    return "unknown" if value is None else format(value, form)


def quoted(text: str) -> str:
    """Return a JSON string, which is also a YAML string."""
    return json.dumps(text, ensure_ascii=False)


def code(name: str) -> str:
    """Return a name as code, so that it cannot form a table cell, a tag or a link."""
    plain = " ".join(name.split()).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else "–"


def plain(text: str) -> str:
    """Escape text on one line: no table columns, tags, links or code."""
    return " ".join(text.split()).translate(_MARKDOWN_ESCAPES)


def table(rows: Iterable[Sequence[str]], heads: Sequence[str], *, n_text: int | None = None) -> str:
    """Return a Markdown table; columns after the first `n_text` are aligned to the right."""
    lines = ["---" if n_text is None or at < n_text else "---:" for at in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, lines, *rows))
