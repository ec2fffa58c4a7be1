"""`decon-assets blend`: list weighted streams of documents, plan and verify them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from decon_assets.cli.folders import chosen_products, exit_code_for, say_undeclared, state_of
from decon_assets.cli.options import ConfigPath, Workers, action, argument, command_group
from decon_assets.cli.terminal.output import say, say_table
from decon_assets.cli.terminal.progress import ShardProgress
from decon_core.blends.account import account_of
from decon_core.blends.build import Blender
from decon_core.blends.card import DRAWN, ITEMS, SOURCES, drawn_rows, item_rows, source_rows
from decon_core.blends.plan import plan_blend
from decon_core.blends.verify import BlendVerification, verify_blend
from decon_core.config.blends import Blend, blend_named
from decon_core.config.load import load_config
from decon_core.config.mixtures import mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import DeconError, Problem
from decon_core.inventory import blender_of
from decon_core.mixtures.manifest import MANIFEST
from decon_core.scan.workers import wanted_workers
from decon_core.storage.store import read_json
from decon_core.wording import counted

blend_group = command_group()

Names = Annotated[
    list[str] | None,
    argument("the name of a blend, or its folder (default: all declared ones)", "BLEND"),
]


@blend_group.callback()
def blend(*, workers: Workers = None, config: ConfigPath) -> None:
    """List, plan or verify blends: ordered streams of documents.

    decon.toml declares them with [[blend]]: a mixture, drawn from its sources by weight, with test
    items in place of some documents if a study wants them. `decon-assets run` builds them.

    Examples:
      decon-assets blend list
      decon-assets blend plan garlic
      decon-assets blend verify                     all of them
      decon-assets blend verify .decon/blends/garlic

    Exit codes: 0 everything matches its manifest, 1 something does not, 2 an input is wrong.
    """


@action(blend_group, "list")
def list_blends(names: Names = None, *, workers: Workers = None, config: ConfigPath) -> int:  # noqa: ARG001 - every action takes it
    """Show the content of each blend.

    Examples:
      decon-assets blend list
    """
    blender, chosen = _open(config, names)
    say_table(_HEADS, [_row(blender, one) for one in chosen])
    folder = blender.builder.store.blend("any").parent
    say_undeclared(folder, {one.name for one in blender.blends})
    return 0


@action(blend_group, "plan")
def plan_blends(names: Names = None, *, workers: Workers = None, config: ConfigPath) -> int:  # noqa: ARG001 - every action takes it
    """Show what a blend would contain, and how many passes over each source it takes.

    Nothing is written. A plan that has no room for its test items is refused.

    Examples:
      decon-assets blend plan garlic
    """
    blender, chosen = _open(config, names)
    problems: list[Problem] = []
    for one in chosen:
        try:
            account = account_of(plan_blend(blender.builder, one))
        except DeconError as error:
            say(f"{one.name}: refused")
            problems += error.problems
            continue
        say(f"{one.name}, of {one.of}\n")
        say_table(DRAWN, drawn_rows(account))
        say()
        say_table(SOURCES, source_rows(account))
        if account["contamination"]:
            say()
            say_table(ITEMS, item_rows(account))
        say()
    return exit_code_for(problems, config)


@action(blend_group, "verify")
def verify_blends(names: Names = None, *, workers: Workers = None, config: ConfigPath) -> int:
    """Check blends against their manifests, and scan them again.

    In a blend of a clean mixture no document may hold a leak, and every inserted item must be
    found.

    Examples:
      decon-assets blend verify
      decon-assets blend verify garlic --workers 8
    """
    blender, chosen = _open(config, names)
    problems: list[Problem] = []
    for one in chosen:
        with ShardProgress(sys.stderr) as progress:
            n_workers = workers or wanted_workers()
            found = verify_blend(blender, one, workers=n_workers, on_progress=progress.update)
        say(_verdict(blender, one, found))
        problems += found.problems
    return exit_code_for(problems, config)


def _open(config: Path, names: list[str] | None) -> tuple[Blender, list[Blend]]:
    loaded = load_config(config)
    blender = blender_of(loaded, open_store(loaded))
    folder = blender.builder.store.blend("any").parent
    return blender, chosen_products(names, blender.blends, blend_named, folder=folder, what="blend")


_HEADS = ("blend", "of", "built", "documents", "tokens", "test items", "of tokens", "most passes")


def _row(blender: Blender, one: Blend) -> tuple[str, ...]:
    folder = blender.builder.store.blend(one.name)
    if not blender.is_current(one):
        state = "out of date" if (folder / MANIFEST).is_file() else "no"
        return (one.name, one.of, state, *("–" for _ in _HEADS[3:]))
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


def _verdict(blender: Blender, one: Blend, found: BlendVerification) -> str:
    builder = blender.builder
    known = [version.benchmark for version in builder.versions]
    leaks = mixture_named(builder.mixtures, one.of).leaks.described(known)
    text = (
        f"{one.name}: {state_of(found.problems)}; {counted(found.n_documents, 'document')}, "
        f"{counted(found.n_tokens, 'token')}, "
        f"{found.n_leaks:,} of the mixture's documents with a leak of {leaks}"
    )
    if found.n_test_texts:
        text += f"; {found.n_found:,} of {found.n_test_texts:,} inserted texts found"
    if found.n_given_away:
        text += f", which also contain {counted(found.n_given_away, 'held-out item')}"
    return text
