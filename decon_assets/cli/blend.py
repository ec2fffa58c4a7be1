"""`decon-assets blend`: list weighted streams of documents, plan and verify them."""

from __future__ import annotations

import argparse
import sys

from decon_assets.cli.command import Command, Say, add_config, add_workers
from decon_assets.cli.folders import name_of, undeclared_folders
from decon_assets.cli.terminal.tables import text_table
from decon_assets.runner.active_run import active_run
from decon_core.blends.account import account_of
from decon_core.blends.build import Blender
from decon_core.blends.card import (
    DRAWN,
    ITEMS,
    SOURCES,
    drawn_rows,
    item_rows,
    source_rows,
)
from decon_core.blends.plan import plan_blend
from decon_core.blends.verify import BlendVerification, verify_blend
from decon_core.config.blends import Blend, blend_named
from decon_core.config.load import load_config
from decon_core.config.mixtures import mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import DeconError, Problem, format_problems
from decon_core.inventory import blender_of
from decon_core.mixtures.manifest import MANIFEST
from decon_core.scan.workers import wanted_workers
from decon_core.storage.store import read_json
from decon_core.wording import counted

DESCRIPTION = """\
Blends are ordered streams of documents that decon.toml declares with [[blend]]: a mixture, drawn
from its sources by weight, with test items in place of some documents if a study wants them.
`decon-assets run` builds them. `list` shows the content of each. `plan` shows what one would
contain, and how many passes over each source it takes, without writing it. `verify` checks blends
against their manifests and scans them again: in a blend of a clean mixture no document may hold a
leak, and every inserted item must be found.
"""

EPILOG = """\
examples:
  decon-assets blend list
  decon-assets blend plan garlic
  decon-assets blend verify                     all of them
  decon-assets blend verify .decon/blends/garlic

Exit codes: 0 everything matches its manifest, 1 something does not, 2 an input is wrong.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("list", "plan", "verify"), help="the action")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="blend",
        help="the name of a blend, or its folder (default: all declared blends)",
    )


def blend(options: argparse.Namespace, say: Say) -> int:
    """List, plan or verify; return 1 if there are problems, else 0."""
    config = load_config(options.config)
    blender = blender_of(config, open_store(config))
    folder = blender.builder.store.blend("any").parent
    names = [name_of(typed, folder, what="blend") for typed in options.names]
    chosen = [blend_named(blender.blends, name) for name in names] or list(blender.blends)
    if options.what == "list":
        say(text_table(_ROW, [_row(blender, one) for one in chosen]))
        for line in undeclared_folders(folder, {one.name for one in blender.blends}):
            say(line)
        return 0
    problems: list[Problem] = []
    for one in chosen:
        if options.what == "plan":
            problems += _say_plan(blender, one, say)
            continue
        found = verify_blend(blender, one, workers=options.workers or wanted_workers())
        say(_verdict(blender, one, found))
        problems += found.problems
    if problems:
        sys.stderr.write(f"\n{format_problems(problems)}\n")
    if problems and (run := active_run(options.config)):
        sys.stderr.write(f"{run}\n")
    return 1 if problems else 0


_ROW = ("blend", "of", "built", "documents", "tokens", "test items", "of tokens", "most passes")


def _row(blender: Blender, one: Blend) -> tuple[str, ...]:
    folder = blender.builder.store.blend(one.name)
    if not blender.is_current(one):
        state = "out of date" if (folder / MANIFEST).is_file() else "no"
        return (one.name, one.of, state, *("–" for _ in _ROW[3:]))
    manifest = read_json(folder / MANIFEST)
    totals = manifest["totals"]
    return (
        one.name,
        one.of,
        "yes",
        f"{totals['n_documents']:,}",
        f"{totals['n_tokens']:,}",
        f"{totals['n_test_texts']:,}",
        f"{totals['n_test_tokens'] / max(totals['n_tokens'], 1):.2%}",
        f"{max(source['passes'] for source in manifest['sources']):g}",
    )


def _say_plan(blender: Blender, one: Blend, say: Say) -> list[Problem]:
    """Print the tables of a planned blend, or return the problems that prevent it."""
    try:
        account = account_of(plan_blend(blender.builder, one))
    except DeconError as error:
        say(f"{one.name}: refused")
        return list(error.problems)
    say(f"{one.name}, of {one.of}\n")
    say(text_table(DRAWN, drawn_rows(account)))
    say("\n" + text_table(SOURCES, source_rows(account)))
    if account["contamination"]:
        say("\n" + text_table(ITEMS, item_rows(account)))
    say("")
    return []


def _verdict(blender: Blender, one: Blend, found: BlendVerification) -> str:
    builder = blender.builder
    known = [version.benchmark for version in builder.versions]
    leaks = mixture_named(builder.mixtures, one.of).leaks.described(known)
    state = (
        "matches its manifest" if not found.problems else counted(len(found.problems), "problem")
    )
    text = (
        f"{one.name}: {state}; {counted(found.n_documents, 'document')}, "
        f"{counted(found.n_tokens, 'token')}, "
        f"{found.n_leaks:,} of the mixture's documents with a leak of {leaks}"
    )
    if found.n_test_texts:
        text += f"; {found.n_found:,} of {found.n_test_texts:,} inserted texts found"
    if found.n_given_away:
        text += f", which also contain {counted(found.n_given_away, 'held-out item')}"
    return text


COMMAND = Command(blend, (add_arguments, add_workers, add_config), DESCRIPTION, EPILOG)
