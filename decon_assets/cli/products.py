"""`decon-assets mixture` and `blend`: list products of the corpus, plan and verify them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from decon_assets.cli.endpoint import (
    ask_with_progress,
    require_endpoint,
    say_cost,
    token_counter,
)
from decon_assets.runner.active_run import active_run
from decon_assets.terminal.options import ConfigPath, Workers, action, argument, command_group, flag
from decon_assets.terminal.output import say, say_table, warn
from decon_assets.terminal.progress import ShardProgress
from decon_core.blends.build import Blender
from decon_core.blends.card import DRAWN, ITEMS, SOURCES, drawn_rows, item_rows, source_rows
from decon_core.blends.counts import account_of
from decon_core.blends.plan import items_to_reword, plan_blend
from decon_core.blends.verify import BlendVerification, verify_blend
from decon_core.config.blends import REWORDED, Blend, blend_named
from decon_core.config.load import Config, load_config
from decon_core.config.mixtures import Mixture, mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import ConfigError, DeconError, Problem, format_problems
from decon_core.execution.choice import open_engine
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import wanted_workers
from decon_core.inventory import blender_of
from decon_core.mixtures.build import Builder
from decon_core.mixtures.choice import CANDIDATES
from decon_core.mixtures.verify import MixtureVerification, Verification
from decon_core.mixtures.verify import verify as verify_mixture
from decon_core.scan.coverage import refused
from decon_core.storage.drafts import locked_or_refused
from decon_core.storage.files import read_json
from decon_core.storage.store import Store
from decon_core.wording import counted, percent

if TYPE_CHECKING:
    from decon_core.similarity.endpoint import Outcome
    from decon_core.similarity.judge import Request
    from decon_core.similarity.rewording_requests import RewordingPlan

Product = TypeVar("Product", Mixture, Blend)
Result = TypeVar("Result", bound=Verification)

MixtureNames = Annotated[
    list[str] | None,
    argument("the name of a mixture, or its folder (default: all declared ones)", "MIXTURE"),
]
BlendNames = Annotated[
    list[str] | None,
    argument("the name of a blend, or its folder (default: all declared ones)", "BLEND"),
]

mixture_group = command_group()
blend_group = command_group()


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
def list_mixtures(names: MixtureNames = None, *, config: ConfigPath) -> int:
    """Show the input and output size of each mixture.

    Examples:
      decon-assets mixture list
    """
    builder, chosen = _open_mixtures(config, names)
    say_table(_MIXTURE_HEADS, [_mixture_row(builder, one) for one in chosen])
    for one in chosen:
        if one.write == "mask":
            built = _totals(builder, one)  # a source that is not taken has no tokens
            n_masked = sum(totals.get("n_masked_tokens", 0) for totals in built)
            n_tokens = sum(totals.get("n_input_tokens", 0) for totals in built)
            say(f"{one.name}: {_masked(one, n_masked, n_tokens)}")
    for one in chosen:
        if n := sum(totals["found"].get(CANDIDATES, 0) for totals in _totals(builder, one)):
            found = f"{counted(n, 'document')} with a candidate only"
            stays = "not removed (docs/judge.md)" if one.leaks.candidates == "keep" else "removed"
            say(f"{one.name}: {found}: {stays}")
    for shard, problem in refused(builder.store, builder.packs):
        say(f"pack not built: {shard.name} could not be scanned: {problem}")
    _say_undeclared(builder.store.mixtures("any").parent, builder.mixtures)
    return 0


@action(mixture_group, "verify")
def verify_mixtures(
    names: MixtureNames = None, *, workers: Workers = None, config: ConfigPath
) -> int:
    """Check mixtures against their manifests, and scan them again.

    The manifest holds checksums, counts and the list of removals. A clean mixture must hold no leak
    of the benchmarks that it removes, a mixture of leaks nothing else.

    Examples:
      decon-assets mixture verify
      decon-assets mixture verify decontaminated --workers 8
    """
    builder, chosen = _open_mixtures(config, names)

    def describe(one: Mixture, found: MixtureVerification) -> str:
        leaks = f"{counted(found.n_leaks, 'document')} with a leak"
        text = f"{leaks}, {found.n_question_only:,} question-only, of {_leaks_of(builder, one)}"
        if one.write == "mask":
            text += f"; {_masked(one, found.n_masked_tokens, found.n_input_tokens)}"
        return text

    engine = _engine_of(config, builder.store)
    verify = partial(verify_mixture, builder)
    problems = _verify_each(chosen, verify, describe, workers, engine)
    return _exit_code_for(problems, config)


def _open_mixtures(config: Path, names: list[str] | None) -> tuple[Builder, list[Mixture]]:
    loaded = load_config(config)
    builder = blender_of(loaded, open_store(loaded)).builder
    folder = builder.store.mixtures("any").parent
    return builder, _chosen(names, builder.mixtures, mixture_named, folder)


_MIXTURE_HEADS = (
    *("mixture", "takes", "leaks of", "packs", "documents", "left", "cut", "tokens"),
    "left of them",
)
_TOTALS = ("n_documents_in", "n_documents_out", "n_cut", "n_tokens_in", "n_tokens_out")


def _mixture_row(builder: Builder, one: Mixture) -> Sequence[object]:
    built = _totals(builder, one)
    return (
        one.name,
        one.take if one.cut == "documents" else f"{one.take}, {one.cut} {_cut(one)}",
        _leaks_of(builder, builder.effective(one)) if one.needs_leaks else "",
        f"{len(built)} of {len(builder.packs)}",
        *(f"{sum(totals.get(name, 0) for totals in built):,}" for name in _TOTALS),
    )


def _cut(one: Mixture) -> str:
    return "masked" if one.write == "mask" else "cut"


def _masked(one: Mixture, n_masked: int, n_tokens: int) -> str:
    share = percent(n_masked / n_tokens if n_tokens else None)
    return f"{n_masked:,} of {n_tokens:,} tokens of {one.tokenizer_name} masked ({share})"


def _totals(builder: Builder, one: Mixture) -> list[dict[str, Any]]:
    """Return the totals of the packs for which a mixture is up to date."""
    return [
        read_json(builder.store.mixture_manifest(one.name, pack.name))["totals"]
        for pack in builder.packs
        if builder.is_current(one, pack)
    ]


def _leaks_of(builder: Builder, one: Mixture) -> str:
    """Return the names of the benchmarks whose leaks a mixture selects by."""
    return one.leaks.described([version.benchmark for version in builder.versions])


# Blends -------------------------------------------------------------------------------------------


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
      decon-assets blend reword --dry-run           items in other words, by an endpoint

    Exit codes: 0 everything matches its manifest, 1 something does not, 2 an input is wrong.
    """


@action(blend_group, "list")
def list_blends(names: BlendNames = None, *, config: ConfigPath) -> int:
    """Show the content of each blend.

    Examples:
      decon-assets blend list
    """
    blender, chosen = _open_blends(config, names)
    say_table(_BLEND_HEADS, [_blend_row(blender, one) for one in chosen])
    _say_undeclared(blender.builder.store.blend("any").parent, blender.blends)
    return 0


@action(blend_group, "plan")
def plan_blends(names: BlendNames = None, *, config: ConfigPath) -> int:
    """Show what a blend would contain, and how many passes over each source it takes.

    Nothing is written. A plan that has no room for its test items is refused.

    Examples:
      decon-assets blend plan garlic
    """
    blender, chosen = _open_blends(config, names)
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
    return _exit_code_for(problems, config)


@action(blend_group, "verify")
def verify_blends(names: BlendNames = None, *, workers: Workers = None, config: ConfigPath) -> int:
    """Check blends against their manifests, and scan them again.

    In a blend of a clean mixture no document may hold a leak, and every inserted item must be
    found.

    Examples:
      decon-assets blend verify
      decon-assets blend verify garlic --workers 8
    """
    blender, chosen = _open_blends(config, names)

    def describe(one: Blend, found: BlendVerification) -> str:
        leaks = _leaks_of(blender.builder, blender.mixture_of(one))
        text = f"{found.n_leaks:,} of the mixture's documents with a leak of {leaks}"
        if found.n_test_texts:
            text += f"; {found.n_found:,} of {found.n_test_texts:,} inserted texts found"
        if found.n_given_away:
            text += f", which also contain {counted(found.n_given_away, 'held-out item')}"
        return text

    engine = _engine_of(config, blender.builder.store)
    verify = partial(verify_blend, blender)
    problems = _verify_each(chosen, verify, describe, workers, engine)
    return _exit_code_for(problems, config)


@action(blend_group, "reword")
def reword_items(
    names: BlendNames = None,
    *,
    dry_run: bool = flag("--dry-run", "say what would be asked and how much that is; send nothing"),
    config: ConfigPath,
) -> int:
    """Have the items of blends said in other words by a language model.

    For contaminations with form = "reworded". [rewording] of decon.toml has the endpoint, the model
    and the limits, as [judge] has for judging. Only seen items are asked about, and each once: an
    answer is saved in rewordings.jsonl at once, also if the command is killed afterwards. An answer
    with other numbers, or that is mostly a copy of the item or of another variant, is asked for
    again, then counted as failed; the blend leaves such items out.

    Examples:
      decon-assets blend reword --dry-run       requests and tokens, before anything is sent
      decon-assets blend reword garlic

    Exit codes: 0 every seen item has its rewordings, 1 some have not, 2 an input is wrong or the
    endpoint refuses all requests.
    """
    from decon_core.similarity.rewording_requests import load_rewording_prompt, plan_rewordings
    from decon_core.similarity.rewordings import read_rewordings

    loaded = load_config(config)
    settings, path = loaded.rewording, loaded.rewordings
    prompt = load_rewording_prompt(loaded.folder / settings.prompt if settings.prompt else None)
    blender, chosen = _open_blends(config, names)
    items = items_to_reword(blender.builder, chosen)

    def plan() -> RewordingPlan:
        known, count_tokens = read_rewordings(path), token_counter()
        found = plan_rewordings(items, prompt, settings, known, count_tokens=count_tokens)
        say(f'{counted(found.n_items, "seen item")} with form = "{REWORDED}"')
        if found.n_answered:
            say(f"  {found.n_answered:,} answered before: not asked again")
        say_cost(found.requests, len(found.requests), settings)
        return found

    if dry_run:
        plan()
        say("nothing was sent")
        return 0
    key = require_endpoint(settings, loaded.path, docs="docs/blends.md")
    with locked_or_refused(path.with_name(f".{path.name}.lock"), "another `blend reword`"):
        return _reword(plan(), loaded, key)


def _reword(plan: RewordingPlan, config: Config, key: str | None) -> int:
    """Ask the requests of a plan, and save each answer at once; return the exit code."""
    from decon_core.similarity.rewordings import append_rewording

    settings, reasons = config.rewording, Counter[str]()

    def save(request: Request, outcome: Outcome) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        said = outcome.judgement or {"failed": outcome.unjudged}
        append_rewording(config.rewordings, plan.line_of(request, settings, at=at, said=said))
        if outcome.judgement is None:
            reasons[outcome.unjudged] += 1

    spent = ask_with_progress(plan.requests, settings, save, key=key, task=plan.task)
    if n_left := len(plan.requests) - spent.n_judged - spent.n_failed:
        reasons[f"not asked: {spent.stopped}"] += n_left
    if plan.requests:
        sent = f"{counted(spent.n_requests, 'request')}, {counted(spent.n_tokens, 'token')}"
        say(f"{sent}: {counted(spent.n_judged, 'rewording')}")
        say(f"Saved in {config.rewordings}; `decon-assets run` builds the blends with them")
    for reason, n in sorted(reasons.items(), key=lambda one: (-one[1], one[0])):
        say(f"  {n:,} without a rewording: {reason}")
    return 1 if reasons else 0


def _open_blends(config: Path, names: list[str] | None) -> tuple[Blender, list[Blend]]:
    loaded = load_config(config)
    blender = blender_of(loaded, open_store(loaded))
    folder = blender.builder.store.blend("any").parent
    return blender, _chosen(names, blender.blends, blend_named, folder)


_BLEND_HEADS = (
    *("blend", "of", "built", "documents", "tokens", "test items", "of tokens", "most passes"),
)


def _blend_row(blender: Blender, one: Blend) -> Sequence[str]:
    path = blender.builder.store.blend_manifest(one.name)
    if not blender.is_current(one):
        state = "out of date" if path.is_file() else "no"
        return (one.name, one.of, state, *("–" for _ in _BLEND_HEADS[3:]))
    manifest = read_json(path)
    totals = manifest["totals"]
    return (
        *(one.name, one.of, "yes"),
        *(f"{totals[name]:,}" for name in ("n_documents", "n_tokens", "n_test_texts")),
        f"{totals['n_test_tokens'] / max(totals['n_tokens'], 1):.2%}",
        f"{max(source['passes'] for source in manifest['sources']):g}",
    )


# Both ---------------------------------------------------------------------------------------------


def _chosen(
    typed: Sequence[str] | None,
    declared: Sequence[Product],
    find: Callable[[Sequence[Product], str], Product],
    folder: Path,
) -> list[Product]:
    """Return the products given by name or by folder, a child of `folder`; all if none is given."""
    return [find(declared, _name_of(one, folder)) for one in typed or ()] or list(declared)


def _name_of(typed: str, folder: Path) -> str:
    path = Path(typed)
    if os.sep not in typed and not path.is_dir():
        return typed
    path, folder = path.resolve(), folder.resolve()
    if path.parent != folder:
        what = folder.name.removesuffix("s")  # mixtures, blends
        raise ConfigError(Problem(typed, f"not the folder of a {what}", f"a folder in {folder}"))
    return path.name


def _say_undeclared(folder: Path, declared: Sequence[Mixture | Blend]) -> None:
    """Print a line for each product's folder that decon.toml no longer declares."""
    known = {one.name for one in declared}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and path.name not in known:
            say(f"no longer declared in decon.toml, so not updated: {path}")


def _engine_of(config: Path, store: Store) -> Engine:
    return open_engine(load_config(config).execution, store)


def _verify_each(
    chosen: Sequence[Product],
    verify: Callable[..., Result],
    describe: Callable[[Product, Result], str],
    workers: int | None,
    engine: Engine,
) -> list[Problem]:
    """Verify products, and print a line for each; return all problems."""
    problems: list[Problem] = []
    for one in chosen:
        with ShardProgress(sys.stderr, engine) as progress:
            n_workers = workers or wanted_workers()
            found = verify(one, workers=n_workers, engine=engine, on_progress=progress.update)
        n = len(found.problems)
        state = counted(n, "problem") if n else "matches its manifest"
        documents, tokens = counted(found.n_documents, "document"), counted(found.n_tokens, "token")
        say(f"{one.name}: {state}; {documents}, {tokens}, {describe(one, found)}")
        problems += found.problems
    return problems


def _exit_code_for(problems: Sequence[Problem], config: Path) -> int:
    """Print problems, and the run that may be mending them; return 1 if there are any."""
    if problems:
        warn(f"\n{format_problems(problems)}")
        if run := active_run(config):
            warn(run)
    return 1 if problems else 0
