"""`decon-assets scan`: the core on any folder, without Dagster."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from decon_assets.command import Command, Say, filled, filled_path, positive
from decon_assets.tables import text_table
from decon_core.errors import InputError, Problem, told
from decon_core.policy import RULES, Policy
from decon_core.workers import usable_cores

if TYPE_CHECKING:
    from decon_core.folder_scan import Outcome
    from decon_core.verdicts import Verdicts

DESCRIPTION = """\
Look for benchmark items in a folder of training data, without Dagster or a configuration.

Writes OUT/matches.parquet (every match down to the evidence floor, with score and call),
OUT/ledger.jsonl (what was read of each shard, and every row that could not be),
OUT/indexability.parquet (which items each rule can see, and why not the others),
OUT/common.parquet (n-grams that so many documents hold that they are no evidence) and
OUT/summary.json. Scanning again does only what is missing: new shards, or the rest after a run
that was stopped. Other benchmarks are weighed anew, so then all is scanned again. What was done so
far is kept in OUT/.store.
"""

EPILOG = """\
examples:
  decon-assets scan --evals evals.yaml --corpus shards/ --out found
  decon-assets scan --evals bundled/ --corpus 'web/**/*.jsonl.zst' --out found --workers 8
  decon-assets scan --evals bundled/ --corpus chats/ --messages messages --role user --out found
  decon-assets scan --evals bundled/ --corpus pairs/ --text chosen --text rejected --out found
  decon-assets scan ... --policy policy.toml      a file with, say, sampling = "reference"
  decon-assets scan ... --compat --fail-on-leak   in a test: 3 when something leaked
  duckdb -c "FROM 'found/matches.parquet' WHERE is_contaminated"

exit codes: 0 done, whether or not something leaked; 1 a shard could not be read (all others were
scanned, and the ledger says which), or not a single row could be; 2 an input is wrong; 3 something
leaked, with --fail-on-leak. Rows that could not be read are counted, and named in the ledger; as
long as others could be read, they do not change the exit code.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--evals",
        type=filled_path,
        required=True,
        metavar="PATH",
        help="a recipe file (.yaml), or normalized records: a JSONL file or a folder of such",
    )
    parser.add_argument(
        "--corpus",
        type=filled,
        required=True,
        metavar="PATH",
        help="a folder (with all below it), a file, or a glob in quotes",
    )
    parser.add_argument("--out", type=filled_path, required=True, metavar="DIR")
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="TOML with policy settings (docs/detector.md), at its top or in [policy]",
    )
    parser.add_argument(
        "--verdicts",
        type=Path,
        metavar="FILE",
        help="what people said of single findings (docs/review.md): it comes before their scores",
    )
    parser.add_argument(
        "--detectors",
        type=rule_names,
        metavar="RULES",
        help=f"rules to look by, with commas between: {', '.join(RULES)} (default: the policy's, "
        "decon); docs/detectors.md says what to choose when",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes, or threads where there is little to scan (default 1; there are "
        f"{usable_cores()} cores here)",
    )
    content = parser.add_mutually_exclusive_group()
    content.add_argument(
        "--text",
        action="append",
        metavar="FIELD",
        help="field that holds the text; nested: metadata.text (default: text). Given several "
        "times (--text prompt --text chosen --text rejected), all of them make one document",
    )
    content.add_argument(
        "--messages", metavar="FIELD", help="field that holds a conversation, instead of --text"
    )
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE",
        help="with --messages: read only turns of this role; may be given several times",
    )
    parser.add_argument(
        "--id", default="id", metavar="FIELD", help="the document's own id, if any (default: id)"
    )
    parser.add_argument(
        "--compat",
        action="store_true",
        help="also write OUT/compat/: the reference implementation's report, a file per shard",
    )
    parser.add_argument(
        "--clean-evals",
        action="store_true",
        help="also write OUT/clean/: the benchmarks without the items that leaked, and a manifest",
    )
    parser.add_argument(
        "--fail-on-leak", action="store_true", help="end with exit code 3 when something leaked"
    )


def rule_names(text: str) -> tuple[str, ...]:
    """Rules as a person types them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted({*names} - {*RULES})
    if unknown or not names or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not some of {', '.join(RULES)}, each once, with commas between"
        )
    return names


def scan(options: argparse.Namespace, say: Say) -> int:
    """Run the command; `say` prints the answer, progress goes to stderr."""
    from decon_core.folder_scan import CLEAN_FOLDER, Request, scan_folder

    if options.role and not options.messages:
        raise InputError(Problem("--role", "no --messages", "the field with the conversation"))
    progress = Progress(sys.stderr)
    request = Request(
        evals=options.evals,
        corpus=options.corpus,
        out=options.out,
        policy=_policy(options),
        text=_fields(options.text),
        messages=options.messages,
        roles=tuple(options.role),
        id=options.id,
        workers=options.workers,
        has_compat=options.compat,
        has_clean_evals=options.clean_evals,
        verdicts=_verdicts(options.verdicts),
    )
    with announced(progress):
        outcome = scan_folder(
            request,
            on_step=progress.step,
            on_work=lambda work: progress.begin(work.n_shards, work.n_bytes),
            on_progress=progress.update,
        )
    progress.end()
    for line in _answer(outcome, options.out, has_compat=options.compat):
        say(line)
    if options.clean_evals:
        if outcome.n_shards_unread or outcome.has_read_nothing:
            unread = "some shards" if outcome.n_shards_unread else "all rows"
            say(f"benchmarks without what leaked: not written, for {unread} could not be read")
        else:
            say(f"benchmarks without what leaked: {options.out / CLEAN_FOLDER}")
    if outcome.failed:
        sys.stderr.write(f"\nnot read: {told(outcome.failed)}\n")
        return 1
    if outcome.has_read_nothing:
        sys.stderr.write(f"\n{_read_nothing(options, outcome)}\n")
        return 1
    return 3 if options.fail_on_leak and outcome.n_leaks else 0


def _read_nothing(options: argparse.Namespace, outcome: Outcome) -> str:
    fields = [options.messages] if options.messages else options.text or ["text"]
    return str(
        Problem(
            options.corpus,
            f"{outcome.n_unreadable:,} rows, of which not one could be read",
            f"documents in the field {', '.join(fields)}",
            "--text or --messages names another; the ledger says what is wrong with each row",
        )
    )


def _policy(options: argparse.Namespace) -> Policy:
    from decon_core.folder_scan import load_policy

    policy = load_policy(options.policy) if options.policy else Policy()
    return replace(policy, detectors=options.detectors) if options.detectors else policy


def _verdicts(path: Path | None) -> Verdicts:
    from decon_core.verdicts import NO_VERDICTS, read_verdicts

    if path is None:
        return NO_VERDICTS
    if not path.is_file():
        expected = "a file of verdicts, as `decon-assets review` writes them"
        raise InputError(Problem(str(path), "no such file", expected))
    return read_verdicts(path)


def _fields(names: list[str] | None) -> str | tuple[str, ...]:
    """One field is a plain text, with no parts."""
    if not names:
        return "text"
    return names[0] if len(names) == 1 else tuple(names)


class _Notices(logging.Handler):
    """What the core has to say while it works."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.step(record.getMessage())


@contextmanager
def announced(progress: Progress) -> Iterator[None]:
    """Have the core's notices shown among the progress."""
    logger = logging.getLogger("decon_core")
    notices = _Notices(progress)
    level = logger.level
    logger.addHandler(notices)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(notices)
        logger.setLevel(level)


def _answer(outcome: Outcome, out: Path, *, has_compat: bool) -> Iterator[str]:
    from decon_core.folder_scan import (
        COMMON_FILE,
        COMPAT_FOLDER,
        INDEXABILITY_FILE,
        LEDGER_FILE,
        MATCHES_FILE,
    )

    yield _table(outcome)
    yield (
        f"\n{outcome.n_contaminated_documents:,} of {outcome.n_documents:,} documents hold a leak; "
        f"{outcome.n_too_short:,} were too short to hold anything"
    )
    if outcome.n_unreadable:
        yield f"{outcome.n_unreadable:,} rows could not be read: {out / LEDGER_FILE} says which"
    if outcome.n_shards_unread:
        yield f"{outcome.n_shards_unread:,} of {outcome.n_shards:,} shards could not be read"
    if any(outcome.n_unseen.values()):
        told = ", ".join(f"{rule} {n:,}" for rule, n in outcome.n_unseen.items() if n)
        yield f"items that a rule cannot see: {told}; {out / INDEXABILITY_FILE} says why"
    if outcome.n_common:
        yield (
            f"{outcome.n_common:,} n-grams of the benchmarks stand in so many documents that they "
            f"are no evidence: {out / COMMON_FILE}"
        )
    yield f"matches: {out / MATCHES_FILE}"
    if has_compat:
        yield f"reference form: {out / COMPAT_FOLDER}"


def _table(outcome: Outcome) -> str:
    """Per benchmark what leaked; of several rules, what each found and all of them did."""
    rules = [*outcome.benchmarks[0].n_items_by_rule] if outcome.benchmarks else []
    if len(rules) < 2:
        rules = []
    by_rule = (*rules, "all of them") if rules else ()
    return text_table(
        ("benchmark", "items", "leaked", *by_rule, "leaks", "documents"),
        [
            (
                count.benchmark,
                count.n_items,
                count.n_leaked_items,
                *(count.n_items_by_rule[rule] for rule in rules),
                *([count.n_items_by_all] if rules else []),
                count.n_leaks,
                count.n_documents,
            )
            for count in outcome.benchmarks
        ],
    )


_SECONDS_BETWEEN = {True: 0.2, False: 10.0}  # on a terminal, where the line is replaced; elsewhere


class Progress:
    """How far a scan is, how fast, and how long it will take."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._told_at = -1e9
        self._is_line_open = False

    def step(self, line: str) -> None:
        self.end()
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def begin(self, n_shards: int, n_bytes: int) -> None:
        self.step(f"{n_shards:,} shards to scan, {_size(n_bytes)} on the disk")

    def update(self, done: int, of: int, n_bytes: int, n_bytes_in_all: int, seconds: float) -> None:
        is_last = done == of
        now = time.monotonic()
        if now - self._told_at < _SECONDS_BETWEEN[self._is_terminal] and not is_last:
            return
        self._told_at = now
        line = f"{done:,} of {of:,} shards, {_size(n_bytes)}"
        if n_bytes and seconds:
            rate = n_bytes / seconds
            left = (n_bytes_in_all - n_bytes) / rate
            line += f" at {_size(rate)}/s"
            line += f" in {_span(seconds)}" if is_last else f", {_span(left)} left"
        self._stream.write(f"\r{line}\x1b[K" if self._is_terminal else f"{line}\n")
        self._stream.flush()
        self._is_line_open = self._is_terminal

    def end(self) -> None:
        if self._is_line_open:
            self._stream.write("\n")
            self._is_line_open = False


def _size(n_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


COMMAND = Command(scan, (add_arguments,), DESCRIPTION, EPILOG)
