"""`decon-assets scan`: scan any folder, without Dagster."""

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

from decon_assets.cli.command import Command, Say, nonempty, nonempty_path, positive
from decon_assets.cli.terminal.tables import text_table
from decon_core.config import detectors as registry
from decon_core.config.policy import PRESETS, QUESTIONS_LEFT_OUT, Policy
from decon_core.errors import InputError, Problem, format_problems
from decon_core.scan.workers import usable_cores
from decon_core.wording import counted, have, hold, size

if TYPE_CHECKING:
    from decon_core.decisions.verdicts import Verdicts
    from decon_core.folder_scan.run import Outcome

DESCRIPTION = """\
Search a folder of training data for benchmark items, without Dagster or a configuration.

The command writes OUT/matches.parquet (every match at or above the evidence floor, with its score
and whether it is a leak), OUT/ledger.jsonl (the rows read of each shard, and unreadable ones),
OUT/indexability.parquet (which items each detector can find, and why not the others),
OUT/common.parquet (n-grams too common in the corpus to be evidence) and OUT/summary.json.

A second scan does only what is missing: new shards, or the rest after a stopped run. Other
benchmarks change the idf weights, so everything is scanned again. Finished work is in OUT/.store.
"""

EPILOG = """\
examples:
  decon-assets scan --evals evals.yaml --corpus shards/ --out found
  decon-assets scan --evals bundled/ --corpus 'web/**/*.jsonl.zst' --out found --workers 8
  decon-assets scan --evals bundled/ --corpus chats/ --messages messages --role user --out found
  decon-assets scan --evals bundled/ --corpus pairs/ --text chosen --text rejected --out found
  decon-assets scan ... --policy policy.toml      a file with, for example, sampling = "reference"
  decon-assets scan ... --compat --fail-on-leak   in a test: exit code 3 if anything leaked
  duckdb -c "FROM 'found/matches.parquet' WHERE is_contaminated"

Without --text and --messages, the field `text` is read. For a file without it, the fields are
guessed from its first rows, as `init` does, and a line names the files and the option to set.
Files and folders below PATH, or matched by its wildcards, are skipped if their names begin with _
or a dot.

Exit codes (the first that applies):
  2  an input is wrong; nothing was scanned
  1  a file was not scanned: it, or every row of it, could not be read (all others were scanned; the
     message names the fields that it has)
  3  something leaked, with --fail-on-leak
  4  every file was read, but not every row; with --allow-unreadable these rows do not count
  0  every row was scanned, whether or not something leaked
Fields that were not read, and whose first rows look like questions or answers, are listed, but
change no exit code.
The last line says how much was not scanned, in files, bytes and rows; OUT/ledger.jsonl lists them.
"""


_MOST_FIELDS_LISTED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--evals",
        type=nonempty_path,
        required=True,
        metavar="PATH",
        help="a recipe file (.yaml), or normalized records: a JSONL file or a folder of them",
    )
    parser.add_argument(
        "--corpus",
        type=nonempty,
        required=True,
        metavar="PATH",
        help="a folder (read recursively), a file, or a quoted glob",
    )
    parser.add_argument(
        "--out", type=nonempty_path, required=True, metavar="DIR", help="the output folder"
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="TOML file with policy settings (docs/detector.md), at top level or in [policy]",
    )
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        help="a named set of defaults, which --policy overrides; reference: AI2 decon as "
        "published, with normalize_unicode, strip_markup and keep_question_only off",
    )
    parser.add_argument(
        "--verdicts",
        type=Path,
        metavar="FILE",
        help="verdicts of a manual review (docs/review.md), which override scores",
    )
    parser.add_argument(
        "--detectors",
        type=detector_names,
        metavar="NAMES",
        help=f"detectors, comma-separated: {', '.join(registry.names())} (default: the policy's, "
        "decon); docs/detectors.md helps to choose",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="number of processes, or of threads for small inputs (default 1; "
        f"{usable_cores()} cores here)",
    )
    content = parser.add_mutually_exclusive_group()
    content.add_argument(
        "--text",
        action="append",
        metavar="FIELD",
        help="field with the text, for all files; nested: metadata.text (default: text, else "
        "guessed from the first rows of a file). May be repeated (--text prompt --text chosen "
        "--text rejected): the fields together make one document",
    )
    content.add_argument(
        "--messages", metavar="FIELD", help="field with a conversation, instead of --text"
    )
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE",
        help="with --messages: read only turns of this role; may be repeated",
    )
    parser.add_argument(
        "--id", default="id", metavar="FIELD", help="field with the document id (default: id)"
    )
    parser.add_argument(
        "--compat",
        action="store_true",
        help="also write OUT/compat/: reports in the format of AI2's decon, one file per shard",
    )
    parser.add_argument(
        "--clean-evals",
        action="store_true",
        help="also write OUT/clean/: the benchmarks without their leaked items, and a manifest",
    )
    parser.add_argument(
        "--fail-on-leak",
        action="store_true",
        help="exit with code 3 if anything leaked; question-only items are not leaks",
    )
    parser.add_argument(
        "--allow-unreadable",
        action="store_true",
        help="do not exit with code 4 because of single unreadable rows",
    )


def detector_names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of detectors."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted({*names}.difference(registry.names()))
    if unknown or not names or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a comma-separated list of {', '.join(registry.names())}, "
            "each at most once"
        )
    return names


def scan(options: argparse.Namespace, say: Say) -> int:
    """Scan; print results with `say` and progress to stderr; return the exit code."""
    from decon_core.folder_scan.run import CLEAN_FOLDER, Request, scan_folder

    if options.role and not options.messages:
        raise InputError(Problem("--role", "no --messages", "--messages with --role"))
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
    with show_log(progress):
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
            say("clean benchmarks: not written, because some files could not be read")
        else:
            say(f"clean benchmarks: {options.out / CLEAN_FOLDER}")
    if unread := [*outcome.failed, *outcome.unread]:
        sys.stderr.write(f"\nnot read: {format_problems(unread)}\n")
    say(_format_coverage(outcome))
    return _exit_code(options, outcome)


def _exit_code(options: argparse.Namespace, outcome: Outcome) -> int:
    if outcome.failed or outcome.is_incomplete:
        return 1
    if options.fail_on_leak and outcome.n_leaks:
        return 3
    return 4 if outcome.n_unreadable and not options.allow_unreadable else 0


def _format_coverage(outcome: Outcome) -> str:
    """Return the last line: how much of the input was scanned, and what was not."""
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
            f"{counted(outcome.n_set_aside, 'file')} with a name or folder that begins with _ or ."
        )
    left_out += _unread_fields(outcome)
    n_read = outcome.n_shards - n_unread
    done = (
        f"scanned {counted(outcome.n_documents, 'document')} in {n_read:,} of "
        f"{counted(outcome.n_shards, 'shard')}"
    )
    return f"{done}; NOT scanned: {', '.join(left_out)}" if left_out else f"{done}: complete"


def _unread_fields(outcome: Outcome) -> list[str]:
    """Describe unread fields that may hold a question or an answer, with their rows."""
    files: dict[str, dict[str, int]] = {}
    for field in outcome.unread_fields:
        files.setdefault(field.name, {})[field.file] = field.n_rows
    lines = []
    for name, rows in [*files.items()][:_MOST_FIELDS_LISTED]:
        where = next(iter(rows)) if len(rows) == 1 else counted(len(rows), "file")
        lines.append(f"field {name!r} of {counted(sum(rows.values()), 'row')} in {where}")
    if (n_more := len(files) - len(lines)) > 0:
        lines.append(counted(n_more, "more field"))
    return lines


def _policy(options: argparse.Namespace) -> Policy:
    from decon_core.folder_scan.run import load_policy

    preset = {"preset": options.preset} if options.preset else {}
    base = Policy.from_mapping(preset, where="--preset")
    policy = load_policy(options.policy, like=base) if options.policy else base
    return replace(policy, detectors=options.detectors) if options.detectors else policy


def _verdicts(path: Path | None) -> Verdicts:
    from decon_core.decisions.verdicts import NO_VERDICTS, read_verdicts

    if path is None:
        return NO_VERDICTS
    if not path.is_file():
        expected = "a file of verdicts, as `decon-assets review` writes it"
        raise InputError(Problem(str(path), "no such file", expected))
    return read_verdicts(path)


def _fields(names: list[str] | None) -> str | tuple[str, ...] | None:
    """Return the text fields: None to guess them, a string for one, else a tuple of parts."""
    if not names:
        return None
    return names[0] if len(names) == 1 else tuple(names)


class _ProgressHandler(logging.Handler):
    """Print log records of the core among the progress."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.step(record.getMessage())


@contextmanager
def show_log(progress: Progress) -> Iterator[None]:
    """Show the core's log among the progress until the block ends."""
    logger = logging.getLogger("decon_core")
    handler = _ProgressHandler(progress)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
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
        f"{outcome.n_too_short:,} were too short to match anything"
    )
    yield _question_only(outcome)
    if not _policy(options).keep_question_only:
        yield f"of questions without their answer {QUESTIONS_LEFT_OUT}"
    if outcome.n_unreadable:
        yield (f"{counted(outcome.n_unreadable, 'row')} could not be read: see {out / LEDGER_FILE}")
    if outcome.n_invalid_utf8:
        yield (
            f"{counted(outcome.n_invalid_utf8, 'document')} {have(outcome.n_invalid_utf8)} "
            f"bytes that are not UTF-8, scanned as U+FFFD: see {out / LEDGER_FILE}"
        )
    if outcome.n_shards_unread:
        yield (
            f"{outcome.n_shards_unread:,} of {counted(outcome.n_shards, 'shard')} could not be read"
        )
    if any(outcome.n_unseen.values()):
        counts = ", ".join(f"{name} {n:,}" for name, n in outcome.n_unseen.items() if n)
        yield f"items that a detector cannot find: {counts}; see {out / INDEXABILITY_FILE}"
    if outcome.n_common:
        n_common = f"{outcome.n_common:,}; see {out / COMMON_FILE}"
        yield f"n-grams too common in the corpus to be evidence: {n_common}"
    yield f"matches: {out / MATCHES_FILE}"
    if options.compat:
        yield f"reports in AI2 decon's format: {out / COMPAT_FOLDER}"


def _question_only(outcome: Outcome) -> str:
    """Return the line on question-only documents, also if there are none."""
    n = outcome.n_question_only_documents
    more = " (question-only): neither a leak nor clean" if n else " (question-only)"
    return f"{counted(n, 'document')} {hold(n)} a question without its answer{more}"


def _table(outcome: Outcome) -> str:
    """Format leaked items per benchmark, by each detector and by all, and question-only items."""
    detectors = [*outcome.benchmarks[0].n_items_by_rule] if outcome.benchmarks else []
    if len(detectors) < 2:
        detectors = []
    by_detector = (*detectors, "all of them") if detectors else ()
    return text_table(
        ("benchmark", "items", "leaked", *by_detector, "question-only", "leaks", "documents"),
        [
            (
                count.benchmark,
                count.n_items,
                count.n_leaked_items,
                *(count.n_items_by_rule[name] for name in detectors),
                *([count.n_items_by_all] if detectors else []),
                count.n_question_only_items,
                count.n_leaks,
                count.n_documents,
            )
            for count in outcome.benchmarks
        ],
    )


_SECONDS_BETWEEN = {True: 0.2, False: 10.0}  # on a terminal, which redraws one line; elsewhere


class Progress:
    """Print shards done, rate and time left: on a terminal in one line, else every 10 seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._printed_at = -1e9
        self._is_line_open = False

    def step(self, line: str) -> None:
        self.end()
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def begin(self, n_shards: int, n_bytes: int) -> None:
        self.step(f"{counted(n_shards, 'shard')} to scan, {size(n_bytes)} on disk")

    def update(
        self, n_done: int, n_shards: int, n_bytes: int, n_bytes_in_all: int, seconds: float
    ) -> None:
        is_last = n_done == n_shards
        now = time.monotonic()
        if now - self._printed_at < _SECONDS_BETWEEN[self._is_terminal] and not is_last:
            return
        self._printed_at = now
        line = f"{n_done:,} of {counted(n_shards, 'shard')}, {size(n_bytes)}"
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
