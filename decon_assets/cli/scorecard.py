"""`decon-assets scorecard`: plant leaks on purpose, and measure what each detector finds."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.cli.command import Command, Say, positive
from decon_assets.cli.scan import Progress, detector_names, show_log
from decon_assets.cli.terminal.tables import text_table
from decon_core.config import detectors as registry
from decon_core.config.policy import Policy

if TYPE_CHECKING:
    from decon_core.quality.scorecard.marks import Marks
    from decon_core.quality.scorecard.run import Scorecard

DESCRIPTION = """\
Plant benchmark items into texts, scan them with every detector, and report what each one finds.

The items are planted unchanged and in some forty transformations: other case and line breaks,
mark-up, words replaced, deleted and inserted, truncated, without the answer, choices in another
order, other numbers and names, over two chat turns. Hard negatives look like leaks and are none:
the same template with other content, a passage without its question, items that are not in the
index, text generated to resemble the benchmark. The seed determines everything.

The command writes into the folder OUT: scorecard.md and scorecard.svg to read, a CSV for each
table, calls.parquet (every document and item that a detector found) and planted/ (the shards, and
their truth). OUT is written completely or not at all, and replaces an earlier scorecard.
"""

EPILOG = """\
examples:
  decon-assets scorecard --out card                  on the sample data
  decon-assets scorecard --evals evals.yaml --texts shards/ --out card
  decon-assets scorecard --evals records/ --texts texts/ --per-transformation 60 \\
      --background 2000 --out card --page docs/scorecard.md
  decon-assets scorecard --policy policy.toml --out card     the effect of other settings
  decon-assets scorecard --detectors decon,ratcliff --out card
  duckdb -c "FROM 'card/recall.csv' WHERE transformation = 'words replaced'"

The texts are not changed, and need not be scanned before. Exit codes: 0 done, 2 an input is wrong.
"""

_SAMPLE = Path("data")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--evals",
        type=Path,
        default=_SAMPLE / "evals.yaml",
        metavar="PATH",
        help="a recipe file (.yaml), or normalized records: a JSONL file or a folder of them "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        default=_SAMPLE / "corpus",
        metavar="PATH",
        help="where to plant: a .zip or .txt of texts, or shards with a field `text` or "
        "`messages`, or a folder of them (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the output folder")
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="TOML file with policy settings (docs/detector.md), at top level or in [policy]; "
        "`detectors` and `leave_out_common` are ignored, the latter because items are planted "
        "many times",
    )
    parser.add_argument(
        "--detectors",
        type=_detectors,
        default=registry.names(),
        metavar="NAMES",
        help=f"detectors, comma-separated: {', '.join(registry.names())} (default: all)",
    )
    parser.add_argument(
        "--per-transformation",
        type=positive,
        default=20,
        metavar="N",
        help="plantings of each transformation and hard negative (default 20; with 60, a recall "
        "of 90 %% is accurate to about 8 %%)",
    )
    parser.add_argument(
        "--background",
        type=_not_negative,
        default=500,
        metavar="N",
        help="documents left unchanged (default 500)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default 0)")
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="number of processes or threads (default 1)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write the page to this file, and its picture to images/ beside it",
    )


def _detectors(text: str) -> tuple[str, ...]:
    return registry.names() if text == "all" else detector_names(text)


def _not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is not 0 or more")
    return number


def scorecard(options: argparse.Namespace, say: Say) -> int:
    """Make a scorecard; print tables with `say` and progress to stderr."""
    from decon_core.benchmarks.folder import records_in
    from decon_core.folder_scan.run import load_policy
    from decon_core.quality.scorecard.corpora import hosts_below
    from decon_core.quality.scorecard.run import PAGE_FILE, run_scorecard

    policy = load_policy(options.policy) if options.policy else Policy()
    hosts = hosts_below(options.texts)
    progress = Progress(sys.stderr)
    with show_log(progress):
        records = records_in(options.evals)
        card = run_scorecard(
            records,
            hosts,
            replace(policy, detectors=options.detectors),
            options.out,
            per_transformation=options.per_transformation,
            n_background=options.background,
            seed=options.seed,
            workers=options.workers,
            about={
                "made by": f"`{_command(options)}`",
                "benchmarks": f"{', '.join(sorted(records))}, from `{options.evals}`",
                "texts": f"`{options.texts}`",
            },
            on_step=progress.step,
            on_progress=progress.update,
        )
    progress.end()
    for line in _tables(card.marks):
        say(line)
    if options.page:
        _write_page(card, options.page)
    say(f"\npage: {options.page or options.out / PAGE_FILE}")
    return 0


def _command(options: argparse.Namespace) -> str:
    """Return the command line that repeats this scorecard, with a placeholder for --out."""
    parts = ["decon-assets scorecard", f"--evals {shlex.quote(str(options.evals))}"]
    parts.append(f"--texts {shlex.quote(str(options.texts))}")
    if options.policy:
        parts.append(f"--policy {shlex.quote(str(options.policy))}")
    if options.detectors != registry.names():
        parts.append(f"--detectors {','.join(options.detectors)}")
    parts.append(f"--per-transformation {options.per_transformation}")
    parts += [f"--background {options.background}", f"--seed {options.seed}", "--out DIR"]
    return " ".join(parts)


def _tables(marks: Marks) -> Iterator[str]:
    names = ("n", *marks.detectors)
    rows: dict[tuple[str, str], list[object]] = {}
    questions: dict[tuple[str, str], float | None] = {}
    for row in marks.recall.iter_rows(named=True):
        key = row["transformation"], row["grade"]
        rows.setdefault(key, [row["n"]]).append(_percent(row["recall"]))
        if registry.get(row["rule"]).finds_question_only:
            questions[key] = _percent(row["n_question_only"] / row["n"])
    yield "planted items found, in percent\n"
    heads = ("transformation", "grade", *names, "question-only")
    yield text_table(heads, [(*key, *rows[key], questions.get(key)) for key in rows])
    alarms: dict[str, list[object]] = {}
    question_only: dict[str, float | None] = {}
    for row in marks.negatives.iter_rows(named=True):
        alarms.setdefault(row["negative"], [row["n"]]).append(_percent(row["false_alarm_rate"]))
        if registry.get(row["rule"]).finds_question_only:
            question_only[row["negative"]] = _percent(row["n_question_only"] / row["n"])
    yield "\nhard negatives flagged, in percent\n"
    heads = ("hard negative", *names, "question-only")
    yield text_table(heads, [(name, *alarms[name], question_only.get(name)) for name in alarms])
    yield ""
    yield text_table(
        (
            *("detector", "recall %", "precision %", "average precision", "background", "flagged"),
            "question-only",
        ),
        [
            (
                row["rule"],
                _percent(row["recall"]),
                _percent(row["precision"]),
                row["average_precision"],
                row["n_background"],
                row["n_background_flagged"],
                row["n_background_question_only"],
            )
            for row in marks.totals.iter_rows(named=True)
        ],
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


def _write_page(card: Scorecard, path: Path) -> None:
    from decon_core.storage.store import atomic_path

    picture = path.parent / "images" / f"{path.stem}.svg"
    page = card.page(image=picture.relative_to(path.parent).as_posix())
    for file, text in ((picture, card.picture()), (path, page)):
        with atomic_path(file) as draft:
            draft.write_text(text, encoding="utf-8")


COMMAND = Command(scorecard, (add_arguments,), DESCRIPTION, EPILOG)
