"""`decon-assets mixture`: list filtered variants of the corpus, and verify them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from decon_assets.cli.command import Command, Say, add_config, add_workers
from decon_assets.cli.folders import name_of, undeclared_folders
from decon_assets.cli.terminal.tables import text_table
from decon_assets.runner.active_run import active_run
from decon_core.config.load import load_config
from decon_core.config.mixtures import Mixture, mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import Problem, format_problems
from decon_core.inventory import builder_of
from decon_core.mixtures.build import Builder
from decon_core.mixtures.manifest import MANIFEST
from decon_core.mixtures.verify import MixtureVerification, verify
from decon_core.scan.tiles import refused
from decon_core.scan.workers import wanted_workers
from decon_core.storage.store import read_json
from decon_core.wording import counted

DESCRIPTION = """\
Mixtures are filtered variants of the corpus that decon.toml declares with [[mixture]];
`decon-assets run` builds them. `list` shows the input and output size of each. `verify` checks
mixtures against their manifests (checksums, counts, lists of removals) and scans them again: a
clean mixture must hold no leak of the benchmarks that it removes, a mixture of leaks nothing else.
Both actions print these benchmarks: leaks of others may remain.
"""

EPILOG = """\
examples:
  decon-assets mixture list
  decon-assets mixture verify                     all of them
  decon-assets mixture verify decontaminated
  decon-assets mixture verify .decon/mixtures/decontaminated

Exit codes: 0 everything matches its manifest, 1 something does not, 2 an input is wrong.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("list", "verify"), help="the action")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="mixture",
        help="the name of a mixture, or its folder (default: all declared mixtures)",
    )


def mixture(options: argparse.Namespace, say: Say) -> int:
    """List or verify; return 1 if there are problems, else 0."""
    config = load_config(options.config)
    builder = builder_of(config, open_store(config))
    folder = builder.store.mixtures("any").parent
    names = [name_of(typed, folder, what="mixture") for typed in options.names]
    chosen = [mixture_named(builder.mixtures, name) for name in names] or list(builder.mixtures)
    if options.what == "list":
        say(text_table(_ROW, [_row(builder, one) for one in chosen]))
        for shard, problem in refused(builder.store, builder.packs):
            say(f"pack not built: {shard.name} could not be scanned: {problem}")
        for line in undeclared_folders(folder, {one.name for one in builder.mixtures}):
            say(line)
        return 0
    problems: list[Problem] = []
    for one in chosen:
        found = verify(builder, one, workers=options.workers or wanted_workers())
        say(_verdict(builder, one, found))
        problems += found.problems
    if problems:
        sys.stderr.write(f"\n{format_problems(problems)}\n")
    if problems and (run := active_run(options.config)):
        sys.stderr.write(f"{run}\n")
    return 1 if problems else 0


_ROW = (
    *("mixture", "takes", "leaks of", "packs", "documents", "left", "cut", "tokens"),
    "left of them",
)


def _row(builder: Builder, one: Mixture) -> Sequence[object]:
    totals = {"n_documents_in": 0, "n_documents_out": 0, "n_cut": 0}
    totals |= {"n_tokens_in": 0, "n_tokens_out": 0}
    n_built = 0
    for pack in builder.packs:
        if not builder.is_current(one, pack):
            continue
        n_built += 1
        manifest = read_json(builder.store.mixture(one.name, pack.name) / MANIFEST)
        for name in totals:
            totals[name] += manifest["totals"].get(name, 0)
    return (
        one.name,
        one.take if one.cut == "documents" else f"{one.take}, {one.cut} cut",
        _leaks_of(builder, builder.effective(one)) if one.needs_leaks else "",
        f"{n_built} of {len(builder.packs)}",
        f"{totals['n_documents_in']:,}",
        f"{totals['n_documents_out']:,}",
        f"{totals['n_cut']:,}",
        f"{totals['n_tokens_in']:,}",
        f"{totals['n_tokens_out']:,}",
    )


def _leaks_of(builder: Builder, one: Mixture) -> str:
    """Return the names of the benchmarks whose leaks a mixture selects by."""
    return one.leaks.described([version.benchmark for version in builder.versions])


def _verdict(builder: Builder, one: Mixture, found: MixtureVerification) -> str:
    state = (
        "matches its manifest" if not found.problems else counted(len(found.problems), "problem")
    )
    return (
        f"{one.name}: {state}; {counted(found.n_documents, 'document')}, "
        f"{counted(found.n_tokens, 'token')}, "
        f"{counted(found.n_leaks, 'document')} with a leak, {found.n_question_only:,} "
        "question-only, "
        f"of {_leaks_of(builder, one)}"
    )


COMMAND = Command(mixture, (add_arguments, add_workers, add_config), DESCRIPTION, EPILOG)
