"""Write the text of a decon.toml from the discovered sources."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import TextWrapper

from decon_core.config.json_schema import SCHEMA_PATH
from decon_core.corpus.shard_head import in_toml, printable
from decon_core.discovery.corpus import SourceFinding
from decon_core.discovery.row_survey import RowSurvey, listed_paths
from decon_core.storage.listing import Skipped
from decon_core.wording import counted, size

_PARTITIONS_WANTED = 5_000  # half of the limit of a grid, because benchmarks may be added
_BENCHMARKS_EXPECTED = 20
_FEW_SHARDS = 64
_PACK_BYTES = 20_000_000_000
_MOST_LEFT_OUT = 20  # files that are listed one by one
_MOST_FIELDS = 4  # fields in the example of a setting


@dataclass(frozen=True)
class Packs:
    """The limits of a pack, and the reason for them."""

    shards: int
    has_bytes: bool  # whether a limit in bytes is set
    why: str


def packs_for(n_shards: int, n_bytes: int, n_benchmarks: int) -> Packs:
    """Choose pack limits that keep the grid small, with room for more benchmarks."""
    if n_shards <= _FEW_SHARDS:
        return Packs(1, False, "few shards, so each one is a pack")
    most = _PARTITIONS_WANTED // max(n_benchmarks, _BENCHMARKS_EXPECTED)
    shards = max(_FEW_SHARDS, -(-n_shards // max(most, 1)))
    has_bytes = n_bytes / n_shards * shards > _PACK_BYTES
    why = f"{counted(-(-n_shards // shards), 'pack')} or a few more, to limit the partitions"
    return Packs(shards, has_bytes and n_bytes / _PACK_BYTES <= most, why)


def settings_text(
    findings: Sequence[SourceFinding],
    recipes: Sequence[Path],
    *,
    folder: Path,
    catalog: Sequence[str] = (),
    left_out: Sequence[Skipped] = (),
) -> str:
    """Return the text of the decon.toml, with paths below `folder` relative to it.

    `catalog`: names and sets of the catalog. `left_out`: files that cannot be read.
    """
    n_shards = sum(len(finding.files) for finding in findings)
    n_bytes = sum(finding.n_bytes for finding in findings)
    packs = packs_for(n_shards, n_bytes, len(recipes))
    has_unreadable = any(finding.rows.unreadable for finding in findings)
    template = files(__package__).joinpath("decon.toml").read_text(encoding="utf-8")
    below = [_below(path, folder) for path in recipes]
    places = {
        "schema": SCHEMA_PATH.as_uri(),  # editors complete settings from it
        "recipes": f"recipes = {in_toml(below)}" if below else '# recipes = ["evals.yaml"]',
        "catalog": f"catalog = {in_toml(catalog)}" if catalog else _CATALOG,
        "packs": f"# {counted(n_shards, 'shard')}, {size(n_bytes)}; {packs.why}.\n"
        f"pack_shards = {packs.shards}{_PACK_BYTES_SET if packs.has_bytes else ''}",
        "left_out": _left_out(left_out, folder),
        "sources": "\n".join(_source(finding, folder) for finding in findings),
        "unreadable": _UNREADABLE if has_unreadable else "",
    }
    for mark, text in places.items():
        template = template.replace(f"@{mark}@\n", f"{text}\n" if text else "")
    return template


_CATALOG = '# catalog = ["@math", "gsm8k"]      # benchmarks and sets of `decon-assets catalog`'
_PACK_BYTES_SET = '\npack_bytes = "20 GB"'
_UNREADABLE = """\
# Some of the first rows cannot be read, so mixtures of their packs are not built. Uncomment this
# line to leave such rows out.
# unreadable = "drop\""""


_LEFT_OUT = """\
# Files that could not be read. They count as not read (exit code 4, and `check` fails) until you
# delete them from this list."""


def _left_out(files: Sequence[Skipped], folder: Path) -> str:
    """Format the list of files that cannot be read, as patterns if they are many."""
    if not files:
        return ""
    reasons: dict[str, str] = {}
    for file in files:
        path = Path(file.path)
        name = glob.escape(_below(path, folder))
        if len(files) > _MOST_LEFT_OUT:
            name = f"{glob.escape(_below(path.parent, folder))}/*{glob.escape(path.suffix)}"
        reasons.setdefault(name, file.why)
    lines = [f"  {in_toml(name)},  # {printable(why)}" for name, why in sorted(reasons.items())]
    return "\n".join([_LEFT_OUT, "left_out = [", *lines, "]"])


def _source(finding: SourceFinding, folder: Path) -> str:
    """Format a [[corpus.source]] table, with the findings as comments."""
    source, rows = finding.source, finding.rows
    if rows.ids:
        why_id = f"`{rows.ids[0]}` is named like an id and is in every row that was read"
    else:
        why_id = "no field named like an id is in every row; documents are named by file and row"
    seen = f"{counted(rows.n_rows, 'row')} read, from {finding.n_files_read} of them"
    comments = [
        f"{shards_line(finding)}; {seen}.",
        f"Path: {finding.why}.",
        f"Layouts: {rows.layouts_line}.",
        f"Visible text: {listed_paths(rows.visible) or 'none'}.",
        f"Hidden text, searched separately: {listed_paths(rows.hidden) or 'none'}.",
        f"Id: {why_id}.",
        *(f"Check this: {doubt}." for doubt in rows.doubts),
    ]
    wrapper = TextWrapper(98, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
    lines = [line for text in comments for line in wrapper.wrap(printable(text))]
    lines += [
        "[[corpus.source]]",
        f"name = {in_toml(source.name)}",
        f"path = {in_toml(_below(Path(source.path), folder))}",
        f"id = {in_toml(source.id)}" if source.id else '# id = "..."',
        *_examples(rows),
    ]
    return "\n".join(lines) + "\n"


def shards_line(finding: SourceFinding) -> str:
    """Say how many shards a source has, and how large they are."""
    return f"{counted(len(finding.files), 'shard')}, {size(finding.n_bytes)}"


def _examples(rows: RowSurvey) -> list[str]:
    """Return settings as comments: the layout of all rows, and some that read less."""
    lines = []
    if rows.layout:
        lines.append(f"# layout = {in_toml(rows.layout)}  # for all rows, instead of row by row")
    lines.append(f"# text = {in_toml(rows.text_fields[:_MOST_FIELDS] or ['text'])}")
    if rows.conversation:
        field, roles = rows.conversation
        lines += [f"# messages = {in_toml(field)}", f"# roles = {in_toml(roles)}"]
    if rows.token_ids:
        return [*lines, _TOKENS_OF_TEXT, f"# ignore = {in_toml(rows.token_ids)}"]
    ignored = [path for path in rows.hidden if path.partition("[")[0] not in rows.text_fields]
    return [*lines, f"# ignore = {in_toml(ignored[:_MOST_FIELDS] or ['metadata'])}"]


_TOKENS_OF_TEXT = """\
# Token ids are not read. If they are the tokens of the text that is read, uncomment this line, or
# they block mixtures."""


def _below(path: Path, folder: Path) -> str:
    """Return a path or pattern relative to the folder, if it is below it."""
    absolute = os.path.abspath(folder)  # noqa: PTH100 - a pattern must not be resolved
    return str(path).removeprefix(f"{absolute}{os.sep}")
