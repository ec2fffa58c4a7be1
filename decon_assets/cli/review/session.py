"""What is reviewed, and how far: an open report, the file of verdicts, and the chosen texts."""

from __future__ import annotations

import getpass
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from decon_assets.terminal.output import say, say_rows, say_table, warn
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
    VERDICTS,
    Verdict,
    Verdicts,
    append_verdicts,
    read_lines,
    read_verdicts,
)
from decon_core.errors import InputError, Problem
from decon_core.planner import evidence_of
from decon_core.report.review.found import (
    MatchedText,
    Order,
    Report,
    ReviewFilter,
    open_report,
    sort_texts,
    texts_of_findings,
    verdict_line,
    without_verdict,
)
from decon_core.report.review.sample import Stratum, draw, estimate, in_order_of_draw, tally
from decon_core.report.review.show import inert
from decon_core.wording import counted, verdicts_not_found


@dataclass(frozen=True)
class Choice(ReviewFilter):
    """The matched texts that the options select, and the sample to draw from their findings."""

    sample: int | None = None
    strata: Sequence[str] = ()
    seed: int = 0


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
        keys = self.report.ids_starting_with(start)
        if len(keys) > 1 and start not in keys:
            found = f"several ids begin with this: {', '.join(keys)}"
            raise InputError(Problem(f"id {start!r}", found, remedy="give more of the id"))
        matched = self.report.matched_text(start if start in keys or not keys else keys[0])
        return MatchedText(**{name: matched[name] for name in MatchedText.__dataclass_fields__})

    def matched_texts(self, choice: Choice) -> list[MatchedText]:
        """Return the matched texts of a choice; raise InputError for unknown names."""
        return self.report.matched_texts(self._checked(choice))

    def drawn(self, choice: Choice) -> list[Stratum]:
        """Draw the sample of a choice from its findings; nothing if it has none."""
        if not choice.sample:
            return []
        findings = self.report.findings(self._checked(choice))
        return draw(findings, choice.sample, by=choice.strata, seed=choice.seed)

    def queue(
        self,
        choice: Choice,
        order: Order | None,
        *,
        also_reviewed: bool,
        only_for_review: bool = False,
    ) -> list[MatchedText]:
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

    def _checked(self, choice: Choice) -> Choice:
        problems = []
        for column, names in (("benchmark", choice.benchmarks), ("source", choice.sources)):
            known = self.report.names(column) if names else []
            for name in names:
                if name not in known:
                    expected = f"one that has matches: {', '.join(known)}"
                    remedy = did_you_mean(name, known)
                    problems.append(Problem(f"--{column}", repr(name), expected, remedy))
        InputError.raise_for(problems)
        return choice


@contextmanager
def open_session(
    config: Path, report: Path | None, verdicts: Path | None, by: str | None = None
) -> Iterator[Session]:
    """Open a report and its verdicts; with a report given, no configuration is needed."""
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


Json = dict[str, Any]

_ITEM = ("benchmark", "split", "instance_index")


def status_of(session: Session, choice: Choice) -> Json:
    """Count the texts of a choice and their verdicts, and estimate the precision of a sample."""
    now = {text_id: verdict.verdict for text_id, verdict in session.verdicts.by_text.items()}
    texts = session.matched_texts(choice)
    progress = {}
    others = session.report.other_items
    benchmarks = {
        matched.text_id: {
            matched.benchmark,
            *(row["benchmark"] for row in others.get(matched.text_id, ())),
        }
        for matched in texts
    }
    for name in sorted(set(choice.benchmarks) or set().union(*benchmarks.values())):
        found = [matched for matched in texts if name in benchmarks[matched.text_id]]
        said = Counter(now[matched.text_id] for matched in found if matched.text_id in now)
        progress[name] = {
            "n_texts": len(found),
            "n_leaks_by_score": sum(matched.is_by_score for matched in found),
            "n_reviewed": said.total(),
            "said": {verdict: said[verdict] for verdict in VERDICTS},
        }
    sample = None
    if choice.sample:
        tallies = [tally(stratum, session.verdicts) for stratum in session.drawn(choice)]
        sample = {
            "n": choice.sample,
            "stratify": choice.strata,
            "seed": choice.seed,
            "strata": [asdict(tally) for tally in tallies],
            "precision": asdict(estimate(tallies)) if tallies else None,
        }
    known = {matched.text_id for matched in session.report.matched_texts(ReviewFilter())}
    return {
        "matched_texts": progress,
        "not_in_report": _not_in_report(session, now.keys() - known),
        "not_in_mixtures_yet": sum(
            matched.verdict != now.get(matched.text_id) for matched in texts
        ),
        "sample": sample,
    }


def _not_in_report(session: Session, text_ids: Collection[str]) -> list[Json]:
    """Return the verdicts on these texts, with the texts that are now found in their places."""
    lines = read_lines(session.file) if text_ids else []
    return [
        {
            "id": text_id,
            "verdict": line["verdict"],
            "by": line.get("by", ""),
            "item": " ".join(str(line.get(name, "")) for name in _ITEM).strip(),
            "place": f"{line['shard']} row {line.get('row')}" if "shard" in line else "",
            "found there now": ", ".join(session.report.texts_at(line)),
        }
        for text_id, line in {line["pair"]: line for line in lines}.items()
        if text_id in text_ids
    ]


def say_status(status: Json) -> None:
    counts = ("n_texts", "n_leaks_by_score", "n_reviewed")
    rows = [
        (name, *(row[count] for count in counts), *row["said"].values())
        for name, row in status["matched_texts"].items()
    ]
    say_table(("benchmark", "texts", "leaks by score", "reviewed", *VERDICTS), rows)
    if lost := status["not_in_report"]:
        say(f"\n{verdicts_not_found(len(lost)).partition(':')[0]}:")
        say_rows(lost)
        say(f"to withdraw a verdict: decon-assets review set {lost[0]['id']} none\n")
    if n := status["not_in_mixtures_yet"]:
        texts_of = f"{counted(n, 'text')} whose current verdict"
        say(f"{texts_of} is not in the report yet: `decon-assets run` updates the report")
    if sample := status["sample"]:
        say()
        _say_sample(sample)


def _say_sample(sample: Json) -> None:
    strata, found = sample["strata"], sample["precision"]
    of_drawn = ("n_leaks", "n_others", "n_unsure", "n_unseen")
    rows = [[stratum[name] for name in of_drawn] for stratum in strata]
    n_drawn, n_findings = sum(map(sum, rows)), sum(stratum["n_findings"] for stratum in strata)
    by = " and ".join(sample["stratify"]) or "none"
    say(f"{n_drawn} of {n_findings} findings drawn, strata: {by}, seed {sample['seed']}\n")
    heads = ("stratum", "findings", "drawn", "leaks", "not leaks", "unsure", "not reviewed")
    names = [(stratum["stratum"], stratum["n_findings"]) for stratum in strata]
    say_table(heads, [(*name, sum(row), *row) for name, row in zip(names, rows, strict=True)])
    if found is None or found["share"] is None:
        say("\nprecision unknown: no finding in the sample has a verdict yet")
        return
    interval = "95 % interval {low:.3f} to {high:.3f}".format(**found)
    say(f"\nprecision {found['share']:.3f}, {interval}")
    if n := sum(stratum["n_unsure"] + stratum["n_unseen"] for stratum in strata):
        bounds = "{least:.3f} if none of them is a leak, {most:.3f} if all are".format(**found)
        say(f"unsure or not reviewed, and left out: {counted(n, 'finding')}; precision {bounds}")
