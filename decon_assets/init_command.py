"""`decon-assets init`: a decon.toml for a corpus and benchmarks, from looking at them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from decon_assets.command import Command, Say
from decon_core.config import load_config
from decon_core.errors import ConfigError, DeconError, InputError, Problem
from decon_core.registry import benchmarks_of
from decon_core.store import aside
from decon_core.survey.benchmarks import Written, survey_benchmarks
from decon_core.survey.corpus import Found, survey_corpus
from decon_core.survey.settings import settings_text, size

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
        "--corpus", nargs="+", required=True, metavar="PLACE", help="folders, files or globs"
    )
    parser.add_argument(
        "--evals",
        nargs="+",
        required=True,
        type=Path,
        metavar="PATH",
        help="recipe files, benchmark files, or folders of them",
    )
    parser.add_argument("--out", type=Path, default=Path("decon.toml"), help="default: decon.toml")
    parser.add_argument("--force", action="store_true", help="write over files that are there")


def init(options: argparse.Namespace, say: Say) -> int:
    """Survey everything first: all problems are told at once, and nothing is written with any."""
    found, left_out, recipes, written = _surveyed(options.corpus, options.evals)
    _require_free([options.out, *(one.path for one in written)], force=options.force)
    for one in written:
        _write(one.path, one.text)
        say(f"{one.path}: recipes for {', '.join(one.names)}, guessed: look at them")
    paths = [*recipes, *(one.path for one in written)]
    text = settings_text(found, paths, folder=options.out.absolute().parent)
    _write(options.out, text)
    for source in found:
        say(f"source {source.source.name}: {len(source.files)} shards, {size(source.n_bytes)}")
    _say_left_out(left_out, say)
    names = benchmarks_of(load_config(options.out))
    say(f"benchmarks: {', '.join(names)}")
    say(f"\n{options.out} is written; look it over, then: decon-assets run{_config(options.out)}")
    return 0


def _surveyed(
    corpus: Sequence[str], evals: Sequence[Path]
) -> tuple[list[Found], list[str], list[Path], list[Written]]:
    problems: list[Problem] = []
    found: list[Found] = []
    recipes: list[Path] = []
    written: list[Written] = []
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


def _write(path: Path, text: str) -> None:
    with aside(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _say_left_out(paths: Sequence[str], say: Say) -> None:
    if paths:
        told = ", ".join(paths[:_MOST_TOLD])
        more = f" and {len(paths) - _MOST_TOLD} more" if len(paths) > _MOST_TOLD else ""
        say(f"left out, {len(paths)} files that nothing reads: {told}{more}")


def _config(path: Path) -> str:
    return "" if path == Path("decon.toml") else f" --config '{path}'"


COMMAND = Command(init, (add_arguments,), DESCRIPTION, EPILOG)
