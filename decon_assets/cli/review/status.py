"""The progress of a review, and the precision of a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from decon_assets.cli.review.session import Choice, Session
from decon_assets.cli.terminal.output import say, say_table
from decon_core.config.verdicts import VERDICTS
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.report.review.precision import Precision, Tally


@dataclass(frozen=True)
class _Progress:
    """The pairs of one benchmark, and their verdicts."""

    n_pairs: int
    n_leaks_by_score: int
    n_reviewed: int
    said: dict[str, int]


@dataclass(frozen=True)
class Status:
    """The progress by benchmark, and the tallies and the precision of a sample."""

    choice: Choice
    progress: dict[str, _Progress]
    n_elsewhere: int  # verdicts for pairs that are not in the report
    n_waiting: int  # pairs whose verdict is not in the report yet
    tallies: Sequence[Tally]
    precision: Precision | None

    def as_json(self) -> dict[str, object]:
        sample = {
            "n": self.choice.sample,
            "stratify": self.choice.strata,
            "seed": self.choice.seed,
            "strata": [asdict(one) for one in self.tallies],
            "precision": asdict(self.precision) if self.precision else None,
        }
        return {
            "pairs": {name: asdict(count) for name, count in self.progress.items()},
            "not_in_report": self.n_elsewhere,
            "not_in_mixtures_yet": self.n_waiting,
            "sample": sample if self.choice.sample else None,
        }


def status_of(session: Session, choice: Choice) -> Status:
    """Count the pairs of a choice and their verdicts, and estimate the precision of a sample."""
    from decon_core.report.review.found import PairFilter
    from decon_core.report.review.precision import estimate, tally

    now = {pair: one.verdict for pair, one in session.verdicts.by_pair.items()}
    pairs = session.pairs(choice)
    progress = {}
    for name in sorted({pair.benchmark for pair in pairs}):
        found = [pair for pair in pairs if pair.benchmark == name]
        said = Counter(now[pair.pair] for pair in found if pair.pair in now)
        progress[name] = _Progress(
            n_pairs=len(found),
            n_leaks_by_score=sum(pair.is_by_score for pair in found),
            n_reviewed=said.total(),
            said={verdict: said[verdict] for verdict in VERDICTS},
        )
    tallies = [tally(stratum, session.verdicts) for stratum in session.drawn(choice)]
    return Status(
        choice,
        progress,
        n_elsewhere=len(now.keys() - {one.pair for one in session.report.pairs(PairFilter())}),
        n_waiting=sum(one.verdict != now.get(one.pair) for one in pairs),
        tallies=tallies,
        precision=estimate(tallies) if tallies else None,
    )


def say_status(status: Status) -> None:
    """Print the progress, and the precision of a sample."""
    say_table(
        ("benchmark", "pairs", "leaks by score", "reviewed", *VERDICTS),
        [
            (name, one.n_pairs, one.n_leaks_by_score, one.n_reviewed, *one.said.values())
            for name, one in status.progress.items()
        ],
    )
    if n := status.n_elsewhere:
        say(f"{counted(n, 'verdict')} for pairs that are not in this report")
    if n := status.n_waiting:
        pairs_of = f"{counted(n, 'pair')} whose current verdict"
        say(f"{pairs_of} is not in the report yet: `decon-assets run` updates it")
    if status.choice.sample:
        say()
        _say_precision(status.choice, status.tallies, status.precision)


def _say_precision(choice: Choice, tallies: Sequence[Tally], found: Precision | None) -> None:
    n_drawn = sum(one.n_drawn for one in tallies)
    n_calls = sum(one.n_calls for one in tallies)
    by = " and ".join(choice.strata)
    say(f"{n_drawn} of {n_calls} calls drawn, by {by or 'nothing'}, seed {choice.seed}\n")
    say_table(
        ("stratum", "calls", "drawn", "leaks", "no leaks", "unsure", "not seen"),
        [
            (
                *(one.stratum, one.n_calls, one.n_drawn, one.n_leaks),
                *(one.n_others, one.n_unsure, one.n_unseen),
            )
            for one in tallies
        ],
    )
    if found is None or found.share is None:
        say("\nprecision unknown: no call of the sample has a verdict yet")
        return
    say(f"\nprecision {found.share:.3f}, 95 % interval {found.low:.3f} to {found.high:.3f}")
    n_unknown = sum(one.n_unsure + one.n_unseen for one in tallies)
    if n_unknown:
        say(
            f"without {n_unknown} calls that are unsure or not seen: {found.least:.3f} if none of "
            f"them is a leak, {found.most:.3f} if all are"
        )
