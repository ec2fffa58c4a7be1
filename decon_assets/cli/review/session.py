"""What is reviewed: an open report, the file of verdicts, and the texts that the options select."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from decon_assets.terminal.output import say, say_table, warn
from decon_core.config.load import Review, load_config
from decon_core.config.open_store import open_store
from decon_core.config.validation import did_you_mean
from decon_core.decisions.annotations import (
    ANNOTATIONS_FILE,
    Annotation,
    labels_of,
    read_annotations,
)
from decon_core.decisions.verdicts import (
    TAKEN_BACK,
    Verdict,
    Verdicts,
    append_verdicts,
    read_verdicts,
)
from decon_core.errors import InputError, Problem
from decon_core.planner import evidence_of

if TYPE_CHECKING:
    from decon_core.report.review.found import MatchedText, Report, ReviewFilter
    from decon_core.report.review.sample import Stratum

Order = Literal["doubt", "score", "documents"]


@dataclass(frozen=True)
class Choice:
    """The matched texts that the options select, and the sample to draw from their findings."""

    benchmarks: Sequence[str]
    sources: Sequence[str]
    documents: Sequence[str]
    detectors: Sequence[str]
    sample: int | None
    strata: Sequence[str]
    seed: int


@dataclass(frozen=True)
class Session:
    """An open report, and the file of verdicts."""

    report: Report
    file: Path
    verdicts: Verdicts
    by: str | None
    labels: Mapping[str, Annotation]  # The labels of files and models by matched text.
    is_configured: bool = True  # whether `decon-assets run` reads this file

    @property
    def next_step(self) -> str:
        apply = "apply with `decon-assets run`"
        if not self.is_configured:
            apply = (
                "`decon-assets run` applies the file that decon.toml names under [review], and a "
                "scan applies the file of its --verdicts"
            )
        return f"Saved in {self.file}; {apply}"

    def append(
        self,
        matched: MatchedText,
        verdict: str,
        note: str,
        *,
        match_type: str = "",
        confidence: float | None = None,
    ) -> None:
        from decon_core.report.review.merge import verdict_line

        said = {"note": note, "match_type": match_type, "confidence": confidence}
        append_verdicts(self.file, [verdict_line(matched, verdict, **self._who(), **said)])

    def withdraw(self, said: Verdict) -> None:
        """Withdraw a verdict on a text that the report does not have."""
        line = {"pair": said.pair, "fingerprint": said.fingerprint, "verdict": TAKEN_BACK}
        append_verdicts(self.file, [{**line, **self._who()}])

    def _who(self) -> dict[str, str]:
        at, by = datetime.now(UTC).isoformat(timespec="seconds"), self.by or ""
        if self.by is None:
            with suppress(OSError, KeyError):  # the user has no name, as in many containers
                by = getpass.getuser()
        return {"by": by, "at": at}

    def verdict_not_found(self, start: str) -> Verdict | None:
        """Return the only verdict whose id begins with `start` if the report has no such text."""
        said = [one for text, one in self.verdicts.by_text.items() if text.startswith(start)]
        return said[0] if len(said) == 1 and not self.report.ids_starting_with(start) else None

    def find_text(self, start: str) -> MatchedText:
        """Return the matched text whose id begins with `start`; raise InputError for several."""
        from decon_core.report.review.found import MatchedText

        keys = self.report.ids_starting_with(start)
        if len(keys) > 1 and start not in keys:
            expected = f"a longer prefix, of only one of {', '.join(keys)}"
            raise InputError(Problem(f"id {start!r}", "a prefix of several ids", expected))
        matched = self.report.matched_text(start if start in keys or not keys else keys[0])
        return MatchedText(**{name: matched[name] for name in MatchedText.__dataclass_fields__})

    def matched_texts(self, choice: Choice) -> list[MatchedText]:
        """Return the matched texts of a choice; raise InputError for unknown names."""
        return self.report.matched_texts(self._filter(choice))

    def drawn(self, choice: Choice) -> list[Stratum]:
        """Draw the sample of a choice from its findings; nothing if it has none."""
        from decon_core.report.review.sample import draw

        if not choice.sample:
            return []
        findings = self.report.findings(self._filter(choice))
        return draw(findings, choice.sample, by=tuple(choice.strata), seed=choice.seed)

    def queue(
        self,
        choice: Choice,
        order: Order | None,
        *,
        also_reviewed: bool,
        only_for_review: bool = False,
    ) -> list[MatchedText]:
        from decon_core.report.review.found import (
            ReviewFilter,
            sort_texts,
            texts_of_findings,
            without_verdict,
        )
        from decon_core.report.review.sample import in_order_of_draw

        if choice.sample:
            findings = in_order_of_draw(self.drawn(choice), choice.seed)
            queue = texts_of_findings(self.report.matched_texts(ReviewFilter()), findings)
        else:
            queue = self.matched_texts(choice)
        if only_for_review:
            queue = [matched for matched in queue if matched.needs_review]
        if order or not choice.sample:
            queue = sort_texts(queue, order or "doubt", self.report.policy())
        return queue if also_reviewed else without_verdict(queue, self.verdicts)

    def _filter(self, choice: Choice) -> ReviewFilter:
        from decon_core.report.review.found import ReviewFilter

        problems = []
        for column, names in (("benchmark", choice.benchmarks), ("source", choice.sources)):
            known = self.report.names(column) if names else []
            for name in names:
                if name not in known:
                    expected = f"one with matches: {', '.join(known)}"
                    remedy = did_you_mean(name, known)
                    problems.append(Problem(f"--{column}", repr(name), expected, remedy))
        InputError.raise_for(problems)
        names = ("benchmarks", "sources", "detectors", "documents")
        return ReviewFilter(**{name: tuple(getattr(choice, name)) for name in names})


@contextmanager
def open_session(
    config: Path, report: Path | None, verdicts: Path | None, by: str | None = None
) -> Iterator[Session]:
    """Open a report and its verdicts; with a report given, no configuration is needed."""
    from decon_core.report.review.found import open_report

    is_configured = False
    if report and (verdicts or not config.is_file()):
        file = verdicts or Path(Review.verdicts)
        annotations = read_annotations(file.with_name(ANNOTATIONS_FILE))
    else:
        loaded = load_config(config)
        report = report or open_store(loaded).report
        file = verdicts or loaded.verdicts
        is_configured = file.resolve() == loaded.verdicts.resolve()
        annotations = evidence_of(loaded).annotations
    read = read_verdicts(file)  # report a broken file before the review starts
    labels = labels_of({}, annotations)
    with open_report(report) as opened:
        if notice := opened.coverage().notice:
            warn(notice)
        yield Session(opened, file, read, by, labels, is_configured)


def say_queue(queue: Sequence[MatchedText], session: Session, *, is_json: bool) -> None:
    """Print a queue as a table, or as JSON lines."""
    from decon_core.report.review.show import inert

    now = {text_id: verdict.verdict for text_id, verdict in session.verdicts.by_text.items()}
    rows = [replace(matched, verdict=now.get(matched.text_id)) for matched in queue]
    if is_json:
        for row in rows:
            documents = [asdict(place) for place in session.report.documents(row.text_id)]
            say(json.dumps({**asdict(row), "documents": documents}))
        return
    heads = ("id", "score", "class", "documents", "verdict", "detectors", "item", "first place")
    cells = [
        (
            row.text_id,
            f"{row.score:.3f}",
            row.called,
            row.n_documents,
            row.verdict,
            row.detectors,
            inert(f"{row.item}{session.report.also_in(row.text_id)}"),
            inert(f"{row.source}/{row.shard_name} row {row.row}"),
        )
        for row in rows
    ]
    say_table(heads, cells)
