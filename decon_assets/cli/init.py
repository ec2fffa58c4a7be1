"""`decon-assets init`: a decon.toml for a corpus and benchmarks, from looking at them."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from decon_assets.cli.command import Command, Say, filled, filled_path
from decon_core.config.load import load_config
from decon_core.discovery.benchmarks import RecipeDraft, survey_benchmarks
from decon_core.discovery.corpus import SourceFinding, survey_corpus
from decon_core.discovery.settings import fields_left_out, settings_text
from decon_core.errors import ConfigError, DeconError, InputError, Problem
from decon_core.inventory import benchmarks_of
from decon_core.storage.store import atomic_path
from decon_core.wording import counted, size

DESCRIPTION = """\
Look at the first rows of shards and benchmarks, and write a decon.toml that reads them: sources by
folder, pattern and fields, how many shards go into a pack, and every other setting as a comment.
Benchmark files without a recipe get one, in an evals.yaml beside them, to be looked over.
"""
EPILOG = """\
examples:
  decon-assets init --corpus shards/ --evals benchmarks/
  decon-assets init --corpus 'web/*.parquet' chat/ --evals evals.yaml --out my/decon.toml
"""

_MOST_TOLD = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--corpus",
        nargs="+",
        required=True,
        type=filled,
        metavar="PLACE",
        help="folders, files or globs",
    )
    parser.add_argument(
        "--evals",
        nargs="+",
        required=True,
        type=filled_path,
        metavar="PATH",
        help="recipe files, benchmark files, or folders of them",
    )
    parser.add_argument(
        "--out", type=filled_path, default=Path("decon.toml"), help="default: decon.toml"
    )
    parser.add_argument("--force", action="store_true", help="write over files that are there")


def init(options: argparse.Namespace, say: Say) -> int:
    """Survey everything first: all problems are told at once, and nothing is written with any."""
    found, left_out, recipes, written = _surveyed(options.corpus, options.evals)
    paths = [*recipes, *(one.path for one in written)]
    names = _names(found, recipes, written)
    text = settings_text(found, paths, folder=options.out.absolute().parent)
    _require_free([options.out, *(one.path for one in written)], force=options.force)
    _write({**{one.path: one.text for one in written}, options.out: text})
    for one in written:
        _say_written(one, say)
    for source in found:
        told = counted(len(source.files), "shard")
        say(f"source {source.source.name}: {told}, {size(source.n_bytes)}")
        for line in fields_left_out(source):
            say(f"  {line}")
    _say_left_out(left_out, say)
    say(f"benchmarks: {', '.join(names)}")
    say(f"\n{options.out} is written; look it over, then: decon-assets run{_config(options.out)}")
    return 0


def _say_written(one: RecipeDraft, say: Say) -> None:
    guessed = [name for name in one.names if name not in one.names_of_records]
    if one.names_of_records:
        names = ", ".join(one.names_of_records)
        say(f"{one.path}: {names}: normalized records, read as they are")
    if guessed:
        say(f"{one.path}: recipes for {', '.join(guessed)}, guessed: look at them")


def _names(
    found: Sequence[SourceFinding], recipes: Sequence[Path], written: Sequence[RecipeDraft]
) -> Collection[str]:
    """The benchmarks that the files would name, from drafts: what is wrong with them is told."""
    with TemporaryDirectory() as place:
        drafts = {Path(place) / f"{at}.yaml": one for at, one in enumerate(written)}
        for draft, one in drafts.items():
            draft.write_text(one.text, encoding="utf-8")
        config = Path(place) / "decon.toml"
        text = settings_text(found, [*recipes, *drafts], folder=config.parent)
        config.write_text(text, encoding="utf-8")
        try:
            return benchmarks_of(load_config(config))
        except DeconError as error:
            raise InputError([_as_placed(each, drafts) for each in error.problems]) from None


def _as_placed(problem: Problem, drafts: Mapping[Path, RecipeDraft]) -> Problem:
    where = problem.where
    for draft, one in drafts.items():
        where = where.replace(str(draft), str(one.path))
    return replace(problem, where=where)


def _surveyed(
    corpus: Sequence[str], evals: Sequence[Path]
) -> tuple[list[SourceFinding], list[str], list[Path], list[RecipeDraft]]:
    problems: list[Problem] = []
    found: list[SourceFinding] = []
    recipes: list[Path] = []
    written: list[RecipeDraft] = []
    left_out: list[str] = []
    try:
        found, left_out = survey_corpus(corpus)
    except DeconError as error:
        problems += error.problems
    try:
        recipes, written, unread = survey_benchmarks(evals)
        left_out += unread
    except DeconError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return found, left_out, recipes, written


def _require_free(paths: Sequence[Path], *, force: bool) -> None:
    problems = [
        Problem(str(path), "a file that is there", "a new one", "say --force to write over it")
        for path in paths
        if path.exists() and not force
    ]
    if problems:
        raise ConfigError(problems)


def _write(texts: Mapping[Path, str]) -> None:
    """All of them, or none where one cannot be written."""
    with ExitStack() as drafts:
        for path, text in texts.items():
            drafts.enter_context(atomic_path(path)).write_text(text, encoding="utf-8")


def _say_left_out(paths: Sequence[str], say: Say) -> None:
    if paths:
        told = ", ".join(paths[:_MOST_TOLD])
        more = f" and {len(paths) - _MOST_TOLD} more" if len(paths) > _MOST_TOLD else ""
        say(f"left out, {counted(len(paths), 'file')} that nothing reads: {told}{more}")


def _config(path: Path) -> str:
    return "" if path == Path("decon.toml") else f" --config '{path}'"


COMMAND = Command(init, (add_arguments,), DESCRIPTION, EPILOG)
