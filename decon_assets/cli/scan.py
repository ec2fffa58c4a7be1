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

from decon_assets.cli.command import Command, Say, filled, filled_path, positive
from decon_assets.cli.terminal.tables import text_table
from decon_core.config.policy import PRESETS, QUESTIONS_LEFT_OUT, RULES, Policy
from decon_core.errors import InputError, Problem, format_problems
from decon_core.scan.workers import usable_cores
from decon_core.wording import counted, have, hold, size

if TYPE_CHECKING:
    from decon_core.decisions.verdicts import Verdicts
    from decon_core.folder_scan.run import Outcome

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

Without --text and --messages, a file is read by its field text; a file that has none is read by the
fields that its first rows have, as `init` does, and a line says which files and by which option.
Names (of files and folders below PATH, or behind its wildcards) that begin with _ or . are no
shards.

exit codes: the first of these that holds
  2  an input is wrong; nothing was scanned
  1  a file was not looked at: it could not be read, or not one of its rows could (all others were
     scanned; the message names the fields that it has)
  3  something leaked, with --fail-on-leak
  4  every file was read, but not every row; with --allow-unreadable these rows do not count
  0  every row was looked at, whether or not something leaked
Fields that were not read, and may hold a question or an answer by the first rows of a file, are
named, but change no exit code.
The last line says how much was not looked at, in files, bytes and rows; OUT/ledger.jsonl has the
names and places.
"""


_MOST_FIELDS_TOLD = 5


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
        "--preset",
        choices=PRESETS,
        help="settings by one name, where --policy says nothing else; reference: the published "
        "rule, with normalize_unicode, strip_markup and keep_question_only off",
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
        help="field that holds the text of all files; nested: metadata.text (default: text, or as "
        "the first rows of a file look). Given several times (--text prompt --text chosen --text "
        "rejected), all of them make one document",
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
        "--fail-on-leak",
        action="store_true",
        help="end with exit code 3 when something leaked; question-only items are not leaks",
    )
    parser.add_argument(
        "--allow-unreadable",
        action="store_true",
        help="do not end with exit code 4 because of single rows that could not be read",
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
    from decon_core.folder_scan.run import CLEAN_FOLDER, Request, scan_folder

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
    for line in _answer(outcome, options):
        say(line)
    if options.clean_evals:
        if outcome.is_incomplete:
            say("benchmarks without what leaked: not written, because some files could not be read")
        else:
            say(f"benchmarks without what leaked: {options.out / CLEAN_FOLDER}")
    if unread := [*outcome.failed, *outcome.unread]:
        sys.stderr.write(f"\nnot read: {format_problems(unread)}\n")
    say(_looked_at(outcome))
    return _exit_code(options, outcome)


def _exit_code(options: argparse.Namespace, outcome: Outcome) -> int:
    if outcome.failed or outcome.is_incomplete:
        return 1
    if options.fail_on_leak and outcome.n_leaks:
        return 3
    return 4 if outcome.n_unreadable and not options.allow_unreadable else 0


def _looked_at(outcome: Outcome) -> str:
    """The last line: how much was not looked at, of all that there was."""
    n_unread = outcome.n_shards_unread + len(outcome.unread)
    n_single = outcome.n_unreadable - outcome.n_rows_unread
    left_out = []
    if n_unread:
        rows = f", {counted(outcome.n_rows_unread, 'row')}" if outcome.n_rows_unread else ""
        how_much = size(outcome.n_bytes_unread)
        left_out.append(f"{n_unread:,} of {counted(outcome.n_shards, 'shard')} ({how_much}{rows})")
    if n_single:
        left_out.append(
            f"{counted(n_single, 'row')} of the other shards"
            if n_unread
            else f"{n_single:,} of {counted(outcome.n_rows, 'row')}"
        )
    if outcome.skipped:
        how_much = size(outcome.n_bytes_skipped)
        left_out.append(f"{counted(len(outcome.skipped), 'file')} in other formats ({how_much})")
    if outcome.n_set_aside:
        left_out.append(
            f"{counted(outcome.n_set_aside, 'file')} below names that begin with _ or ."
        )
    left_out += _unread_fields(outcome)
    n_read = outcome.n_shards - n_unread
    done = (
        f"looked at {counted(outcome.n_documents, 'document')} in {n_read:,} of "
        f"{counted(outcome.n_shards, 'shard')}"
    )
    return f"{done}; NOT looked at: {', '.join(left_out)}" if left_out else f"{done}: all there is"


def _unread_fields(outcome: Outcome) -> list[str]:
    """Fields that may hold a question or an answer, and how many rows have them unread."""
    files: dict[str, dict[str, int]] = {}
    for one in outcome.unread_fields:
        files.setdefault(one.name, {})[one.file] = one.n_rows
    told = []
    for name, rows in [*files.items()][:_MOST_FIELDS_TOLD]:
        n_rows = sum(rows.values())
        where = next(iter(rows)) if len(rows) == 1 else counted(len(rows), "file")
        told.append(f"field {name!r} of {n_rows:,} row{'' if n_rows == 1 else 's'} in {where}")
    if (n_more := len(files) - len(told)) > 0:
        told.append(f"{n_more} more field{'' if n_more == 1 else 's'}")
    return told


def _policy(options: argparse.Namespace) -> Policy:
    from decon_core.folder_scan.run import load_policy

    preset = {"preset": options.preset} if options.preset else {}
    like = Policy.from_mapping(preset, where="--preset")
    policy = load_policy(options.policy, like=like) if options.policy else like
    return replace(policy, detectors=options.detectors) if options.detectors else policy


def _verdicts(path: Path | None) -> Verdicts:
    from decon_core.decisions.verdicts import NO_VERDICTS, read_verdicts

    if path is None:
        return NO_VERDICTS
    if not path.is_file():
        expected = "a file of verdicts, as `decon-assets review` writes them"
        raise InputError(Problem(str(path), "no such file", expected))
    return read_verdicts(path)


def _fields(names: list[str] | None) -> str | tuple[str, ...] | None:
    """One field is a plain text, with no parts; none named: each file as it looks."""
    if not names:
        return None
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


def _answer(outcome: Outcome, options: argparse.Namespace) -> Iterator[str]:
    from decon_core.folder_scan.run import (
        COMMON_FILE,
        COMPAT_FOLDER,
        INDEXABILITY_FILE,
        LEDGER_FILE,
        MATCHES_FILE,
    )

    out: Path = options.out
    yield _table(outcome)
    yield (
        f"\n{outcome.n_contaminated_documents:,} of "
        f"{counted(outcome.n_documents, 'document')} "
        f"{hold(outcome.n_contaminated_documents)} a leak; "
        f"{outcome.n_too_short:,} were too short to hold anything"
    )
    yield _question_only(outcome)
    if not _policy(options).keep_question_only:
        yield f"of questions without their answer {QUESTIONS_LEFT_OUT}"
    if outcome.n_unreadable:
        yield (
            f"{counted(outcome.n_unreadable, 'row')} could not be read: {out / LEDGER_FILE} says "
            "which"
        )
    if outcome.n_invalid_utf8:
        yield (
            f"{counted(outcome.n_invalid_utf8, 'document')} {have(outcome.n_invalid_utf8)} "
            f"bytes that are not UTF-8, scanned as U+FFFD: {out / LEDGER_FILE} says where"
        )
    if outcome.n_shards_unread:
        yield (
            f"{outcome.n_shards_unread:,} of {counted(outcome.n_shards, 'shard')} could not be read"
        )
    if any(outcome.n_unseen.values()):
        told = ", ".join(f"{rule} {n:,}" for rule, n in outcome.n_unseen.items() if n)
        yield f"items that a rule cannot see: {told}; {out / INDEXABILITY_FILE} says why"
    if outcome.n_common:
        yield (
            f"{outcome.n_common:,} n-grams of the benchmarks stand in so many documents that they "
            f"are no evidence: {out / COMMON_FILE}"
        )
    yield f"matches: {out / MATCHES_FILE}"
    if options.compat:
        yield f"reference form: {out / COMPAT_FOLDER}"


def _question_only(outcome: Outcome) -> str:
    """Documents that are neither a leak nor clean; also said where there are none."""
    n = outcome.n_question_only_documents
    more = " (question-only): this is no leak, and not clean" if n else " (question-only)"
    return f"{counted(n, 'document')} {hold(n)} a question without its answer{more}"


def _table(outcome: Outcome) -> str:
    """Per benchmark what leaked, by each rule and by all of them; and question-only items."""
    rules = [*outcome.benchmarks[0].n_items_by_rule] if outcome.benchmarks else []
    if len(rules) < 2:
        rules = []
    by_rule = (*rules, "all of them") if rules else ()
    return text_table(
        ("benchmark", "items", "leaked", *by_rule, "question-only", "leaks", "documents"),
        [
            (
                count.benchmark,
                count.n_items,
                count.n_leaked_items,
                *(count.n_items_by_rule[rule] for rule in rules),
                *([count.n_items_by_all] if rules else []),
                count.n_question_only_items,
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
        self.step(f"{counted(n_shards, 'shard')} to scan, {size(n_bytes)} on the disk")

    def update(self, done: int, of: int, n_bytes: int, n_bytes_in_all: int, seconds: float) -> None:
        is_last = done == of
        now = time.monotonic()
        if now - self._told_at < _SECONDS_BETWEEN[self._is_terminal] and not is_last:
            return
        self._told_at = now
        line = f"{done:,} of {counted(of, 'shard')}, {size(n_bytes)}"
        if n_bytes and seconds:
            rate = n_bytes / seconds
            left = (n_bytes_in_all - n_bytes) / rate
            line += f" at {size(rate)}/s"
            line += f" in {_span(seconds)}" if is_last else f", {_span(left)} left"
        self._stream.write(f"\r{line}\x1b[K" if self._is_terminal else f"{line}\n")
        self._stream.flush()
        self._is_line_open = self._is_terminal

    def end(self) -> None:
        if self._is_line_open:
            self._stream.write("\n")
            self._is_line_open = False


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


COMMAND = Command(scan, (add_arguments,), DESCRIPTION, EPILOG)
