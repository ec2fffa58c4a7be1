"""`decon-assets judge`: annotate pairs by an endpoint or a file, and show what is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decon_assets.features.endpoints import (
    ask_with_progress,
    require_endpoint,
    say_cost,
    token_counter,
)
from decon_assets.terminal.options import (
    ConfigPath,
    action,
    argument,
    command_group,
    flag,
    option,
    repeatable,
)
from decon_assets.terminal.output import say, say_table, warn
from decon_core.config.load import Config, load_config
from decon_core.config.open_store import open_store
from decon_core.decisions.annotations import (
    Annotations,
    append_annotations,
    labels_of,
    merge_annotations,
    read_annotations,
)
from decon_core.decisions.verdicts import Verdicts, read_verdicts
from decon_core.errors import InputError, MissingError, Problem
from decon_core.features.judge.settings import Judge, annotations_path, judge_settings
from decon_core.storage.drafts import locked_or_refused
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.decisions.candidates import Candidate
    from decon_core.features.endpoints.chat import Outcome, Spent
    from decon_core.features.endpoints.requests import Prompt, Request
    from decon_core.features.judge.judging import Plan
    from decon_core.report.review.found import Report

judge_group = command_group()

Benchmarks = Annotated[list[str], repeatable("only pairs of this benchmark", "NAME")]
Detectors = Annotated[
    list[str],
    repeatable("only pairs of this detector, or of this file of candidates", "NAME"),
]
Sample = Annotated[
    int | None,
    option("only N pairs, drawn fairly over benchmarks, detectors and scores", "N", min=1),
]
Seed = Annotated[int, option("seed of the draw (default 0)", "N")]
ReportFile = Annotated[
    Path | None, option("a report's database (default: the report of the configuration)", "FILE")
]


@dataclass(frozen=True)
class Desk:
    """What is to be judged, and what is judged already."""

    config: Config
    report: Report | None
    annotations: Annotations
    verdicts: Verdicts

    @property
    def settings(self) -> Judge:
        return judge_settings(self.config)

    def candidates(self, benchmarks: Sequence[str], detectors: Sequence[str]) -> list[Candidate]:
        """Return the candidates of the report and of files that the options select."""
        from decon_core.decisions.candidates import read_candidates
        from decon_core.report.review.candidates import candidates_in

        chosen = self.settings.detectors
        wanted = [*detectors] or [*chosen]
        found: list[Candidate] = []
        if self.report:
            found += candidates_in(self.report, benchmarks=benchmarks, detectors=wanted)
        for name in self.settings.candidates:
            found += [
                candidate
                for candidate in read_candidates(self.config.folder / name)
                if (not benchmarks or candidate.benchmark in benchmarks)
                and (not detectors or candidate.detector in detectors)
            ]
        _require_known("--detector", detectors, {one.detector for one in found})
        _require_known("--benchmark", benchmarks, {one.benchmark for one in found})
        return found


def _require_known(name: str, given: Sequence[str], found: Collection[str]) -> None:
    """Raise InputError for names that no pair has."""
    if unknown := [one for one in given if one not in found]:
        raise InputError(
            Problem(name, f"{one!r}: no pair of it", "a name that `judge status` lists")
            for one in unknown
        )


@contextmanager
def _open_desk(config: Path, report: Path | None) -> Iterator[Desk]:
    """Open a report, the annotations and the verdicts; without a report, files may do."""
    from decon_core.report.review.found import open_report

    loaded = load_config(config)
    path = report or open_store(loaded).report
    annotations = read_annotations(annotations_path(loaded))
    verdicts = read_verdicts(loaded.verdicts, clears=loaded.review.clears)
    if judge_settings(loaded).candidates and not report and not path.is_file():
        yield Desk(loaded, None, annotations, verdicts)
        return
    with open_report(path) as opened:
        if notice := opened.coverage().notice:
            warn(notice)
        yield Desk(loaded, opened, annotations, verdicts)


@judge_group.callback(invoke_without_command=True)
def judge(
    context: typer.Context,
    *,
    benchmark: Benchmarks,
    detector: Detectors,
    sample: Sample = None,
    seed: Seed = 0,
    also_reviewed: bool = flag("--all", "also pairs with a verdict of a person"),
    dry_run: bool = flag("--dry-run", "say what would be asked and how much that is; send nothing"),
    report: ReportFile = None,
    config: ConfigPath,
) -> int:
    """Have pairs of a benchmark item and a training text judged by a language model.

    Each pair is annotated: whether the text states the item's task (`is_sd`), how sure that is, the
    kind of match (exact, equivalent, subset, superset, related, unrelated) and why. The endpoint,
    the model and the limits are in [judge] of decon.toml; any OpenAI-compatible server will do.

    An annotation removes nothing: a person's verdict always counts instead of it. It is shown in
    the report and in `decon-assets review`, and it is what the probability of a leak by score is
    estimated from. docs/judge.md explains both.

    Every answer is saved in annotations.jsonl at once, by what was asked: nothing is asked twice,
    also after the command was killed. What fails is tried again, then counted as unjudged; run the
    command again for these.

    The text around a match is sent to the endpoint. With `snippets = "off"` under [report] the
    report has none, and only pairs of `candidates` can be judged.

    Examples:
      decon-assets judge --dry-run              requests and tokens, before anything is sent
      decon-assets judge --sample 200           a fair sample, for the calibration
      decon-assets judge --detector decon --benchmark gsm8k
      decon-assets judge status                 what is judged by whom, and whether they agree
      decon-assets judge import judged.jsonl    annotations that someone else made

    Exit codes: 0 everything selected is judged, 1 something is not, 2 an input is wrong or the
    endpoint refuses all requests.
    """
    if context.invoked_subcommand:
        return 0
    from decon_core.decisions.candidates import in_fair_order

    with _open_desk(config, report) as desk:
        prompt = _prompt_of(desk.config)
        pairs = in_fair_order(desk.candidates(benchmark, detector), seed=seed)[:sample]
        if not dry_run:
            key = require_endpoint(desk.settings, desk.config.path, docs="docs/judge.md")
            with locked_or_refused(_lock_of(desk.config), "another `decon-assets judge`"):
                # Another command may have asked until now.
                current = replace(desk, annotations=read_annotations(annotations_path(desk.config)))
                plan = _plan(current, pairs, prompt, also_reviewed=also_reviewed)
                return _ask(plan, current, prompt, key)
        _say_plan(_plan(desk, pairs, prompt, also_reviewed=also_reviewed), desk.config)
        say("nothing was sent")
    return 0


def _lock_of(config: Config) -> Path:
    return annotations_path(config).with_name(f".{annotations_path(config).name}.lock")


def _prompt_of(config: Config) -> Prompt:
    from decon_core.features.judge.judging import load_prompt

    prompt = judge_settings(config).prompt
    return load_prompt(config.folder / prompt if prompt else None)


def _plan(
    desk: Desk, pairs: Sequence[list[Candidate]], prompt: Prompt, *, also_reviewed: bool
) -> Plan:
    from decon_core.features.judge.judging import plan_requests
    from decon_core.report.review.candidates import with_texts

    return plan_requests(
        with_texts(desk.report, pairs),
        prompt,
        desk.settings,
        desk.annotations,
        decided=() if also_reviewed else desk.verdicts.by_pair,
        count_tokens=token_counter(),
    )


def _say_plan(plan: Plan, config: Config) -> None:
    """Print what is judged already, what is left to ask, and what the limits allow."""
    say(f"{counted(plan.n_pairs, 'pair')} selected")
    if plan.n_by_people:
        say(f"  {plan.n_by_people:,} with a verdict of a person: not asked (--all asks)")
    if plan.n_answered:
        say(f"  {plan.n_answered:,} answered before: not asked again")
    for reason, n in sorted(plan.without_text.items()):
        say(f"  {n:,} cannot be judged: {reason}")
    say_cost(plan.requests, plan.n_to_ask, judge_settings(config))


def _ask(plan: Plan, desk: Desk, prompt: Prompt, key: str | None) -> int:
    """Ask the requests of a plan, and save each answer at once; return the exit code."""
    from decon_core.features.judge.judging import JUDGING, annotations_of

    config, settings = desk.config, desk.settings
    append_annotations(annotations_path(config), plan.copied)
    _say_plan(plan, config)
    result = _Result()

    def save(request: Request, outcome: Outcome) -> None:
        said = outcome.judgement or {"unjudged": outcome.unjudged}
        at = datetime.now(UTC).isoformat(timespec="seconds")
        lines = annotations_of(request, settings, prompt, at=at, said=said)
        append_annotations(annotations_path(config), lines)
        result.add(outcome, len(request.pairs))

    spent = ask_with_progress(plan.requests, settings, save, key=key, task=JUDGING)
    if plan.requests:
        result.say(spent)
    if n_left := plan.n_to_ask - result.n_asked:
        result.reasons[f"not asked: {spent.stopped}"] += n_left
    _say_unjudged(result.reasons + plan.without_text)
    if result.n_asked or plan.copied:
        say(f"Saved in {annotations_path(config)}; `decon-assets run` brings it into the report")
    return 1 if result.reasons or plan.without_text else 0


@dataclass
class _Result:
    """Counts of the pairs that were asked about."""

    kinds: Counter[bool] = field(default_factory=Counter)  # whether they are duplicates
    reasons: Counter[str] = field(default_factory=Counter)  # why they are unjudged

    @property
    def n_asked(self) -> int:
        return self.kinds.total() + self.reasons.total()

    def add(self, outcome: Outcome, n_pairs: int) -> None:
        if outcome.judgement:
            self.kinds[outcome.judgement["is_sd"]] += n_pairs
        else:
            self.reasons[outcome.unjudged] += n_pairs

    def say(self, spent: Spent) -> None:
        sent = f"{counted(spent.n_requests, 'request')}, {counted(spent.n_tokens, 'token')}"
        found = f"{self.kinds[True]:,} duplicates, {self.kinds[False]:,} others"
        say(f"{sent}: {counted(self.kinds.total(), 'pair')} judged ({found})")


def _say_unjudged(reasons: Counter[str]) -> None:
    if not reasons:
        return
    say(f"{counted(reasons.total(), 'pair')} unjudged, which does not mean clean:")
    for reason, n in sorted(reasons.items(), key=lambda one: (-one[1], one[0])):
        say(f"  {n:,}: {reason}")


@action(judge_group, "status")
def status(
    *,
    benchmark: Benchmarks,
    detector: Detectors,
    report: ReportFile = None,
    config: ConfigPath,
) -> int:
    """Show how many pairs are judged, by whom, and whether people and models agree.

    Examples:
      decon-assets judge status
      decon-assets judge status --detector decon
    """
    with _open_desk(config, report) as desk:
        candidates = desk.candidates(benchmark, detector)
        labels = labels_of(desk.verdicts.labels, desk.annotations)
        heads = ("detector", "benchmark", "pairs", "duplicates", "others", "by people")
        counts: dict[tuple[str, str], Counter[str]] = {}
        for candidate in candidates:
            label, counter = labels.get(candidate.pair), Counter[str](n=1)
            if label is None or label.is_sd is None:
                counter["unjudged"] = 1
            else:
                counter["duplicate" if label.is_sd else "other"] = counter[label.kind] = 1
            counts.setdefault((candidate.detector, candidate.benchmark), Counter()).update(counter)
        names = ("n", "duplicate", "other", "person", "file", "model", "unjudged")
        rows = [(*key, *(one[name] for name in names)) for key, one in sorted(counts.items())]
        say_table((*heads, "by files", "by models", "unjudged"), rows)
        _say_failures(desk.annotations, {candidate.pair for candidate in candidates})
        _say_agreement(desk)
    return 0


def _say_failures(annotations: Annotations, pairs: Iterable[str]) -> None:
    current = annotations.by_pair("model")
    reasons = Counter(
        current[pair].unjudged for pair in pairs if pair in current and current[pair].unjudged
    )
    for reason, n in sorted(reasons.items()):
        say(f"{counted(n, 'pair')} unjudged by the model: {reason}")


def _say_agreement(desk: Desk) -> None:
    """Print how often a model agrees with a person or a file on the same pair."""
    model = desk.annotations.by_pair("model")
    others = labels_of(desk.verdicts.labels, desk.annotations)
    both = [
        (bool(other.is_sd), bool(model[pair].is_sd))
        for pair, other in others.items()
        if other.kind != "model" and pair in model and None not in (other.is_sd, model[pair].is_sd)
    ]
    if not both:
        return
    n = sum(one == by_model for one, by_model in both)
    say(
        f"\nthe model agrees with people or files on {n:,} of {counted(len(both), 'pair')}; "
        f"{sum(one and not by_model for one, by_model in both):,} it takes for others, "
        f"{sum(by_model and not one for one, by_model in both):,} wrongly for duplicates"
    )


@action(judge_group, "import")
def import_annotations(
    file: Path = argument("annotations, one JSON object per line", "FILE"),
    *,
    config: ConfigPath,
) -> int:
    """Add annotations that someone else made: another machine, a crowd, another program.

    A line has `is_sd` and `match_type`, and `pair` and `fingerprint` as in the report or both texts
    (docs/judge.md). Importing a file again changes nothing.

    Examples:
      decon-assets judge import judged.jsonl
    """
    from decon_core.decisions.candidates import read_annotated

    loaded = load_config(config)
    if not file.is_file():
        raise MissingError(Problem(str(file), "no such file", "annotations, one object per line"))
    lines = read_annotated(file)
    merged = merge_annotations(lines, read_annotations(annotations_path(loaded)))
    append_annotations(annotations_path(loaded), merged.lines)
    say(f"{counted(len(lines), 'line')}: {len(merged.lines):,} new, {merged.n_same:,} known")
    if merged.lines:
        say(f"Saved in {annotations_path(loaded)}; `decon-assets run` brings it into the report")
    return 0
