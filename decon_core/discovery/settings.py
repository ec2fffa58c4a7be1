"""A survey as the text of a decon.toml, with every other setting in it as a comment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import wrap

from decon_core.corpus.shapes import in_reading_order, left_out, texts_of
from decon_core.discovery.corpus import SourceFinding
from decon_core.wording import counted, size

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
    told = f"{counted(-(-n_shards // shards), 'pack')} or a few more, so that the grid stays small"
    return Packs(shards, has_bytes and n_bytes / _PACK_BYTES <= most, told)


def settings_text(found: Sequence[SourceFinding], recipes: Sequence[Path], *, folder: Path) -> str:
    """The file; its paths start at `folder` where they lie below it."""
    n_shards, n_bytes = sum(len(one.files) for one in found), sum(one.n_bytes for one in found)
    packs = packs_for(n_shards, n_bytes, len(recipes))
    sources = "\n".join(_source(one, folder) for one in found)
    has_broken = any(one.n_unreadable for one in found)
    template = files(__package__).joinpath("decon.toml").read_text(encoding="utf-8")
    places = {
        "@recipes@": ", ".join(_quoted(_below(path, folder)) for path in recipes),
        "@packs@": f"# {counted(n_shards, 'shard')}, {size(n_bytes)}; {packs.why}.\n"
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


def _source(one: SourceFinding, folder: Path) -> str:
    """A [[corpus.source]], and what was seen of it."""
    source = one.source
    of_all = f"{counted(len(one.files), 'shard')}, {size(one.n_bytes)}"
    said = [
        f"{of_all}; {counted(one.n_rows, 'row')} of {one.n_files_read} of them were looked at.",
        _told(one),
        f"{one.why}.",
    ]
    said += fields_left_out(one)
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


def fields_left_out(one: SourceFinding) -> list[str]:
    """What the source does not read, and what follows: a leak in there is not found."""
    answers, texts = left_out(one.source, one.fields)
    said = []
    read = ", ".join(texts_of(one.source) or (one.source.messages or "",))
    if answers:
        said.append(
            f"{read}: read; {_quoted_names(answers)}, called an answer: left out. A benchmark "
            f"question found without its answer is called question-only.{_how_to_add(one, answers)}"
        )
    if texts:
        rest = (
            f" and {len(texts) - _MOST_FIELDS_TOLD} more" if len(texts) > _MOST_FIELDS_TOLD else ""
        )
        named = _quoted_names(texts[:_MOST_FIELDS_TOLD])
        said.append(f"Texts that are left out: {named}{rest}.{_how_to_add(one, texts)}")
    return said


def _how_to_add(one: SourceFinding, names: Sequence[str]) -> str:
    """The setting that reads them as well; only of fields that hold a text in every row."""
    own = texts_of(one.source) or (one.source.messages or "",)
    n_rows = one.n_rows - one.n_unreadable
    kinds = {field.name: field.kinds for field in one.fields if field.n_rows >= n_rows}
    added = [name for name in names if kinds.get(name) == ("text",)]
    if not added or one.source.roles:
        return ""
    fields = in_reading_order((*own, *added))
    return f" To read them as well: text = [{', '.join(map(_quoted, fields))}]"


def _quoted_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _told(one: SourceFinding) -> str:
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
