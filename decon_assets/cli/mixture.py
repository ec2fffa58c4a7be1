"""`decon-assets mixture`: list filtered variants of the corpus, and verify them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from decon_assets.cli.folders import chosen_products, exit_code_for, say_undeclared, state_of
from decon_assets.cli.options import ConfigPath, Workers, action, argument, command_group
from decon_assets.cli.terminal.output import say, say_table
from decon_assets.cli.terminal.progress import ShardProgress
from decon_core.config.load import load_config
from decon_core.config.mixtures import Mixture, mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import Problem
from decon_core.inventory import builder_of
from decon_core.mixtures.build import Builder
from decon_core.mixtures.manifest import MANIFEST
from decon_core.mixtures.verify import MixtureVerification, verify
from decon_core.scan.tiles import refused
from decon_core.scan.workers import wanted_workers
from decon_core.storage.store import read_json
from decon_core.wording import counted

mixture_group = command_group()

Names = Annotated[
    list[str] | None,
    argument("the name of a mixture, or its folder (default: all declared ones)", "MIXTURE"),
]


@mixture_group.callback()
def mixture(*, workers: Workers = None, config: ConfigPath) -> None:
    """List or verify mixtures: filtered variants of the corpus.

    decon.toml declares them with [[mixture]]; `decon-assets run` builds them. Both actions print
    the benchmarks whose leaks a mixture selects by: leaks of others may remain.

    Examples:
      decon-assets mixture list
      decon-assets mixture verify                     all of them
      decon-assets mixture verify decontaminated
      decon-assets mixture verify .decon/mixtures/decontaminated

    Exit codes: 0 everything matches its manifest, 1 something does not, 2 an input is wrong.
    """


@action(mixture_group, "list")
def list_mixtures(names: Names = None, *, workers: Workers = None, config: ConfigPath) -> int:  # noqa: ARG001 - every action takes it
    """Show the input and output size of each mixture.

    Examples:
      decon-assets mixture list
    """
    builder, chosen = _open(config, names)
    say_table(_HEADS, [_row(builder, one) for one in chosen])
    for shard, problem in refused(builder.store, builder.packs):
        say(f"pack not built: {shard.name} could not be scanned: {problem}")
    say_undeclared(builder.store.mixtures("any").parent, {one.name for one in builder.mixtures})
    return 0


@action(mixture_group, "verify")
def verify_mixtures(names: Names = None, *, workers: Workers = None, config: ConfigPath) -> int:
    """Check mixtures against their manifests, and scan them again.

    The manifest holds checksums, counts and the list of removals. A clean mixture must hold no leak
    of the benchmarks that it removes, a mixture of leaks nothing else.

    Examples:
      decon-assets mixture verify
      decon-assets mixture verify decontaminated --workers 8
    """
    builder, chosen = _open(config, names)
    problems: list[Problem] = []
    for one in chosen:
        with ShardProgress(sys.stderr) as progress:
            n_workers = workers or wanted_workers()
            found = verify(builder, one, workers=n_workers, on_progress=progress.update)
        say(_verdict(builder, one, found))
        problems += found.problems
    return exit_code_for(problems, config)


def _open(config: Path, names: list[str] | None) -> tuple[Builder, list[Mixture]]:
    loaded = load_config(config)
    builder = builder_of(loaded, open_store(loaded))
    folder = builder.store.mixtures("any").parent
    chosen = chosen_products(names, builder.mixtures, mixture_named, folder=folder, what="mixture")
    return builder, chosen


_HEADS = (
    *("mixture", "takes", "leaks of", "packs", "documents", "left", "cut", "tokens"),
    "left of them",
)
_TOTALS = ("n_documents_in", "n_documents_out", "n_cut", "n_tokens_in", "n_tokens_out")


def _row(builder: Builder, one: Mixture) -> Sequence[object]:
    built = [
        read_json(builder.store.mixture(one.name, pack.name) / MANIFEST)["totals"]
        for pack in builder.packs
        if builder.is_current(one, pack)
    ]
    return (
        one.name,
        one.take if one.cut == "documents" else f"{one.take}, {one.cut} cut",
        _leaks_of(builder, builder.effective(one)) if one.needs_leaks else "",
        f"{len(built)} of {len(builder.packs)}",
        *(f"{sum(totals.get(name, 0) for totals in built):,}" for name in _TOTALS),
    )


def _leaks_of(builder: Builder, one: Mixture) -> str:
    """Return the names of the benchmarks whose leaks a mixture selects by."""
    return one.leaks.described([version.benchmark for version in builder.versions])


def _verdict(builder: Builder, one: Mixture, found: MixtureVerification) -> str:
    return (
        f"{one.name}: {state_of(found.problems)}; {counted(found.n_documents, 'document')}, "
        f"{counted(found.n_tokens, 'token')}, {counted(found.n_leaks, 'document')} with a leak, "
        f"{found.n_question_only:,} question-only, of {_leaks_of(builder, one)}"
    )
