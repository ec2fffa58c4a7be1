"""`decon-assets blend`: list, plan, verify and compare blends, and have their items reworded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from decon_assets.features.endpoints import (
    ask_with_progress,
    require_endpoint,
    say_cost,
    token_counter,
)
from decon_assets.terminal.options import (
    ConfigPath,
    Workers,
    action,
    argument,
    command_group,
    flag,
    optional,
)
from decon_assets.terminal.output import say, say_table
from decon_assets.terminal.products import (
    described,
    exit_code_for,
    say_undeclared,
    verify_each,
)
from decon_core.config.load import Config, load_config
from decon_core.config.open_store import open_store
from decon_core.errors import DeconError, Problem
from decon_core.execution.choice import open_engine
from decon_core.features.blends.build import Blender
from decon_core.features.blends.card import tables_of
from decon_core.features.blends.counts import account_of
from decon_core.features.blends.on_page import composition_figure
from decon_core.features.blends.plan import items_to_reword, plan_blend
from decon_core.features.blends.product import blender_of
from decon_core.features.blends.rewordings import rewording_settings, rewordings_path
from decon_core.features.blends.schemas import blend_folder, blend_manifest
from decon_core.features.blends.settings import REWORDED, Blend, blend_named
from decon_core.features.blends.verify import BlendVerification, verify_blend
from decon_core.planner import Plan
from decon_core.report.html.still import svg
from decon_core.storage.drafts import locked_or_refused
from decon_core.storage.files import read_json, write_text
from decon_core.wording import counted, percent

if TYPE_CHECKING:
    from decon_core.features.blends.compare import Difference
    from decon_core.features.blends.rewording_requests import RewordingPlan
    from decon_core.features.endpoints.chat import Outcome
    from decon_core.features.endpoints.requests import Request

BlendNames = Annotated[
    list[str] | None,
    argument("name of a blend (default: all declared blends)", "BLEND"),
]

blend_group = command_group()


@blend_group.callback()
def blend(*, workers: Workers = None, config: ConfigPath) -> None:
    """List, plan, verify or compare blends: ordered streams of documents.

    Declare blends with [[blend]] in decon.toml, and build them with `decon-assets run`. A blend
    draws documents from the sources of a mixture by weight. For a study, test items can replace
    some of the documents.

    Examples:
      decon-assets blend list
      decon-assets blend plan garlic
      decon-assets blend verify                     all blends
      decon-assets blend verify garlic
      decon-assets blend compare control garlic     where two blends diverge
      decon-assets blend reword --dry-run           how many requests rewording takes

    Exit codes: 0 all blends match their manifests; 1 a blend does not; 2 invalid input.
    """


@action(blend_group, "list")
def list_blends(names: BlendNames = None, *, config: ConfigPath) -> int:
    """Show the content of each blend.

    Examples:
      decon-assets blend list
    """
    blender, chosen = _open_blends(config, names)
    say_table(_HEADS, [_row(blender, declared) for declared in chosen])
    say_undeclared(blend_folder(blender.builder.store, "any").parent, blender.blends)
    return 0


@action(blend_group, "plan")
def plan_blends(
    names: BlendNames = None,
    *,
    out: Path | None = optional("draw the composition of the phases as DIR/BLEND.svg", "DIR"),
    config: ConfigPath,
) -> int:
    """Show what a blend would contain, and how many passes over each source it takes.

    The command builds nothing. It fails if a blend has too little room for its test items.

    Examples:
      decon-assets blend plan garlic
      decon-assets blend plan curriculum --out figures
    """
    blender, chosen = _open_blends(config, names)
    problems: list[Problem] = []
    for declared in chosen:
        try:
            account = account_of(plan_blend(blender.builder, declared, blender.rewordings))
        except DeconError as error:
            say(f"{declared.name}: refused")
            problems += error.problems
            continue
        say(f"{declared.name}, of {declared.of}\n")
        for heads, rows in tables_of(account).values():
            if rows:
                say_table(heads, rows)
                say()
        if out:
            figure = composition_figure(account, blender.builder.labels)
            write_text(out / f"{declared.name}.svg", svg(figure))
            say(f"{out / declared.name}.svg\n")
    return exit_code_for(problems, config)


@action(blend_group, "verify")
def verify_blends(names: BlendNames = None, *, workers: Workers = None, config: ConfigPath) -> int:
    """Check blends against their manifests, and scan them again.

    In a blend of a clean mixture, no document may contain a leak. The command also reports how
    many of the inserted items the scan finds.

    Examples:
      decon-assets blend verify
      decon-assets blend verify garlic --workers 8
    """
    blender, chosen = _open_blends(config, names)

    def describe(declared: Blend, found: BlendVerification) -> str:
        benchmarks = [version.benchmark for version in blender.builder.versions]
        leaks = described(blender.mixture_of(declared).leaks, benchmarks)
        text = f"{found.n_leaks:,} documents from the mixture with a leak of {leaks}"
        if found.n_test_texts:
            text += f"; {found.n_found:,} of {found.n_test_texts:,} inserted texts found"
        if found.n_given_away:
            text += f"; {counted(found.n_given_away, 'held-out item')} found in inserted texts"
        return text

    engine = open_engine(load_config(config).tables, blender.builder.store)
    verify = partial(verify_blend, blender)
    return exit_code_for(verify_each(chosen, verify, describe, workers, engine), config)


@action(blend_group, "compare")
def compare_blends(
    first: Annotated[str, argument("name of a blend", "BLEND")],
    second: Annotated[str, argument("the blend to compare it with", "BLEND")],
    *,
    config: ConfigPath,
) -> int:
    """Show the first document at which two blends differ.

    Use it to find a checkpoint that the training runs of a study can share: one run can branch off
    from the other at any point before the first difference. Documents are compared byte for byte.

    Examples:
      decon-assets blend compare same mt-full-late-10

    Exit codes: 0 the difference is shown, or there is none; 2 invalid input, or a blend is missing
    or out of date.
    """
    from decon_core.features.blends.compare import first_difference

    blender, (first_blend, second_blend) = _open_blends(config, [first, second])
    pair = (first_blend, second_blend)
    difference = first_difference(blender, pair)
    sizes = {
        blend.name: read_json(blend_manifest(blender.builder.store, blend.name))["totals"]
        for blend in pair
    }
    for name, totals in sizes.items():
        n_documents = counted(totals["n_documents"], "document")
        say(f"{name}: {n_documents}, {counted(totals['n_tokens'], 'token')}")
    if difference is None:
        say("\nidentical, byte for byte")
    else:
        _say_difference(difference, [blend.name for blend in pair])
    return 0


def _say_difference(difference: Difference, names: Sequence[str]) -> None:
    n_documents, n_tokens = difference.n_equal_documents, difference.n_equal_tokens
    before = f"{counted(n_documents, 'document')}, {counted(n_tokens, 'token')}"
    say(f"\nidentical, byte for byte: the first {before}")
    where = ", where one blend ends" if None in difference.documents else ""
    say(f"first difference: document {n_documents + 1:,}{where}")
    for name, document in zip(names, difference.documents, strict=True):
        if document is not None:
            say(f"  {name}, {document.place}, {document.origin}")
            say(f"    {' '.join(document.excerpt.split())}")


@action(blend_group, "reword")
def reword_items(
    names: BlendNames = None,
    *,
    dry_run: bool = flag("--dry-run", "print the number of requests and tokens, and send nothing"),
    config: ConfigPath,
) -> int:
    """Have a language model reword the items of blends.

    Use it for contaminations with form = "reworded". Set the endpoint, the model and the limits
    under [rewording] in decon.toml, with the same keys as under [judge]. Only the items to insert
    (seen) are sent, each once. Every answer is saved in rewordings.jsonl immediately, so a killed
    command loses none. An answer with different numbers, or one that mostly copies the item or
    another variant, is rejected and requested again. The blend leaves out items without an accepted
    answer.

    Examples:
      decon-assets blend reword --dry-run       requests and tokens, before anything is sent
      decon-assets blend reword garlic

    Exit codes: 0 every seen item has its rewordings; 1 some rewordings are missing; 2 invalid
    input, or the endpoint refuses all requests.
    """
    from decon_core.features.blends.rewording_requests import load_rewording_prompt, plan_rewordings
    from decon_core.features.blends.rewordings import read_rewordings

    loaded = load_config(config)
    settings, path = rewording_settings(loaded), rewordings_path(loaded)
    prompt = load_rewording_prompt(loaded.folder / settings.prompt if settings.prompt else None)
    blender, chosen = _open_blends(config, names)
    items = items_to_reword(blender.builder, chosen)

    def plan() -> RewordingPlan:
        known, count_tokens = read_rewordings(path), token_counter()
        found = plan_rewordings(items, prompt, settings, known, count_tokens=count_tokens)
        say(f'{counted(found.n_items, "seen item")} with form = "{REWORDED}"')
        if found.n_answered:
            say(f"  {found.n_answered:,} already answered: not asked again")
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
    from decon_core.features.blends.rewordings import append_rewording

    settings, path, reasons = rewording_settings(config), rewordings_path(config), Counter[str]()

    def save(request: Request, outcome: Outcome) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        said = outcome.judgement or {"failed": outcome.unjudged}
        append_rewording(path, plan.line_of(request, settings, at=at, said=said))
        if outcome.judgement is None:
            reasons[outcome.unjudged] += 1

    spent = ask_with_progress(plan.requests, settings, save, key=key, task=plan.task)
    if n_left := len(plan.requests) - spent.n_judged - spent.n_failed:
        reasons[f"not asked: {spent.stopped}"] += n_left
    if plan.requests:
        sent = f"{counted(spent.n_requests, 'request')}, {counted(spent.n_tokens, 'token')}"
        say(f"{sent}: {counted(spent.n_judged, 'rewording')}")
        say(f"Saved in {path}; build the blends with `decon-assets run`")
    for reason, n in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
        say(f"  {n:,} without a rewording: {reason}")
    return 1 if reasons else 0


def _open_blends(config: Path, names: list[str] | None) -> tuple[Blender, list[Blend]]:
    loaded = load_config(config)
    store = open_store(loaded)
    blender = blender_of(loaded, Plan(loaded, store).builder)
    chosen = [blend_named(blender.blends, name) for name in names or ()]
    return blender, chosen or [*blender.blends]


_HEADS = ("blend", "of", "built", "documents", "tokens", "test items", "of tokens", "most passes")


def _row(blender: Blender, declared: Blend) -> Sequence[str]:
    path = blend_manifest(blender.builder.store, declared.name)
    if not blender.is_current(declared):
        state = "out of date" if path.is_file() else "no"
        return (declared.name, declared.of, state, *("–" for _ in _HEADS[3:]))
    manifest = read_json(path)
    totals = manifest["totals"]
    return (
        declared.name,
        declared.of,
        "yes",
        *(f"{totals[name]:,}" for name in ("n_documents", "n_tokens", "n_test_texts")),
        percent(totals["n_test_tokens"] / max(totals["n_tokens"], 1)),
        f"{max(source['passes'] for source in manifest['sources']):g}",
    )
