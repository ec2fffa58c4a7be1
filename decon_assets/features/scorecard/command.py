"""`decon-assets scorecard`: plant leaks on purpose, and measure what each detector finds.

With `--pairs` it measures metrics on labelled pairs of texts instead (`pairs.py`).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from decon_assets.features.scorecard.pairs import score_labelled_pairs
from decon_assets.terminal.options import PolicyFile, detectors_in, option, optional, repeatable
from decon_assets.terminal.output import say, say_rows, say_table
from decon_assets.terminal.progress import ShardProgress
from decon_core.config import detector_registry as registry
from decon_core.config.policy import Policy
from decon_core.storage.files import write_text

if TYPE_CHECKING:
    from polars import DataFrame

    from decon_core.features.scorecard.marks import Marks


def scorecard_command(
    *,
    evals: Path = option(
        "a recipe file (.yaml), or normalized records: a JSONL file or a folder of them",
        "PATH",
        show_default=True,
        default=Path("data/evals.yaml"),
    ),
    texts: Path = option(
        "texts to plant items in: a .zip or .txt file, or shards with a field `text` or "
        "`messages`, or a folder of them",
        "PATH",
        show_default=True,
        default=Path("data/corpus"),
    ),
    out: Path | None = optional("the output folder; optional with --pairs", "DIR"),
    policy: PolicyFile = None,
    detectors: str = option(
        f"detectors, comma-separated: {', '.join(registry.names())} (default: all)",
        "NAMES",
        default="all",
    ),
    per_transformation: int = option(
        "plantings per transformation and hard negative (default 20; with 60, a recall of "
        "90 % is accurate to within about 8 %)",
        "N",
        min=1,
        default=20,
    ),
    background: int = option("documents left unchanged (default 500)", "N", min=0, default=500),
    seed: int = option("random seed (default 0)", "N", default=0),
    workers: int = option("number of processes or threads (default 1)", "N", min=1, default=1),
    page: Path | None = optional(
        "also write the page to this file, and its picture to images/ in the same folder", "FILE"
    ),
    pairs: Path | None = optional(
        "instead of planting: labelled pairs of texts (JSON Lines, JSON, CSV or Parquet, also "
        "compressed) with the columns original, other, label (true: a duplicate) and optionally "
        "kind",
        "FILE",
    ),
    embedder: list[str] = repeatable(
        "with --pairs: wordllama, minilm, a local sentence-transformers folder, or the URL of an "
        "OpenAI-compatible endpoint (default: whichever of the first two are installed)",
        "NAME",
    ),
    model: str | None = optional("with the URL of an endpoint: the name of its model", "NAME"),
    key_env: str | None = optional(
        "with the URL of an endpoint: the environment variable with its key",
        "VARIABLE",
        name="--key-env",
    ),
) -> int:
    """Plant benchmark items in texts, scan them with every detector, and report what each one
    finds.

    Use it to choose a detector or its settings for your own texts. The command does not change your
    files, and you need not scan them first.

    The items are planted unchanged and with about forty transformations, such as changed line
    breaks, replaced words, other numbers, or a missing answer. Hard negatives look like leaks but
    are not, for example the same template with other content, or a passage without its question.
    docs/scorecard.md lists all of them. The seed determines all random choices.

    The command writes to the folder OUT: scorecard.md and scorecard.svg, a CSV file for each table,
    findings.parquet (every pair of document and item that a detector found) and planted/ (the
    shards, and what was planted in them). OUT is written completely or not at all, and replaces an
    earlier scorecard.

    The policy settings `detectors` and `leave_out_common` are ignored.

    With --pairs, nothing is planted. Instead, the command computes similarity metrics for each
    labelled pair of texts, and prints how well each metric separates duplicates from other pairs.
    It writes pairs.md, pairs.json and pairs.csv to OUT; docs/pair-metrics.md explains the columns.
    Of the planting options, only --seed has an effect.

    Examples:
      decon-assets scorecard --out card                  on the sample data
      decon-assets scorecard --evals evals.yaml --texts shards/ --out card
      decon-assets scorecard --policy policy.toml --out card     the effect of other settings
      duckdb -c "FROM 'card/recall.csv' WHERE transformation = 'words replaced'"
      decon-assets scorecard --pairs pairs.jsonl --out card

    Exit codes: 0 done; 2 invalid input; 4 some rows of the pairs file were left out.
    """
    if pairs:
        return score_labelled_pairs(
            pairs, embedders=embedder, model=model, key_env=key_env, seed=seed, out=out
        )
    if out is None:
        raise typer.BadParameter("--out is required: the folder to write the scorecard to")
    from decon_core.benchmarks.folder import records_in
    from decon_core.config.load import load_policy
    from decon_core.features.scorecard.corpora import hosts_below
    from decon_core.features.scorecard.run import PAGE_FILE, run_scorecard

    chosen = registry.names() if detectors == "all" else detectors_in(detectors)
    settings = load_policy(policy) if policy else Policy()
    hosts = hosts_below(texts)
    repeated: dict[str, object] = {  # the options that repeat this scorecard
        "--evals": evals,
        "--texts": texts,
        "--policy": policy,
        "--detectors": ",".join(chosen) if chosen != registry.names() else None,
        "--per-transformation": per_transformation,
        "--background": background,
        "--seed": seed,
        "--out": "DIR",
    }
    typed = (
        f"{name} {shlex.quote(str(value))}" for name, value in repeated.items() if value is not None
    )
    with ShardProgress(sys.stderr) as progress:
        records = records_in(evals)
        card = run_scorecard(
            records,
            hosts,
            replace(settings, detectors=chosen),
            out,
            per_transformation=per_transformation,
            n_background=background,
            seed=seed,
            workers=workers,
            about={
                "made by": f"`decon-assets scorecard {' '.join(typed)}`",
                "benchmarks": f"{', '.join(sorted(records))}, from `{evals}`",
                "texts": f"`{texts}`",
            },
            on_step=progress.step,
            on_progress=progress.update,
        )
    _say_marks(card.marks)
    if page:
        picture = page.parent / "images" / f"{page.stem}.svg"
        write_text(picture, card.picture())
        write_text(page, card.page(image=picture.relative_to(page.parent).as_posix()))
    say(f"\npage: {page or out / PAGE_FILE}")
    return 0


def _say_marks(marks: Marks) -> None:
    heads = ("n", *marks.detectors, "no answer")
    say("planted items found, in percent\n")
    by_transformation = _shares(marks.recall, ("transformation", "grade"), "recall")
    say_table(("transformation", "grade", *heads), by_transformation)
    say("\nhard negatives flagged, in percent\n")
    negatives = _shares(marks.negatives, ("negative",), "false_alarm_rate")
    say_table(("hard negative", *heads), negatives)
    say()
    rows = [
        {
            "detector": row["detector"],
            "recall %": _percent(row["recall"]),
            "precision %": _percent(row["precision"]),
            "average precision": row["average_precision"],
            "background": row["n_background"],
            "flagged": row["n_background_flagged"],
            "no answer": row["n_background_no_answer"],
        }
        for row in marks.totals.iter_rows(named=True)
    ]
    say_rows(rows)


def _shares(table: DataFrame, keys: Sequence[str], share: str) -> list[tuple[object, ...]]:
    """Return a row for each key: n, the share of each detector, and of no-answer places."""
    from decon_core.features.scorecard.page import by_detector

    rows = []
    for group in by_detector(table, *keys):
        shares = [_percent(row[share]) for row in group["by_detector"].values()]
        finder = group["no_answer"]
        no_answer = _percent(finder and finder["n_no_answer"] / finder["n"])
        rows.append((*(group[name] for name in (*keys, "n")), *shares, no_answer))
    return rows


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
