"""`decon-assets review`: judge matches by hand, and measure precision from the verdicts."""

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

from decon_assets.cli.command import Command, Say, add_config, positive
from decon_assets.cli.terminal.tables import text_table
from decon_core.config import detectors as registry
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.config.verdicts import DEFAULT_FILE, TAKEN_BACK, VERDICTS
from decon_core.decisions.verdicts import (
    Verdict,
    Verdicts,
    append_verdicts,
    read_lines,
    read_verdicts,
)
from decon_core.errors import InputError, Problem
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.policy import Policy
    from decon_core.report.review.found import PairFilter, PairSummary, Report
    from decon_core.report.review.precision import Precision, Tally
    from decon_core.report.review.sample import Stratum

DESCRIPTION = """\
Show pairs of a benchmark item and a training text one at a time, and record a verdict for each:
  l leak            the training text contains the item, or gives its answer away
  t template        they share only a form: instructions, boilerplate, a list of options
  c common source   both quote the same public text, but the text does not contain the question
  u unsure          cannot be decided from these texts

Each verdict is appended to verdicts.jsonl beside decon.toml at once. It applies to the item and the
matched words, so to every document with the same words, and after the next scan. `leak` makes the
pair a leak whatever its score; `template` and `common source` clear it (`clears` in [review]);
`unsure` leaves the decision to the score. `decon-assets run` then rebuilds what a verdict changes.
Verdicts from the report's page go to the same file. docs/review.md explains which one to choose.
"""

EPILOG = """\
examples:
  decon-assets review                           closest to the threshold first
  decon-assets review --order documents --benchmark gsm8k
  decon-assets review --sample 100              a random sample of leaks, to measure precision
  decon-assets review status --sample 100       its precision so far, with an interval
  decon-assets review --list json               the queue, for a script
  decon-assets review --document page-17        the matches in one document
  decon-assets review set 4f0c93a1 template --note "a form letter"
  decon-assets review set 4f0c93a1 none         withdraw a verdict
  decon-assets review import ~/Downloads/verdicts.jsonl

A sample is drawn from calls: pairs of a document and an item that are leaks by score. The same
number, strata and seed draw the same calls again. Exit codes: 0 done, 2 an input is wrong.
"""

_STRATA = ("benchmark", "source", "split", "score")
_SAMPLED_BY = "benchmark,score"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    _add_choice(parser, lambda value: {"default": value})
    _add_queue(parser)
    parser.add_argument("--by", metavar="NAME", help="the reviewer (default: the login name)")
    _add_files(parser, lambda value: {"default": value})
    # A default of an action must not override an option given before the action's name.
    actions = parser.add_subparsers(dest="action", metavar="action")
    status = actions.add_parser("status", help="progress of the review, and precision of a sample")
    _add_choice(status, lambda _: {"default": argparse.SUPPRESS})
    status.add_argument("--json", action="store_true", help="print JSON, for a script")
    set_parser = actions.add_parser("set", help="record a verdict without a terminal")
    set_parser.add_argument("pair", help="the key of a pair, or its beginning")
    set_parser.add_argument(
        "verdict", type=_verdict_name, help=f"{', '.join(VERDICTS)}; {TAKEN_BACK} withdraws it"
    )
    set_parser.add_argument("--note", default="", help="a remark, stored with the verdict")
    set_parser.add_argument("--by", metavar="NAME", default=argparse.SUPPRESS, help="the reviewer")
    import_parser = actions.add_parser(
        "import", help="add verdicts from a file, for example from the report's page"
    )
    import_parser.add_argument("file", type=Path, help="verdicts, one JSON object per line")
    for action in (status, set_parser, import_parser):
        add_config(action, is_second=True)
        _add_files(action, lambda _: {"default": argparse.SUPPRESS})


_Default = Callable[[object], dict[str, Any]]


def _add_choice(parser: argparse.ArgumentParser, default: _Default) -> None:
    """Add the options that select pairs."""

    def add(name: str, value: object = None, **about: Any) -> None:
        parser.add_argument(name, **default(value), **about)

    add(
        "--benchmark",
        [],
        action="append",
        metavar="NAME",
        help="only pairs of this benchmark; may be repeated",
    )
    add(
        "--source",
        [],
        action="append",
        metavar="NAME",
        help="only pairs in this source; may be repeated",
    )
    add(
        "--document",
        [],
        action="append",
        metavar="ID",
        help="only pairs found in the document with this id; may be repeated",
    )
    add(
        "--rule",
        [],
        action="append",
        choices=registry.names(),
        help="only pairs found by this detector",
    )
    add("--sample", type=positive, metavar="N", help="draw a random sample of N calls")
    add(
        "--stratify",
        _SAMPLED_BY,
        metavar="BY",
        type=_strata,
        help=f"with --sample: strata, comma-separated: {', '.join(_STRATA)} "
        f"(default {_SAMPLED_BY})",
    )
    add("--seed", 0, type=int, metavar="N", help="with --sample: seed of the draw (default 0)")


def _add_queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--order",
        choices=("doubt", "score", "documents"),
        help="doubt: closest to the threshold first (default); score: highest first; documents: "
        "most documents first. A sample keeps the order of its draw by default",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--unreviewed", action="store_true", help="only pairs without a verdict (default)"
    )
    which.add_argument("--all", action="store_true", help="also pairs with a verdict")
    parser.add_argument(
        "--list",
        nargs="?",
        const="table",
        choices=("table", "json"),
        help="print the queue instead: as a table, or as JSON lines",
    )


def _add_files(parser: argparse.ArgumentParser, default: _Default) -> None:
    def add(name: str, about: str) -> None:
        parser.add_argument(name, type=Path, metavar="FILE", help=about, **default(None))

    add("--report", "a report's database (default: the report of the configuration)")
    add("--verdicts", "the file of verdicts (default: the file of the configuration)")


def _verdict_name(text: str) -> str:
    name = text.replace("-", " ").replace("_", " ").strip().lower()
    if name in (*VERDICTS, TAKEN_BACK):
        return name
    expected = ", ".join((*VERDICTS, TAKEN_BACK))
    raise argparse.ArgumentTypeError(f"{text!r} is not one of {expected}")


def _strata(text: str) -> str:
    names = _names(text)
    if {*names} - {*_STRATA} or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a comma-separated list of {', '.join(_STRATA)}, each at most once"
        )
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


# The command --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Session:
    """An open report, the file of verdicts and the options."""

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
    """Run the chosen action and return its exit code; `say` prints the result."""
    actions = {"status": _status, "set": _set, "import": _import, None: _review}
    with _open_session(options) as session:
        if notice := session.report.coverage().notice:
            sys.stderr.write(f"{notice}\n")
        return actions[options.action](session, say)


def _files(options: argparse.Namespace) -> tuple[Path, Path]:
    """Return the report and the file of verdicts; with `--report`, no configuration is needed."""
    if options.report and (options.verdicts or not options.config.is_file()):
        return options.report, options.verdicts or Path(DEFAULT_FILE)
    config = load_config(options.config)
    return options.report or open_store(config).report, options.verdicts or config.verdicts


@contextmanager
def _open_session(options: argparse.Namespace) -> Iterator[_Session]:
    from decon_core.report.review.found import open_report

    report, file = _files(options)
    verdicts = read_verdicts(file)  # report a broken file before the review starts
    with open_report(report) as opened:
        yield _Session(opened, file, verdicts, options)


def _by(options: argparse.Namespace) -> str:
    if options.by is not None:
        return str(options.by)
    with suppress(OSError, KeyError):  # the user has no name, as in many containers
        return getpass.getuser()
    return ""


def _set(session: _Session, say: Say) -> int:
    pair = _find_pair(session, session.options.pair)
    session.append(pair, session.options.verdict, session.options.note)
    say(f"{pair.pair} ({pair.item}): {session.options.verdict}. {_next_step(session)}")
    return 0


def _find_pair(session: _Session, start: str) -> PairSummary:
    """Return the pair whose key begins with `start`; raise InputError if there are several."""
    from decon_core.report.review.found import PairSummary

    keys = session.report.keys_starting_with(start)
    if len(keys) > 1 and start not in keys:
        expected = f"a longer prefix of one of {', '.join(keys)}"
        raise InputError(Problem(f"pair {start!r}", "the beginning of several pairs", expected))
    pair = session.report.pair(start if start in keys or not keys else keys[0])
    return PairSummary(**{name: pair[name] for name in PairSummary.__dataclass_fields__})


def _import(session: _Session, say: Say) -> int:
    from decon_core.report.review.found import PairFilter
    from decon_core.report.review.merge import merge_verdicts

    file = session.options.file
    if not file.is_file():
        raise InputError(Problem(str(file), "no such file", "verdicts, one JSON object per line"))
    lines = read_lines(file)
    pairs = [one.pair for one in session.report.pairs(PairFilter())]
    merged = merge_verdicts(lines, session.verdicts, pairs)
    if merged.lines:
        append_verdicts(session.file, merged.lines)
    counts = f"{merged.n_new} new, {merged.n_changed} changed, {merged.n_same} unchanged"
    say(f"{len(lines)} lines: {counts}")
    if merged.n_older:
        say(f"{merged.n_older} ignored: older than the current verdict of their pair")
    if merged.n_unknown:
        say(
            f"{merged.n_unknown} for pairs that are not in this report: kept, and applied when "
            "such a pair is found"
        )
    if merged.lines:
        say(_next_step(session))
    return 0


def _next_step(session: _Session) -> str:
    return f"Saved in {session.file}; `decon-assets run` applies it"


# The queue ----------------------------------------------------------------------------------------


def _review(session: _Session, say: Say) -> int:
    queue = _queue(session)
    if session.options.list:
        _say_queue(queue, session, say)
        return 0
    if not queue:
        say("nothing to review: every selected pair has a verdict (--all shows them)")
        return 0
    _require_terminal()
    return _on_terminal(queue, session, say)


def _queue(session: _Session) -> list[PairSummary]:
    from decon_core.report.review.queue import pairs_of_calls, sort_pairs, without_verdict
    from decon_core.report.review.sample import in_order_of_draw

    options, wanted = session.options, _wanted(session)
    if options.sample:
        from decon_core.report.review.found import PairFilter

        calls = in_order_of_draw(_drawn(session, wanted), options.seed)
        queue = pairs_of_calls(session.report.pairs(PairFilter()), calls)
    else:
        queue = session.report.pairs(wanted)
    if options.order or not options.sample:
        queue = sort_pairs(queue, options.order or "doubt", session.report.policy())
    return queue if options.all else without_verdict(queue, session.verdicts)


def _wanted(session: _Session) -> PairFilter:
    from decon_core.report.review.found import PairFilter

    options = session.options
    problems = []
    for column, names in (("benchmark", options.benchmark), ("source", options.source)):
        known = session.report.names(column) if names else []
        for name in names:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                remedy = f"did you mean {close[0]!r}?" if close else ""
                expected = f"one with matches: {', '.join(known)}"
                problems.append(Problem(f"--{column}", repr(name), expected, remedy))
    if problems:
        raise InputError(problems)
    return PairFilter(
        benchmarks=tuple(options.benchmark),
        sources=tuple(options.source),
        rules=tuple(options.rule),
        documents=tuple(options.document),
    )


def _drawn(session: _Session, wanted: PairFilter) -> list[Stratum]:
    from decon_core.report.review.sample import draw

    options = session.options
    by = _names(options.stratify)
    return draw(session.report.calls(wanted), options.sample, by=by, seed=options.seed)


def _say_queue(queue: Sequence[PairSummary], session: _Session, say: Say) -> None:
    from decon_core.report.review.show import inert

    now = {pair: one.verdict for pair, one in session.verdicts.by_pair.items()}
    rows = [replace(one, verdict=now.get(one.pair)) for one in queue]
    if session.options.list == "json":
        for one in rows:
            documents = [asdict(place) for place in session.report.documents(one.pair)]
            say(json.dumps({**asdict(one), "documents": documents}))
        return
    say(
        text_table(
            ("pair", "score", "class", "documents", "verdict", "detectors", "item", "first place"),
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
            "a terminal, to show pairs and to read keys",
            "use `review --list` to print the queue, `review set PAIR VERDICT` to give a verdict",
        )
        for name, stream in (("standard input", sys.stdin), ("standard output", sys.stdout))
        if not stream.isatty() or os.environ.get("TERM") == "dumb"
    ]
    if problems:
        raise InputError(problems)


def _on_terminal(queue: Sequence[PairSummary], session: _Session, say: Say) -> int:
    from decon_assets.cli.terminal.review_terminal import Review, Screen
    from decon_core.report.review.show import Paint

    policy = session.report.policy()
    screen = Screen(sys.stdin.fileno(), sys.stdout.fileno())

    def write(pair: PairSummary, verdict: str, note: str) -> Verdict:
        session.append(pair, verdict, note)
        return Verdict(pair=pair.pair, fingerprint=pair.fingerprint, verdict=verdict, note=note)

    dialog = Review(
        queue=queue,
        screen=screen,
        paint=Paint(has_colour=not os.environ.get("NO_COLOR")),
        texts=lru_cache(maxsize=8)(session.report.pair),
        write=write,
        headline=lambda pair: _headline(pair, policy),
        verdicts=dict(session.verdicts.by_pair),
    )
    try:
        with screen.taken():
            dialog.run()
    finally:
        n = dialog.n_written
        say(f"{counted(n, 'verdict')}. {_next_step(session)}" if n else "no verdict")
    return 0


def _headline(pair: PairSummary, policy: Policy) -> str:
    """Return the pair's item, call, score, thresholds and number of documents."""
    detectors = [*filter(None, pair.rules.split(", "))]
    applied = policy.for_benchmark(pair.benchmark)
    thresholds = " or ".join(f"{applied.threshold_of(name):g} ({name})" for name in detectors)
    return (
        f"{pair.item}  {pair.called}, score {pair.score:.3f}, threshold {thresholds}, "
        f"in {counted(pair.n_documents, 'document')}"
    )


# Status -------------------------------------------------------------------------------------------


def _status(session: _Session, say: Say) -> int:
    from decon_core.report.review.precision import estimate, tally

    wanted = _wanted(session)
    pairs = session.report.pairs(wanted)
    tallies = []
    if session.options.sample:
        tallies = [tally(stratum, session.verdicts) for stratum in _drawn(session, wanted)]
    found = estimate(tallies) if tallies else None
    if session.options.json:
        say(json.dumps(_as_json(session, pairs, tallies, found), indent=1, sort_keys=True))
        return 0
    _say_progress(session, pairs, say)
    if session.options.sample:
        say("")
        _say_precision(session, tallies, found, say)
    return 0


def _as_json(
    session: _Session,
    pairs: Sequence[PairSummary],
    tallies: Sequence[Tally],
    found: Precision | None,
) -> dict[str, object]:
    options = session.options
    return {
        "pairs": {name: asdict(count) for name, count in _progress(session, pairs).items()},
        "not_in_report": _n_elsewhere(session),
        "not_in_mixtures_yet": _n_waiting(session, pairs),
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
    """The pairs of one benchmark, and their verdicts."""

    n_pairs: int = 0
    n_leaks_by_score: int = 0
    n_reviewed: int = 0
    said: dict[str, int] | None = None


def _progress(session: _Session, pairs: Sequence[PairSummary]) -> dict[str, _Progress]:
    found: dict[str, _Progress] = {}
    said: dict[str, Counter[str]] = {}
    for pair in pairs:
        one = found.setdefault(pair.benchmark, _Progress())
        one.n_pairs += 1
        one.n_leaks_by_score += pair.is_by_score
        if verdict := session.verdicts.by_pair.get(pair.pair):
            one.n_reviewed += 1
            said.setdefault(pair.benchmark, Counter())[verdict.verdict] += 1
    for name, one in found.items():
        one.said = {verdict: said.get(name, Counter())[verdict] for verdict in VERDICTS}
    return dict(sorted(found.items()))


def _say_progress(session: _Session, pairs: Sequence[PairSummary], say: Say) -> None:
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
                for name, one in _progress(session, pairs).items()
            ],
        )
    )
    if n := _n_elsewhere(session):
        say(f"{counted(n, 'verdict')} for pairs that are not in this report")
    if n := _n_waiting(session, pairs):
        pairs_of = f"{counted(n, 'pair')} whose current verdict"
        say(f"{pairs_of} is not in the report yet: `decon-assets run` updates it")


def _n_elsewhere(session: _Session) -> int:
    from decon_core.report.review.found import PairFilter

    known = {one.pair for one in session.report.pairs(PairFilter())}
    return len(session.verdicts.by_pair.keys() - known)


def _n_waiting(session: _Session, pairs: Sequence[PairSummary]) -> int:
    now = session.verdicts.by_pair
    return sum(one.verdict != (now[one.pair].verdict if one.pair in now else None) for one in pairs)


def _say_precision(
    session: _Session, tallies: Sequence[Tally], found: Precision | None, say: Say
) -> None:
    options = session.options
    n_drawn = sum(one.n_drawn for one in tallies)
    n_calls = sum(one.n_calls for one in tallies)
    by = " and ".join(_names(options.stratify))
    say(f"{n_drawn} of {n_calls} calls drawn, by {by or 'nothing'}, seed {options.seed}\n")
    heads = ("stratum", "calls", "drawn", "leaks", "no leaks", "unsure", "not seen")
    say(text_table(heads, [_tally_row(one) for one in tallies]))
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


def _tally_row(one: Tally) -> tuple[object, ...]:
    return (
        *(one.stratum, one.n_calls, one.n_drawn, one.n_leaks),
        *(one.n_others, one.n_unsure, one.n_unseen),
    )


COMMAND = Command(review, (add_arguments,), DESCRIPTION, EPILOG)
