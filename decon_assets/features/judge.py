"""`decon-assets judge`: annotate pairs by an endpoint or a file, and show what is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    ReportFile,
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
    new_annotations,
    read_annotations,
)
from decon_core.decisions.verdicts import Verdicts, read_verdicts
from decon_core.errors import InputError, MissingError, Problem
from decon_core.features.judge.settings import Judge, annotations_path, judge_settings
from decon_core.storage.drafts import locked_or_refused
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.decisions.candidates import Candidate
    from decon_core.features.endpoints.chat import Outcome
    from decon_core.features.endpoints.requests import Prompt, Request
    from decon_core.features.judge.judging import Plan
    from decon_core.report.review.found import Report

judge_group = command_group()

Benchmarks = Annotated[list[str], repeatable("only pairs of this benchmark", "NAME")]
Detectors = Annotated[
    list[str],
    repeatable("only pairs from this detector, or from this candidates file", "NAME"),
]
Sample = Annotated[
    int | None,
    option("judge only N pairs, spread evenly over benchmarks, detectors and scores", "N", min=1),
]
Seed = Annotated[int, option("random seed (default 0)", "N")]


@dataclass(frozen=True)
class Desk:
    """The pairs to judge, and the judgements so far."""

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
        from decon_core.report.review.found import candidates_in

        chosen = [*detectors] or [*self.settings.detectors]
        candidates: list[Candidate] = []
        if self.report:
            candidates += candidates_in(self.report, benchmarks=benchmarks, detectors=chosen)
        for name in self.settings.candidates:
            candidates += [
                candidate
                for candidate in read_candidates(self.config.folder / name)
                if (not benchmarks or candidate.benchmark in benchmarks)
                and (not detectors or candidate.detector in detectors)
            ]
        _require_known("--detector", detectors, {pair.detector for pair in candidates})
        _require_known("--benchmark", benchmarks, {pair.benchmark for pair in candidates})
        return candidates


def _require_known(option: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise InputError for names that no pair has."""
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            Problem(option, f"{name!r}, which has no pairs", "a name that `judge status` lists")
            for name in unknown
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
    also_reviewed: bool = flag("--all", "also judge pairs that have a person's verdict"),
    dry_run: bool = flag("--dry-run", "print the number of requests and tokens, and send nothing"),
    report: ReportFile = None,
    config: ConfigPath,
) -> int:
    """Have a language model judge pairs of a benchmark item and a training text.

    An annotation records whether the text is a semantic duplicate of the item (`is_sd`: it states
    the item's task), the model's confidence, the kind of match (exact, equivalent, subset,
    superset, related, unrelated) and the reason. Set the endpoint, the model and the limits under
    [judge] in decon.toml; any OpenAI-compatible server works.

    An annotation decides only if the score alone does not prove a leak, and a person's verdict
    always overrides it. Annotations are also used to estimate the probability of a leak by score
    (docs/judge.md).

    Every answer is saved in annotations.jsonl immediately, so you can stop the command and run it
    again. Pairs whose request keeps failing count as unjudged; run the command again to judge them.

    The text around a match is sent to the endpoint. With `snippets = "off"` under [report], the
    report contains no text, and only pairs from `candidates` can be judged.

    Examples:
      decon-assets judge --dry-run              requests and tokens, before anything is sent
      decon-assets judge --sample 200           pairs of all scores, for the calibration
      decon-assets judge --detector decon --benchmark gsm8k
      decon-assets judge status                 what is judged by whom, and whether they agree
      decon-assets judge import judged.jsonl    annotations that someone else made

    Exit codes: 0 all selected pairs are judged; 1 some are not; 2 invalid input, or the endpoint
    refuses all requests.
    """
    if context.invoked_subcommand:
        return 0
    from decon_core.decisions.candidates import in_fair_order
    from decon_core.features.judge.judging import load_judge_prompt

    with _open_desk(config, report) as desk:
        template = desk.settings.prompt
        prompt = load_judge_prompt(desk.config.folder / template if template else None)
        pairs = in_fair_order(desk.candidates(benchmark, detector), seed=seed)[:sample]
        if not dry_run:
            key = require_endpoint(desk.settings, desk.config.path, docs="docs/judge.md")
            file = annotations_path(desk.config)
            lock = file.with_name(f".{file.name}.lock")
            with locked_or_refused(lock, "another `decon-assets judge`"):
                # Another command may have asked until now.
                current = replace(desk, annotations=read_annotations(file))
                plan = _plan(current, pairs, prompt, also_reviewed=also_reviewed)
                return _ask(plan, current, prompt, key)
        _say_plan(_plan(desk, pairs, prompt, also_reviewed=also_reviewed), desk.config)
        say("nothing was sent")
    return 0


def _plan(
    desk: Desk, pairs: Sequence[list[Candidate]], prompt: Prompt, *, also_reviewed: bool
) -> Plan:
    from decon_core.features.judge.judging import plan_requests
    from decon_core.report.review.found import with_texts

    return plan_requests(
        with_texts(desk.report, pairs),
        prompt,
        desk.settings,
        desk.annotations,
        decided=() if also_reviewed else desk.verdicts.by_text,
        count_tokens=token_counter(),
    )


def _say_plan(plan: Plan, config: Config) -> None:
    """Print what is judged already, what is left to ask, and what the limits allow."""
    say(f"{counted(plan.n_pairs, 'pair')} selected")
    if plan.n_by_people:
        say(f"  {plan.n_by_people:,} with a person's verdict: not asked (--all includes them)")
    if plan.n_answered:
        say(f"  {plan.n_answered:,} already answered: not asked again")
    for reason, n in sorted(plan.without_text.items()):
        say(f"  {n:,} cannot be judged: {reason}")
    say_cost(plan.requests, plan.n_to_ask, judge_settings(config))


def _ask(plan: Plan, desk: Desk, prompt: Prompt, key: str | None) -> int:
    """Ask the requests of a plan, and save each answer at once; return the exit code."""
    from decon_core.features.judge.judging import JUDGING, annotations_of

    settings, file = desk.settings, annotations_path(desk.config)
    append_annotations(file, plan.copied)
    _say_plan(plan, desk.config)
    kinds: Counter[bool] = Counter()  # whether judged pairs are duplicates
    reasons: Counter[str] = Counter()  # why pairs are unjudged

    def save(request: Request, outcome: Outcome) -> None:
        said = outcome.judgement or {"unjudged": outcome.unjudged}
        at = datetime.now(UTC).isoformat(timespec="seconds")
        append_annotations(file, annotations_of(request, settings, prompt, at=at, said=said))
        if outcome.judgement:
            kinds[outcome.judgement["is_sd"]] += len(request.pairs)
        else:
            reasons[outcome.unjudged] += len(request.pairs)

    spent = ask_with_progress(plan.requests, settings, save, key=key, task=JUDGING)
    if plan.requests:
        sent = f"{counted(spent.n_requests, 'request')}, {counted(spent.n_tokens, 'token')}"
        judged = f"{kinds[True]:,} duplicates, {kinds[False]:,} others"
        say(f"{sent}: {counted(kinds.total(), 'pair')} judged ({judged})")
    if n_left := plan.n_to_ask - kinds.total() - reasons.total():
        reasons[f"not asked: {spent.stopped}"] += n_left
    unjudged = reasons + plan.without_text
    if unjudged:
        say(f"{counted(unjudged.total(), 'pair')} unjudged, which does not mean clean:")
    for reason, n in sorted(unjudged.items(), key=lambda item: (-item[1], item[0])):
        say(f"  {n:,}: {reason}")
    if kinds or reasons or plan.copied:
        say(f"Saved in {file}; update the report with `decon-assets run`")
    return 1 if unjudged else 0


_STATUS_HEADS = (
    "detector", "benchmark", "pairs", "duplicates", "others", "by people", "by files", "by models",
    "unjudged",
)  # fmt: skip


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
        counts: dict[tuple[str, str], Counter[str]] = {}
        for candidate in candidates:
            label, counter = labels.get(candidate.pair), Counter[str](n=1)
            if label is None or label.is_sd is None:
                counter["unjudged"] = 1
            else:
                counter["duplicate" if label.is_sd else "other"] = counter[label.kind] = 1
            counts.setdefault((candidate.detector, candidate.benchmark), Counter()).update(counter)
        names = ("n", "duplicate", "other", "person", "file", "model", "unjudged")
        rows = [(*key, *(count[name] for name in names)) for key, count in sorted(counts.items())]
        say_table(_STATUS_HEADS, rows)
        by_model = desk.annotations.by_pair("model")
        pairs = {candidate.pair for candidate in candidates} & by_model.keys()
        reasons = Counter(by_model[pair].unjudged for pair in pairs if by_model[pair].unjudged)
        for reason, n in sorted(reasons.items()):
            say(f"{counted(n, 'pair')} unjudged by the model: {reason}")
        _say_agreement(desk)
    return 0


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
    n = Counter(both)
    say(
        f"\nthe model agrees with people or files on {n[True, True] + n[False, False]:,} of "
        f"{counted(len(both), 'pair')}; duplicates missed: {n[True, False]:,}, other pairs "
        f"called duplicates: {n[False, True]:,}"
    )


@action(judge_group, "import")
def import_annotations(
    file: Path = argument("annotations, one JSON object per line", "FILE"),
    *,
    config: ConfigPath,
) -> int:
    """Add annotations made elsewhere: on another machine, by crowd workers, or by another program.

    Each line has `is_sd` and `match_type`, and either `pair` and `fingerprint` from the report or
    both texts (docs/judge.md). Importing a file again changes nothing.

    Examples:
      decon-assets judge import judged.jsonl
    """
    from decon_core.decisions.candidates import read_annotated

    saved = annotations_path(load_config(config))
    if not file.is_file():
        raise MissingError(Problem(str(file), "no such file", "annotations, one object per line"))
    lines = read_annotated(file)
    new = new_annotations(lines, read_annotations(saved))
    append_annotations(saved, new)
    n_known = len(lines) - len(new)
    say(f"{counted(len(lines), 'line')}: {len(new):,} new, {n_known:,} repeated or already known")
    said = {(line.pair, line.is_sd) for line in lines if line.is_sd is not None}
    if n_both := len(said) - len({pair for pair, _ in said}):
        say(f"{counted(n_both, 'pair')} judged both ways in this file: the last line counts")
    if new:
        say(f"Saved in {saved}; update the report with `decon-assets run`")
    return 0
