"""Write the text of a decon.toml from the discovered sources, other settings as comments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import wrap

from decon_core.config.schema import SCHEMA_PATH
from decon_core.corpus.guess_fields import (
    as_setting,
    fields_read,
    in_reading_order,
    in_toml,
    left_out,
)
from decon_core.discovery.corpus import SourceFinding
from decon_core.wording import counted, size

_CELLS_WANTED = 5_000  # half of the limit of a grid, because benchmarks may be added
_BENCHMARKS_EXPECTED = 20
_FEW_SHARDS = 64
_PACK_BYTES = 20_000_000_000
_MOST_FIELDS = 12


@dataclass(frozen=True)
class Packs:
    """The limits of a pack, and the reason for them."""

    shards: int
    has_bytes: bool  # whether a limit in bytes is set
    why: str


def packs_for(n_shards: int, n_bytes: int, n_benchmarks: int) -> Packs:
    """Choose pack limits that keep the grid small, with room for more benchmarks."""
    if n_shards <= _FEW_SHARDS:
        return Packs(1, False, "few shards: each is a pack, a row of the grid")
    most = _CELLS_WANTED // max(n_benchmarks, _BENCHMARKS_EXPECTED)
    shards = max(_FEW_SHARDS, -(-n_shards // max(most, 1)))
    has_bytes = n_bytes / n_shards * shards > _PACK_BYTES
    why = f"{counted(-(-n_shards // shards), 'pack')} or a few more, so that the grid stays small"
    return Packs(shards, has_bytes and n_bytes / _PACK_BYTES <= most, why)


def settings_text(
    findings: Sequence[SourceFinding], recipes: Sequence[Path], *, folder: Path
) -> str:
    """Return the text of the decon.toml, with paths below `folder` relative to it."""
    n_shards = sum(len(one.files) for one in findings)
    n_bytes = sum(one.n_bytes for one in findings)
    packs = packs_for(n_shards, n_bytes, len(recipes))
    has_unreadable = any(one.n_unreadable for one in findings)
    template = files(__package__).joinpath("decon.toml").read_text(encoding="utf-8")
    places = {
        "@schema@": SCHEMA_PATH.as_uri(),  # editors complete settings from it
        "@recipes@": ", ".join(in_toml(_below(path, folder)) for path in recipes),
        "@packs@": f"# {counted(n_shards, 'shard')}, {size(n_bytes)}; {packs.why}.\n"
        f"pack_shards = {packs.shards}",
        "@pack_bytes@": f'{"" if packs.has_bytes else "# "}pack_bytes = "20 GB"',
        "@sources@": "\n".join(_source(one, folder) for one in findings),
        "@unreadable@": _DROP if has_unreadable else '# unreadable = "block"',
    }
    for mark, text in places.items():
        template = template.replace(mark, text)
    return template


_DROP = """\
# Some of the first rows cannot be read: such rows are counted and left out of mixtures. Without
# this line, mixtures of their packs are refused.
unreadable = "drop\""""


def _source(one: SourceFinding, folder: Path) -> str:
    """Format a [[corpus.source]] table, with the findings as comments."""
    source = one.source
    of_all = f"{counted(len(one.files), 'shard')}, {size(one.n_bytes)}"
    comments = [
        f"{of_all}; {counted(one.n_rows, 'row')} read from {counted(one.n_files_read, 'file')}.",
        f"Fields: {', '.join(map(str, one.fields[:_MOST_FIELDS]))}{_more(one.fields)}.",
        f"{one.why}.",
    ]
    comments += fields_left_out(one)
    if one.n_unreadable:
        comments.append(f"{one.n_unreadable} of these rows could not be read.")
    lines = [line for text in comments for line in _comment(text)]
    lines += [
        "[[corpus.source]]",
        f"name = {in_toml(source.name)}",
        f"path = {in_toml(_below(Path(source.path), folder))}",
    ]
    lines.append(as_setting(source))
    if source.messages:
        lines.append('# roles = ["user", "assistant"]')
    lines.append(f"id = {in_toml(source.id)}" if source.id else '# id = "..."  # none was found')
    return "\n".join(lines) + "\n"


def fields_left_out(one: SourceFinding) -> list[str]:
    """Return a sentence on each kind of text field that is not read: leaks in it are not found."""
    answers, texts = left_out(one.source, one.fields)
    sentences = []
    read = ", ".join(fields_read(one.source))
    if answers:
        sentences.append(
            f"Only {read} is read; left out, with the name of an answer: {_quoted_names(answers)}. "
            "A benchmark question found without its answer is called question-only."
            f"{_how_to_add(one, answers)}"
        )
    if texts:
        named = f"{_quoted_names(texts[:_MOST_FIELDS])}{_more(texts)}"
        sentences.append(f"Text fields left out: {named}.{_how_to_add(one, texts)}")
    return sentences


def _how_to_add(one: SourceFinding, names: Sequence[str]) -> str:
    """Return the setting that also reads these fields, those with text in every row."""
    n_rows = one.n_rows - one.n_unreadable
    kinds = {field.name: field.kinds for field in one.fields if field.n_rows >= n_rows}
    added = [name for name in names if kinds.get(name) == ("text",)]
    if not added or one.source.roles:
        return ""
    fields = in_reading_order((*fields_read(one.source), *added))
    return f" To read them as well: text = [{', '.join(map(in_toml, fields))}]"


def _quoted_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _more(fields: Sequence[object]) -> str:
    n_more = len(fields) - _MOST_FIELDS
    return f" and {n_more} more" if n_more > 0 else ""


def _comment(text: str) -> list[str]:
    """Wrap a text as comment lines; unprintable characters, which may end one, are replaced."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return wrap(plain, 98, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _below(path: Path, folder: Path) -> str:
    """Return a path or pattern relative to the folder, if it is below it."""
    absolute = os.path.abspath(folder)  # noqa: PTH100 - a pattern must not be resolved
    return str(path).removeprefix(f"{absolute}{os.sep}")
