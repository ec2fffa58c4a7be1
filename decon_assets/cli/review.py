"""`decon-assets review`: what was found, under the eyes of a person, and what comes of it."""

from __future__ import annotations

import argparse
import difflib
import getpass
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_assets.cli.command import Command, Say, add_config
from decon_assets.cli.terminal.tables import text_table
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.config.policy import RULES
from decon_core.config.verdicts import DEFAULT_FILE, TAKEN_BACK, VERDICTS
from decon_core.decisions.verdicts import (
    Verdict,
    Verdicts,
    append_verdicts,
    read_lines,
    read_verdicts,
)
from decon_core.errors import InputError, Problem

if TYPE_CHECKING:
    from decon_core.config.policy import Policy
    from decon_core.report.review.found import PairFilter, PairSummary, Report
    from decon_core.report.review.precision import Precision, Tally
    from decon_core.report.review.sample import Stratum

DESCRIPTION = """\
Look at what was found, one pair of benchmark item and training text at a time, and say what it is:
  l leak            the item, or what gives it away, is in the training text
  t template        both only share a form: instructions, boilerplate, a list of options
  c common source   both quote the same public text, and what is asked of it is not there
  u unsure          nobody can tell from what is here

Every verdict is put at the end of verdicts.jsonl beside decon.toml at once. It is kept by what was
found, so it holds for every document with the same words, and after the next scan. A leak is a leak
whatever its score; template and common source take it out of the leaks (`clears` in [review]);
unsure leaves it to the score. `decon-assets run` then builds anew what a verdict changes. The same
file takes verdicts from the report's page. docs/review.md says when to choose which.
"""

EPILOG = """\
examples:
  decon-assets review                           the most doubtful first
  decon-assets review --order documents --benchmark gsm8k
  decon-assets review --sample 100              a fair sample of all calls, to measure precision by
  decon-assets review status --sample 100       what it says so far, with an interval
  decon-assets review --list json               the queue, for a script
  decon-assets review --document page-17        what was found in one document
  decon-assets review set 4f0c93a1 template --note "a form letter"
  decon-assets review set 4f0c93a1 none         take it back
  decon-assets review import ~/Downloads/verdicts.jsonl

A sample is one of calls: documents and items that are leaks by score. The same number, strata and
seed draw the same calls again. Exit codes: 0 done, 2 an input is wrong.
"""

_STRATA = ("benchmark", "source", "split", "score")
_SAMPLED_BY = "benchmark,score"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    _add_choice(parser, lambda value: {"default": value})
    _add_queue(parser)
    parser.add_argument("--by", metavar="NAME", help="who says it (default: who is logged in)")
    _add_places(parser, lambda value: {"default": value})
    # What stands before the name of an action must not be overwritten by a default behind it.
    actions = parser.add_subparsers(dest="action", metavar="action")
    status = actions.add_parser("status", help="how far a review is, and the precision of a sample")
    _add_choice(status, lambda _: {"default": argparse.SUPPRESS})
    status.add_argument("--json", action="store_true", help="for a script")
    one = actions.add_parser("set", help="say something of one pair, without a terminal")
    one.add_argument("pair", help="its key, or how it begins")
    one.add_argument(
        "verdict", type=_verdict_name, help=f"{', '.join(VERDICTS)}; {TAKEN_BACK} takes it back"
    )
    one.add_argument("--note", default="")
    one.add_argument("--by", metavar="NAME", default=argparse.SUPPRESS)
    taken = actions.add_parser("import", help="take verdicts from a file, say of the report's page")
    taken.add_argument("file", type=Path)
    for action in (status, one, taken):
        add_config(action, is_second=True)
        _add_places(action, lambda _: {"default": argparse.SUPPRESS})


_Default = Callable[[object], dict[str, Any]]


def _add_choice(parser: argparse.ArgumentParser, default: _Default) -> None:
    """What of a report is looked at."""

    def add(name: str, value: object = None, **about: Any) -> None:
        parser.add_argument(name, **default(value), **about)

    add(
        "--benchmark", [], action="append", metavar="NAME", help="only of this one; may be repeated"
    )
    add("--source", [], action="append", metavar="NAME", help="only in this one; may be repeated")
    add(
        "--document",
        [],
        action="append",
        metavar="ID",
        help="only what was found in the document of this id, whichever the pair shows; "
        "may be repeated",
    )
    add("--rule", [], action="append", choices=RULES, help="only found by this one")
    add("--sample", type=_positive, metavar="N", help="so many calls, drawn fairly")
    add(
        "--stratify",
        _SAMPLED_BY,
        metavar="BY",
        type=_strata,
        help=f"with --sample: some of {', '.join(_STRATA)}, with commas (default {_SAMPLED_BY})",
    )
    add("--seed", 0, type=int, metavar="N", help="with --sample: another one draws other calls")


def _add_queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--order",
        choices=("doubt", "score", "documents"),
        help="doubt: closest to the threshold first (default); score: best first; documents: "
        "those in most documents first. A sample is in the order of its draw",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--unreviewed", action="store_true", help="only pairs without a verdict (default)"
    )
    which.add_argument("--all", action="store_true", help="those with a verdict, too")
    parser.add_argument(
        "--list",
        nargs="?",
        const="table",
        choices=("table", "json"),
        help="print the queue instead: as a table, or a JSON object a line",
    )


def _add_places(parser: argparse.ArgumentParser, default: _Default) -> None:
    def add(name: str, about: str) -> None:
        parser.add_argument(name, type=Path, metavar="FILE", help=about, **default(None))

    add("--report", "contamination.duckdb (default: that of the configuration)")
    add("--verdicts", "the file of verdicts (default: that of the configuration)")


def _verdict_name(text: str) -> str:
    name = text.replace("-", " ").replace("_", " ").strip().lower()
    if name in (*VERDICTS, TAKEN_BACK):
        return name
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(VERDICTS)}, {TAKEN_BACK}")


def _strata(text: str) -> str:
    names = _names(text)
    if {*names} - {*_STRATA} or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not some of {', '.join(_STRATA)}, each once, with commas between"
        )
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


# The command --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Desk:
    """What a review works on."""

    report: Report
    file: Path
    verdicts: Verdicts
    options: argparse.Namespace

    def append(self, pair: PairSummary, verdict: str, note: str) -> None:
        from decon_core.report.review.merge import verdict_line

        at = datetime.now(UTC).isoformat(timespec="seconds")
        line = verdict_line(pair, verdict, note=note, by=_by(self.options), at=at)
        append_verdicts(self.file, [line])


def review(options: argparse.Namespace, say: Say) -> int:
    """Run the command; `say` prints the answer."""
    actions = {"status": _status, "set": _set, "import": _import, None: _look}
    with _desk(options) as desk:
        if notice := desk.report.coverage().notice:
            sys.stderr.write(f"{notice}\n")
        return actions[options.action](desk, say)


def _places_of(options: argparse.Namespace) -> tuple[Path, Path]:
    """The report and the file of verdicts. A report by itself needs no configuration."""
    if options.report and (options.verdicts or not options.config.is_file()):
        return options.report, options.verdicts or Path(DEFAULT_FILE)
    config = load_config(options.config)
    return options.report or open_store(config).report, options.verdicts or config.verdicts


@contextmanager
def _desk(options: argparse.Namespace) -> Iterator[_Desk]:
    from decon_core.report.review.found import open_report

    report, file = _places_of(options)
    verdicts = read_verdicts(file)  # what is wrong with it is said before anybody looks at anything
    with open_report(report) as opened:
        yield _Desk(opened, file, verdicts, options)


def _by(options: argparse.Namespace) -> str:
    if options.by is not None:
        return str(options.by)
    with suppress(OSError, KeyError):  # nobody by a name, as in many containers
        return getpass.getuser()
    return ""


def _set(desk: _Desk, say: Say) -> int:
    pair = _pair_named(desk, desk.options.pair)
    desk.append(pair, desk.options.verdict, desk.options.note)
    say(f"{pair.pair} ({pair.item}): {desk.options.verdict}. {_apply(desk)}")
    return 0


def _pair_named(desk: _Desk, start: str) -> PairSummary:
    from decon_core.report.review.found import PairSummary

    found = desk.report.keys_starting_with(start)
    if len(found) > 1 and start not in found:
        expected = f"more of it: {', '.join(found)} begin so"
        raise InputError(Problem(f"pair {start!r}", "the beginning of several", expected))
    pair = desk.report.pair(start if start in found or not found else found[0])
    return PairSummary(**{name: pair[name] for name in PairSummary.__dataclass_fields__})


def _import(desk: _Desk, say: Say) -> int:
    from decon_core.report.review.found import PairFilter
    from decon_core.report.review.merge import merge_verdicts

    file = desk.options.file
    if not file.is_file():
        raise InputError(Problem(str(file), "no such file", "verdicts, a JSON object a line"))
    lines = read_lines(file)
    taken = merge_verdicts(
        lines, desk.verdicts, [one.pair for one in desk.report.pairs(PairFilter())]
    )
    if taken.lines:
        append_verdicts(desk.file, taken.lines)
    say(f"{len(lines)} lines: {taken.n_new} new, {taken.n_changed} changed, {taken.n_same} known")
    if taken.n_older:
        say(f"{taken.n_older} are older than what stands of their pairs, and were left out")
    if taken.n_unknown:
        say(
            f"{taken.n_unknown} are of pairs that this report does not have; they are kept, and "
            "count when such a pair is found"
        )
    if taken.lines:
        say(_apply(desk))
    return 0


def _apply(desk: _Desk) -> str:
    return f"In {desk.file}; `decon-assets run` builds what that changes"


# The queue ----------------------------------------------------------------------------------------


def _look(desk: _Desk, say: Say) -> int:
    queue = _queue(desk)
    if desk.options.list:
        _say_queue(queue, desk, say)
        return 0
    if not queue:
        say("nothing to look at: no pair of this choice is without a verdict (--all shows them)")
        return 0
    _require_terminal()
    return _on_terminal(queue, desk, say)


def _queue(desk: _Desk) -> list[PairSummary]:
    from decon_core.report.review.queue import pairs_of_calls, sort_pairs, without_verdict
    from decon_core.report.review.sample import in_order_of_draw

    options, wanted = desk.options, _wanted(desk)
    if options.sample:
        from decon_core.report.review.found import PairFilter

        calls = in_order_of_draw(_drawn(desk, wanted), options.seed)
        queue = pairs_of_calls(desk.report.pairs(PairFilter()), calls)
    else:
        queue = desk.report.pairs(wanted)
    if options.order or not options.sample:
        queue = sort_pairs(queue, options.order or "doubt", desk.report.policy())
    return queue if options.all else without_verdict(queue, desk.verdicts)


def _wanted(desk: _Desk) -> PairFilter:
    from decon_core.report.review.found import PairFilter

    options = desk.options
    problems = []
    for column, names in (("benchmark", options.benchmark), ("source", options.source)):
        known = desk.report.names(column) if names else []
        for name in names:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                remedy = f"did you mean {close[0]!r}?" if close else ""
                expected = f"one of which anything was found: {', '.join(known)}"
                problems.append(Problem(f"--{column}", repr(name), expected, remedy))
    if problems:
        raise InputError(problems)
    return PairFilter(
        benchmarks=tuple(options.benchmark),
        sources=tuple(options.source),
        rules=tuple(options.rule),
        documents=tuple(options.document),
    )


def _drawn(desk: _Desk, wanted: PairFilter) -> list[Stratum]:
    from decon_core.report.review.sample import draw

    options = desk.options
    by = _names(options.stratify)
    return draw(desk.report.calls(wanted), options.sample, by=by, seed=options.seed)


def _say_queue(queue: Sequence[PairSummary], desk: _Desk, say: Say) -> None:
    from decon_core.report.review.show import inert

    now = {pair: one.verdict for pair, one in desk.verdicts.by_pair.items()}
    rows = [replace(one, verdict=now.get(one.pair)) for one in queue]
    if desk.options.list == "json":
        for one in rows:
            documents = [asdict(place) for place in desk.report.documents(one.pair)]
            say(json.dumps({**asdict(one), "documents": documents}))
        return
    say(
        text_table(
            ("pair", "score", "class", "documents", "verdict", "rules", "item", "first place"),
            [
                (
                    *(one.pair, one.score, one.called, one.n_documents),
                    *(one.verdict, one.rules),
                    inert(one.item),
                    inert(f"{one.source}/{one.shard_name} row {one.row}"),
                )
                for one in rows
            ],
        )
    )


# On a terminal ------------------------------------------------------------------------------------


def _require_terminal() -> None:
    problems = [
        Problem(
            name,
            "no terminal" if os.environ.get("TERM") != "dumb" else "TERM=dumb",
            "a terminal, to show pairs and to hear keys",
            "`review --list` prints the queue, `review set PAIR VERDICT` takes a verdict",
        )
        for name, stream in (("standard input", sys.stdin), ("standard output", sys.stdout))
        if not stream.isatty() or os.environ.get("TERM") == "dumb"
    ]
    if problems:
        raise InputError(problems)


def _on_terminal(queue: Sequence[PairSummary], desk: _Desk, say: Say) -> int:
    from decon_assets.cli.terminal.review_terminal import Review, Screen
    from decon_core.report.review.show import Paint

    policy = desk.report.policy()
    screen = Screen(sys.stdin.fileno(), sys.stdout.fileno())

    def write(pair: PairSummary, verdict: str, note: str) -> Verdict:
        desk.append(pair, verdict, note)
        return Verdict(pair=pair.pair, fingerprint=pair.fingerprint, verdict=verdict, note=note)

    session = Review(
        queue=queue,
        screen=screen,
        paint=Paint(has_colour=not os.environ.get("NO_COLOR")),
        texts=lru_cache(maxsize=8)(desk.report.pair),
        say=write,
        told=lambda pair: _told(pair, policy),
        said=dict(desk.verdicts.by_pair),
    )
    try:
        with screen.taken():
            session.run()
    finally:
        say(f"{session.n_said} verdicts. {_apply(desk)}" if session.n_said else "no verdict")
    return 0


def _told(pair: PairSummary, policy: Policy) -> str:
    """How the score compares, and how often it was found."""
    rules = [rule for rule in pair.rules.split(", ") if rule in RULES]
    own = policy.for_benchmark(pair.benchmark)
    thresholds = " or ".join(f"{own.threshold_of(rule):g} ({rule})" for rule in rules)
    n = pair.n_documents
    return (
        f"{pair.item}  {pair.called}, score {pair.score:.3f}, a leak from {thresholds} on  "
        f"in {n} document{'s' if n != 1 else ''}"
    )


# Status -------------------------------------------------------------------------------------------


def _status(desk: _Desk, say: Say) -> int:
    from decon_core.report.review.precision import estimate, tally

    wanted = _wanted(desk)
    pairs = desk.report.pairs(wanted)
    tallies = []
    if desk.options.sample:
        tallies = [tally(stratum, desk.verdicts) for stratum in _drawn(desk, wanted)]
    found = estimate(tallies) if tallies else None
    if desk.options.json:
        say(json.dumps(_as_json(desk, pairs, tallies, found), indent=1, sort_keys=True))
        return 0
    _say_progress(desk, pairs, say)
    if desk.options.sample:
        say("")
        _say_precision(desk, tallies, found, say)
    return 0


def _as_json(
    desk: _Desk, pairs: Sequence[PairSummary], tallies: Sequence[Tally], found: Precision | None
) -> dict[str, object]:
    options = desk.options
    return {
        "pairs": {name: asdict(count) for name, count in _progress(desk, pairs).items()},
        "not_in_report": _n_elsewhere(desk),
        "not_in_mixtures_yet": _n_waiting(desk, pairs),
        "sample": {
            "n": options.sample,
            "stratify": _names(options.stratify),
            "seed": options.seed,
            "strata": [asdict(one) for one in tallies],
            "precision": asdict(found) if found else None,
        }
        if options.sample
        else None,
    }


@dataclass
class _Progress:
    """Of one benchmark: pairs, and what was said of them."""

    n_pairs: int = 0
    n_leaks_by_score: int = 0
    n_reviewed: int = 0
    said: dict[str, int] | None = None


def _progress(desk: _Desk, pairs: Sequence[PairSummary]) -> dict[str, _Progress]:
    found: dict[str, _Progress] = {}
    said: dict[str, Counter[str]] = {}
    for pair in pairs:
        one = found.setdefault(pair.benchmark, _Progress())
        one.n_pairs += 1
        one.n_leaks_by_score += pair.is_by_score
        if standing := desk.verdicts.by_pair.get(pair.pair):
            one.n_reviewed += 1
            said.setdefault(pair.benchmark, Counter())[standing.verdict] += 1
    for name, one in found.items():
        one.said = {verdict: said.get(name, Counter())[verdict] for verdict in VERDICTS}
    return dict(sorted(found.items()))


def _say_progress(desk: _Desk, pairs: Sequence[PairSummary], say: Say) -> None:
    say(
        text_table(
            ("benchmark", "pairs", "leaks by score", "reviewed", *VERDICTS),
            [
                (
                    name,
                    one.n_pairs,
                    one.n_leaks_by_score,
                    one.n_reviewed,
                    *(one.said or {}).values(),
                )
                for name, one in _progress(desk, pairs).items()
            ],
        )
    )
    if n := _n_elsewhere(desk):
        say(f"{n} verdicts are of pairs that this report does not have")
    if n := _n_waiting(desk, pairs):
        say(
            f"of {n} pairs the report knows another verdict, or none: `decon-assets run` mends that"
        )


def _n_elsewhere(desk: _Desk) -> int:
    from decon_core.report.review.found import PairFilter

    known = {one.pair for one in desk.report.pairs(PairFilter())}
    return len(desk.verdicts.by_pair.keys() - known)


def _n_waiting(desk: _Desk, pairs: Sequence[PairSummary]) -> int:
    now = desk.verdicts.by_pair
    return sum(one.verdict != (now[one.pair].verdict if one.pair in now else None) for one in pairs)


def _say_precision(
    desk: _Desk, tallies: Sequence[Tally], found: Precision | None, say: Say
) -> None:
    options = desk.options
    n_drawn, n_calls = (
        sum(getattr(one, name) for one in tallies) for name in ("n_drawn", "n_calls")
    )
    by = " and ".join(_names(options.stratify))
    say(f"{n_drawn} of {n_calls} calls drawn, by {by or 'nothing'}, seed {options.seed}\n")
    heads = ("stratum", "calls", "drawn", "leaks", "no leaks", "unsure", "not seen")
    say(text_table(heads, [_tally_row(one) for one in tallies]))
    if found is None or found.share is None:
        say("\nno call of the sample was judged yet: nothing can be said of precision")
        return
    say(f"\nprecision {found.share:.3f}, 95 % interval {found.low:.3f} to {found.high:.3f}")
    n_unknown = sum(one.n_unsure + one.n_unseen for one in tallies)
    if n_unknown:
        say(
            f"without the {n_unknown} that are unsure or not seen; {found.least:.3f} if none of "
            f"them is a leak, {found.most:.3f} if all are"
        )


def _tally_row(one: Tally) -> tuple[object, ...]:
    return (
        *(one.stratum, one.n_calls, one.n_drawn, one.n_leaks),
        *(one.n_others, one.n_unsure, one.n_unseen),
    )


COMMAND = Command(review, (add_arguments,), DESCRIPTION, EPILOG)
