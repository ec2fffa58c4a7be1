"""`decon-assets review` and its actions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from decon_assets.cli.review.session import Choice, open_session, say_queue, say_status, status_of
from decon_assets.terminal.options import (
    ConfigPath,
    ReportFile,
    action,
    argument,
    command_group,
    flag,
    names_in,
    option,
    optional,
    repeatable,
)
from decon_assets.terminal.output import say
from decon_core.config import detector_registry as registry
from decon_core.decisions.verdicts import (
    TAKEN_BACK,
    VERDICTS,
    Verdict,
    append_verdicts,
    read_lines,
)
from decon_core.errors import InputError, Problem
from decon_core.report.review.found import (
    Line,
    Order,
    ReviewFilter,
    future_dates,
    merge_verdicts,
)
from decon_core.report.review.sample import STRATA
from decon_core.wording import counted

_MOST_LISTED = 20
_VERDICT_NAMES = (*VERDICTS, TAKEN_BACK)

review_group = command_group()


def _detector(text: str) -> str:
    if text not in registry.names():
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(registry.names())}")
    return text


def _verdict_name(text: str) -> str:
    name = text.replace("-", " ").replace("_", " ").strip().lower()
    if name not in _VERDICT_NAMES:
        names = ", ".join(_VERDICT_NAMES)
        raise typer.BadParameter(
            f"{text!r} is not one of {names} (write common-source or quote it)"
        )
    return name


def _strata(text: str) -> str:
    names = names_in(text)
    if {*names} - {*STRATA} or len({*names}) < len(names):
        raise typer.BadParameter(
            f"{text!r} is not a comma-separated list of {', '.join(STRATA)}, each at most once"
        )
    return text


Benchmarks = Annotated[list[str], repeatable("only findings of this benchmark", "NAME")]
Sources = Annotated[list[str], repeatable("only findings in this source", "NAME")]
Documents = Annotated[list[str], repeatable("only findings in the document with this id", "ID")]
Detectors = Annotated[
    list[str],
    repeatable(
        f"only findings of this detector: {', '.join(registry.names())}",
        "NAME",
        parser=_detector,
    ),
]
Sample = Annotated[int | None, option("draw a random sample of N findings", "N", min=1)]
Stratify = Annotated[
    str,
    option(
        f"with --sample: comma-separated strata: {', '.join(STRATA)} (default benchmark,score)",
        "BY",
        parser=_strata,
    ),
]
Seed = Annotated[int, option("with --sample: random seed (default 0)", "N")]
Reviewer = Annotated[str | None, option("name of the reviewer (default: your login name)", "NAME")]
VerdictsFile = Annotated[
    Path | None, option("the verdicts file (default: the one in the configuration)", "FILE")
]


@review_group.callback(invoke_without_command=True)
def review(
    context: typer.Context,
    *,
    benchmark: Benchmarks,
    source: Sources,
    document: Documents,
    detector: Detectors,
    sample: Sample = None,
    stratify: Stratify = "benchmark,score",
    seed: Seed = 0,
    needs_review: bool = flag("--needs-review", "show only texts that need review"),
    order: Order | None = optional(
        "doubt: texts that need review, then closest to the threshold first (default); score: "
        "highest first; documents: most documents first (default with --sample: the order in "
        "which it was drawn)"
    ),
    unreviewed: bool = flag("--unreviewed", "show only texts without a verdict (default)"),
    also_reviewed: bool = flag("--all", "include texts that have a verdict"),
    list_as: Literal["table", "json"] | None = optional(
        "print the queue as a table or as JSON lines, and exit", "[table|json]", "--list"
    ),
    by: Reviewer = None,
    report: ReportFile = None,
    verdicts: VerdictsFile = None,
    config: ConfigPath,
) -> int:
    """Show matched texts one at a time, next to their benchmark items, and record verdicts.

    Use it to judge doubtful matches and to measure precision. Press a key to give a verdict:

      l leak            the training text contains the item or gives away
                        its answer
      t template        the two texts share only their form: instructions,
                        boilerplate, a list of options
      c common source   the two texts quote the same public text, but the
                        training text does not contain the question
      u unsure          these texts are not enough to decide

    Each verdict is immediately appended to verdicts.jsonl next to decon.toml. It applies to the
    item and the matched words, so it covers every document with the same words, including those
    that later scans find. `leak` makes the text a leak regardless of its score; `template` and
    `common source` clear it (see `clears` in [review]); `unsure` leaves the decision to the score.
    `decon-assets run` then rebuilds everything that a verdict changes. Verdicts from the report's
    page go into the same file. docs/review.md explains which verdict to choose.

    Examples:
      decon-assets review                           closest to the threshold first
      decon-assets review --needs-review            only texts that need review
      decon-assets review --order documents --benchmark gsm8k
      decon-assets review --sample 100              a random sample of leaks, to measure precision
      decon-assets review status --sample 100       its precision so far, with an interval
      decon-assets review --list json               the queue, for a script
      decon-assets review --document page-17        the matches in one document
      decon-assets review set 4f0c93a1 template --note "a form letter"
      decon-assets review set 4f0c93a1 none         withdraw a verdict
      decon-assets review import ~/Downloads/verdicts.jsonl

    A sample is drawn from the findings that are leaks by score. The same sample size, strata and
    seed draw the same findings again.

    Exit codes: 0 done; 2 invalid input.
    """
    if unreviewed and also_reviewed:
        raise InputError(Problem("review", "both --all and --unreviewed", "only one of them"))
    if needs_review and sample:
        expected = "only one of them: a sample is drawn from leaks by score, which need no review"
        raise InputError(Problem("review", "both --sample and --needs-review", expected))
    if context.invoked_subcommand:
        return 0
    from decon_assets.cli.review.screen import require_terminal, review_on_terminal

    choice = Choice(benchmark, source, document, detector, sample, names_in(stratify), seed)
    with open_session(config, report, verdicts, by) as session:
        queue = session.queue(
            choice, order, also_reviewed=also_reviewed, only_for_review=needs_review
        )
        if list_as:
            say_queue(queue, session, is_json=list_as == "json")
        elif queue:
            require_terminal()
            review_on_terminal(queue, session)
        else:
            say("nothing to review: every selected text has a verdict (--all shows them)")
    return 0


@action(review_group, "status")
def status(
    *,
    benchmark: Benchmarks,
    source: Sources,
    document: Documents,
    detector: Detectors,
    sample: Sample = None,
    stratify: Stratify = "benchmark,score",
    seed: Seed = 0,
    as_json: bool = flag("--json", "print JSON, for scripts"),
    report: ReportFile = None,
    verdicts: VerdictsFile = None,
    config: ConfigPath,
) -> int:
    """Show the progress of the review, and the precision of a sample.

    Examples:
      decon-assets review status
      decon-assets review status --sample 100
    """
    choice = Choice(benchmark, source, document, detector, sample, names_in(stratify), seed)
    with open_session(config, report, verdicts) as session:
        found = status_of(session, choice)
    if as_json:
        say(json.dumps(found, indent=1, sort_keys=True))
    else:
        say_status(found)
    return 0


@action(review_group, "set")
def set_verdict(
    text_id: str = argument("the id of a matched text, or a prefix of the id", "ID"),
    verdict: str = argument(
        f"{', '.join(VERDICTS)}, or {TAKEN_BACK} to withdraw a verdict",
        "VERDICT",
        parser=_verdict_name,
    ),
    *,
    note: str = option("a note to store with the verdict", "TEXT", default=""),
    match_type: Literal["exact", "equivalent", "subset", "superset", "related", "unrelated"]
    | None = optional("match type, as defined for `judge` (docs/judge.md)"),
    confidence: float | None = optional("your confidence, from 0 to 1", "SHARE", min=0, max=1),
    by: Reviewer = None,
    report: ReportFile = None,
    verdicts: VerdictsFile = None,
    config: ConfigPath,
) -> int:
    """Record a verdict without the interactive screen.

    Examples:
      decon-assets review set 4f0c93a1 template --note "a form letter"
      decon-assets review set 4f0c93a1 none         withdraw a verdict
      decon-assets review set 4f0c93a1 leak --match-type equivalent --confidence 0.9
    """
    with open_session(config, report, verdicts, by) as session:
        if verdict == TAKEN_BACK and (said := session.verdict_not_found(text_id)):
            session.withdraw(said)
            say(f"{said.pair} (not in this report): {verdict}. {session.next_step}")
            return 0
        found = session.find_text(text_id)
        session.append(found, verdict, note, match_type=match_type or "", confidence=confidence)
        items = f"{found.item}{session.report.also_in(found.text_id)}"
        say(f"{found.text_id} ({items}): {verdict}. {session.next_step}")
    return 0


@action(review_group, "import")
def import_verdicts(
    file: Path = argument("verdicts, one JSON object per line", "FILE"),
    *,
    report: ReportFile = None,
    verdicts: VerdictsFile = None,
    config: ConfigPath,
) -> int:
    """Add verdicts from a file, such as one saved from the report's page.

    Examples:
      decon-assets review import ~/Downloads/verdicts.jsonl
    """
    with open_session(config, report, verdicts) as session:
        if not file.is_file():
            expected = "verdicts, one JSON object per line"
            raise InputError(Problem(str(file), "no such file", expected))
        if session.file.is_file() and file.samefile(session.file):
            expected = "another file: verdicts are imported into this one"
            remedy = "Your browser saved the page's verdicts in its download folder"
            raise InputError(Problem(str(file), "the verdicts file itself", expected, remedy))
        lines = read_lines(file)
        InputError.raise_for(future_dates(file, lines))
        text_ids = [matched.text_id for matched in session.report.matched_texts(ReviewFilter())]
        merged = merge_verdicts(lines, session.verdicts, text_ids)
        if merged.lines:
            append_verdicts(session.file, merged.lines)
        counts = f"{merged.n_new} new, {merged.n_changed} changed, {merged.n_same} unchanged"
        n_texts = len({line["pair"] for line in lines})
        about = "" if n_texts == len(lines) else f" on {counted(n_texts, 'text')}"
        say(f"{counted(len(lines), 'line')}{about}: {counts}")
        if merged.older:
            say(f"{len(merged.older)} ignored: older than the current verdict on the same text")
            _say_disagreements(merged.older, "current")
        if merged.overruled:
            say(f"{len(merged.overruled)} with another verdict than before:")
            _say_disagreements(merged.overruled, "before")
        if merged.n_unknown:
            say(
                f"{merged.n_unknown} for texts that are not in this report: kept, and applied once "
                "such a text is found"
            )
        if merged.lines:
            say(session.next_step)
    return 0


def _say_disagreements(pairs: Sequence[tuple[Line, Verdict]], name: str) -> None:
    """List the texts whose imported verdict is another one than that of the file."""
    differing = [(line, other) for line, other in pairs if line["verdict"] != other.verdict]
    for line, other in differing[:_MOST_LISTED]:
        imported = _said(line["verdict"], line.get("by"), line.get("at"))
        say(f"  {line['pair']}: {imported}; {name}: {_said(other.verdict, other.by, other.at)}")
    if (more := len(differing) - _MOST_LISTED) > 0:
        say(f"  … and {more:,} more")


def _said(verdict: str, by: object, at: object) -> str:
    return f"{verdict} (by {by or 'unknown'}, {at or 'without a date'})"
