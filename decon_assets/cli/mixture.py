"""`decon-assets mixture`: list the mixtures of the corpus, and verify them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from decon_assets.terminal.options import ConfigPath, Workers, action, argument, command_group
from decon_assets.terminal.output import say, say_rows
from decon_assets.terminal.products import (
    described,
    exit_code_for,
    say_undeclared,
    verify_each,
)
from decon_core.config.load import load_config
from decon_core.config.mixtures import Mixture, mixture_named
from decon_core.config.open_store import open_store
from decon_core.execution.choice import open_engine
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.card import counts_in
from decon_core.mixtures.choice import REVIEW
from decon_core.mixtures.verify import MixtureVerification
from decon_core.mixtures.verify import verify as verify_mixture
from decon_core.planner import Plan
from decon_core.scan.coverage import refused
from decon_core.storage.files import read_json
from decon_core.wording import counted, percent

MixtureNames = Annotated[
    list[str] | None,
    argument("name of a mixture (default: all declared mixtures)", "MIXTURE"),
]

mixture_group = command_group()


@mixture_group.callback()
def mixture(*, workers: Workers = None, config: ConfigPath) -> None:
    """List or verify mixtures: filtered variants of the corpus.

    Declare mixtures with [[mixture]] in decon.toml, and build them with `decon-assets run`.
    `list` and `verify` also print the benchmarks whose leaks a mixture removes; leaks of other
    benchmarks may remain.

    Examples:
      decon-assets mixture list
      decon-assets mixture verify                     all mixtures
      decon-assets mixture verify decontaminated

    Exit codes: 0 all mixtures match their manifests; 1 a mixture does not, or shards changed since
    they were registered; 2 invalid input.
    """


@action(mixture_group, "list")
def list_mixtures(names: MixtureNames = None, *, config: ConfigPath) -> int:
    """Show the input and output size of each mixture.

    Examples:
      decon-assets mixture list
    """
    plan, chosen = _open_mixtures(config, names)
    builder = plan.builder
    # The totals of the packs for which a mixture is up to date.
    built = {
        declared.name: [
            read_json(builder.store.mixture_manifest(declared.name, pack))["totals"]
            for pack in builder.current_packs(declared)
        ]
        for declared in chosen
    }
    rows = [_mixture_row(builder, declared, built[declared.name]) for declared in chosen]
    say_rows(rows, spare=("leaks of", "packs", "review", "cut"))
    if any(row["review"] for row in rows):
        say("review: documents with similar text that nobody has reviewed; a mixture keeps")
        say('        them unless its [mixture.leaks] has review = "remove" (docs/judge.md)')
    for declared in chosen:
        if declared.write == "mask":
            n = counts_in(built[declared.name])
            say(f"{declared.name}: {_masked(declared, n['n_masked_tokens'], n['n_input_tokens'])}")
    for shard, problem in refused(builder.store, builder.packs):
        say(f"pack not built: {shard.name} could not be scanned: {problem}")
    say_undeclared(builder.store.mixtures("any").parent, builder.mixtures)
    _say_changes(plan)
    return 0


@action(mixture_group, "verify")
def verify_mixtures(
    names: MixtureNames = None, *, workers: Workers = None, config: ConfigPath
) -> int:
    """Check mixtures against their manifests, and scan them again.

    The manifest contains checksums, counts and the list of removals. A clean mixture must not
    contain leaks of the benchmarks whose leaks it removes; a mixture with take = "leaks" must
    contain only documents with a leak.

    Examples:
      decon-assets mixture verify
      decon-assets mixture verify decontaminated --workers 8
    """
    plan, chosen = _open_mixtures(config, names)
    builder = plan.builder

    def describe(declared: Mixture, found: MixtureVerification) -> str:
        leaks = f"{counted(found.n_leaks, 'document')} with a leak"
        text = (
            f"{leaks} and {found.n_no_answer:,} with a question but not its answer, "
            f"searched for {_leaks_of(builder, declared)}"
        )
        if declared.write == "mask":
            text += f"; {_masked(declared, found.n_masked_tokens, found.n_input_tokens)}"
        return text

    engine = open_engine(load_config(config).tables, builder.store)
    verify = partial(verify_mixture, builder)
    code = exit_code_for(verify_each(chosen, verify, describe, workers, engine), config)
    return int(_say_changes(plan)) or code


def _open_mixtures(config: Path, names: list[str] | None) -> tuple[Plan, list[Mixture]]:
    loaded = load_config(config)
    plan = Plan(loaded, open_store(loaded))
    mixtures = plan.builder.mixtures
    chosen = [mixture_named(mixtures, name) for name in names or ()]
    return plan, chosen or [*mixtures]


def _say_changes(plan: Plan) -> bool:
    """Print which shards are not those of the mixtures; return whether there are any."""
    for path, change in plan.changes.by_shard:
        say(f"{path}: {change}")
    if plan.changes.by_shard:
        say("the mixtures are those of the registered shards; `decon-assets run` updates them")
    return bool(plan.changes.by_shard)


_TOTALS = {
    "documents": "n_documents_in",
    "left": "n_documents_out",
    "cut": "n_cut",
    "tokens": "n_tokens_in",
    "tokens left": "n_tokens_out",
}


def _mixture_row(
    builder: Builder, declared: Mixture, built: Sequence[Mapping[str, Any]]
) -> Mapping[str, object]:
    cut, n = "masked" if declared.write == "mask" else "cut", counts_in(built)
    return {
        "mixture": declared.name,
        "takes": declared.take
        if declared.cut == "documents"
        else f"{declared.take}, {declared.cut} {cut}",
        **{head: n[name] for head, name in _TOTALS.items()},
        "review": sum(totals["found"].get(REVIEW, 0) for totals in built),
        "packs": f"{len(built)} of {len(builder.packs)}",
        "leaks of": _leaks_of(builder, builder.effective(declared)) if declared.needs_leaks else "",
    }


def _masked(declared: Mixture, n_masked: int, n_tokens: int) -> str:
    share = percent(n_masked / n_tokens if n_tokens else None)
    return f"{n_masked:,} of {n_tokens:,} {declared.tokenizer_name} tokens masked ({share})"


def _leaks_of(builder: Builder, declared: Mixture) -> str:
    """Return the names of the benchmarks whose leaks a mixture selects by."""
    return described(declared.leaks, [version.benchmark for version in builder.versions])
