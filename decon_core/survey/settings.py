"""A survey as the text of a decon.toml, with every other setting in it as a comment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import wrap

from decon_core.survey.corpus import Found

_CELLS_WANTED = 5_000  # half of what a grid may have: benchmarks join
_BENCHMARKS_EXPECTED = 20
_FEW_SHARDS = 64
_PACK_BYTES = 20_000_000_000
_MOST_FIELDS_TOLD = 12


@dataclass(frozen=True)
class Packs:
    """What a pack may hold, and why."""

    shards: int
    has_bytes: bool
    why: str


def packs_for(n_shards: int, n_bytes: int, n_benchmarks: int) -> Packs:
    """As many packs as a grid of this many benchmarks, and some that join, can bear."""
    if n_shards <= _FEW_SHARDS:
        return Packs(1, False, "few shards: every one is a row of the grid")
    most = _CELLS_WANTED // max(n_benchmarks, _BENCHMARKS_EXPECTED)
    shards = max(_FEW_SHARDS, -(-n_shards // max(most, 1)))
    has_bytes = n_bytes / n_shards * shards > _PACK_BYTES
    told = f"{-(-n_shards // shards)} packs or a few more, so that the grid stays small"
    return Packs(shards, has_bytes and n_bytes / _PACK_BYTES <= most, told)


def settings_text(found: Sequence[Found], recipes: Sequence[Path], *, folder: Path) -> str:
    """The file; its paths start at `folder` where they lie below it."""
    n_shards, n_bytes = sum(len(one.files) for one in found), sum(one.n_bytes for one in found)
    packs = packs_for(n_shards, n_bytes, len(recipes))
    sources = "\n".join(_source(one, folder) for one in found)
    has_broken = any(one.n_unreadable for one in found)
    template = files(__package__).joinpath("decon.toml").read_text(encoding="utf-8")
    places = {
        "@recipes@": ", ".join(_quoted(_below(path, folder)) for path in recipes),
        "@packs@": f"# {counted('shard', n_shards)}, {size(n_bytes)}; {packs.why}.\n"
        f"pack_shards = {packs.shards}",
        "@pack_bytes@": f'{"" if packs.has_bytes else "# "}pack_bytes = "20 GB"',
        "@sources@": sources,
        "@unreadable@": _DROP if has_broken else '# unreadable = "block"',
    }
    for mark, text in places.items():
        template = template.replace(mark, text)
    return template


_DROP = """\
# Among the first rows are some that cannot be read: they are counted, and in no mixture. Without
# this line, mixtures of their packs are refused.
unreadable = "drop\""""


def _source(one: Found, folder: Path) -> str:
    """A [[corpus.source]], and what was seen of it."""
    source = one.source
    of_all = f"{counted('shard', len(one.files))}, {size(one.n_bytes)}"
    said = [
        f"{of_all}; {one.n_rows} rows of {one.n_files_read} of them were looked at.",
        _told(one),
        f"{one.why}.",
    ]
    if one.n_unreadable:
        said.append(f"{one.n_unreadable} of these rows could not be read.")
    lines = [line for text in said for line in _comment(text)]
    lines += [
        "[[corpus.source]]",
        f"name = {_quoted(source.name)}",
        f"path = {_quoted(_below(Path(source.path), folder))}",
    ]
    if source.messages:
        lines += [f"messages = {_quoted(source.messages)}", '# roles = ["user", "assistant"]']
    elif isinstance(source.text, str):
        lines.append(f"text = {_quoted(source.text)}")
    else:
        lines.append(f"text = [{', '.join(map(_quoted, source.text or ()))}]")
    lines.append(f"id = {_quoted(source.id)}" if source.id else '# id = "..."  # none was found')
    return "\n".join(lines) + "\n"


def _told(one: Found) -> str:
    told = [str(field) for field in one.fields[:_MOST_FIELDS_TOLD]]
    n_more = len(one.fields) - len(told)
    return f"Fields: {', '.join(told)}{f' and {n_more} more' if n_more else ''}."


def _comment(text: str) -> list[str]:
    """Lines for people. Names of fields may hold anything, also what would end a comment."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return wrap(plain, 98, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _below(path: Path, folder: Path) -> str:
    """From the folder on, if it is in there; its pattern is kept as it is."""
    absolute = os.path.abspath(folder)  # noqa: PTH100 - a pattern is no path to be resolved
    text = str(path)
    return text.removeprefix(f"{absolute}{os.sep}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def counted(thing: str, n: int) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def size(n_bytes: int) -> str:
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if n_bytes >= 10**power:
            return f"{n_bytes / 10**power:.1f} {unit}"
    return f"{n_bytes} B"
