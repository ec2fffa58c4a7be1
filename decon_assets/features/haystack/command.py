"""`decon-assets haystack`: rank planted items among documents by quality scorers."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.terminal.options import ConfigPath, Workers, optional, repeatable
from decon_assets.terminal.output import say, say_table, warn
from decon_assets.terminal.progress import ShardProgress
from decon_core.config.load import Config, load_config
from decon_core.config.open_store import open_store
from decon_core.config.validation import SettingsReader
from decon_core.errors import ConfigError, Problem
from decon_core.execution.jobs import wanted_workers
from decon_core.features.haystack.settings import Haystack
from decon_core.storage.files import write_text
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.features.haystack.run import Study

_PICKLES = "sklearn: opening a pickle runs the code in it; use only files that you trust"


def haystack_command(
    *,
    out: Path | None = optional(
        "write haystack.json, .csv, .svg and .md, amplification.csv and .svg, planted.jsonl", "DIR"
    ),
    changes: list[str] = repeatable(
        "replace a setting of [haystack]; the value is written as in TOML",
        "KEY=VALUE",
        name="--set",
    ),
    planted: Path | None = optional(
        "only write the planted items with their texts, one JSON object per line", "FILE"
    ),
    workers: Workers = None,
    config: ConfigPath,
) -> int:
    """Plant test items among documents of the corpus, and rank them with quality scorers.

    A filter that keeps the documents with the highest scores keeps some kinds of text more often
    than others. If it favors text that looks like a benchmark, leaked test items become more
    frequent in the filtered corpus. The command draws documents from the registered corpus and
    items from the benchmarks. It writes each item as a document with question, choices and answer,
    and scores all documents. For each scorer, it prints the median percentile of the items
    and the amplification at each cut: the share of items kept divided by the share of documents
    kept.

    Scorers:
      instruction_like      trained in each run to separate instructions,
                            conversations and training items from the corpus
      educational           trained in each run to separate teaching texts from
                            the corpus
      short                 scores shorter texts higher, to show how much length
                            alone explains
      fasttext:FILE:LABEL   a fastText classifier (pip install fasttext-wheel)
      sklearn:FILE[:LABEL]  a pickled pipeline (pip install scikit-learn);
                            a pickle can run any code
      onnx:FILE[:LABEL]     a model that takes strings, or tokens if
                            tokenizer.json is in the same folder
                            (pip install onnxruntime)
      endpoint:URL          receives POST {"input": [text, ...]} and answers
                            {"scores": [number, ...]}
      column:NAME=FILE      a number in the rows of the corpus, such as
                            metadata.quality; FILE contains the scores of the
                            planted items

    Settings come from [haystack] in the configuration. Missing settings have their defaults, and
    --set replaces single settings.

    Examples:
      decon-assets haystack
      decon-assets haystack --set 'scorers=["fasttext:quality.bin:__label__hq"]' --out study
      decon-assets haystack --set 'benchmarks=["gsm8k"]' --set items=10 --set cuts=[0.05]
      decon-assets haystack --planted planted.jsonl

    Exit codes: 0 done; 1 an endpoint does not answer; 2 invalid input.
    """
    from decon_core.features.haystack.page import planted_lines, write
    from decon_core.features.haystack.planted import choose_items
    from decon_core.features.haystack.product import PAGE
    from decon_core.features.haystack.run import run_haystack
    from decon_core.planner import Plan

    loaded = load_config(config)
    settings = _settings(loaded, changes)
    plan = Plan(loaded, open_store(loaded))
    versions = plan.current_versions
    if planted:
        planting = choose_items(plan.store, versions, settings)
        write_text(planted, planted_lines(planting.planted))
        say(f"{counted(len(planting.planted), 'planted item')}: {planted}")
        return 0
    if any(name.kind == "sklearn" for name in settings.scorer_names):
        warn(_PICKLES)
    with ShardProgress(sys.stderr):
        study = run_haystack(
            plan.store, plan.packs, versions, settings, workers=workers or wanted_workers()
        )
    _say(study)
    if out:
        write(study, out)
        say(f"\n{out / PAGE}")
    return 0


def _settings(config: Config, changes: Sequence[str]) -> Haystack:
    """Return the settings of the configuration, or the defaults, with these changes.

    Raises ConfigError with all problems of the changes.
    """
    try:
        given = tomllib.loads("\n".join(changes))
    except tomllib.TOMLDecodeError as error:
        expected = "settings as in TOML, such as items=10"
        raise ConfigError(Problem("--set", f"{', '.join(changes)} ({error})", expected)) from None
    sources = [source.name for source in config.corpus.sources]
    reader = SettingsReader("--set", folder=Path.cwd(), names={"sources": sources})
    base = asdict(config.table(Haystack) or Haystack())
    base = {name: value for name, value in base.items() if value is not None}
    if "scorers" in given:  # the file's endpoint settings do not apply to these scorers
        base = {k: v for k, v in base.items() if k not in ("model", "key_env")}
    table = reader.table(Haystack, "haystack", {**base, **given})
    settings = table and table.checked(reader)
    if reader.problems or settings is None:
        raise ConfigError(reader.problems)
    return settings


def _say(study: Study) -> None:
    from decon_core.features.haystack import page

    planted = counted(len(study.planting.planted), "item")
    say(f"{planted} planted among {counted(len(study.drawn.haystack), 'document')}\n")
    tables = page.tables(page.as_json(study))
    say_table(*tables["percentiles"])
    say()
    say_table(*tables["amplification"])
    say(f"\n{page.NOTE}")
    for scored in study.scored:
        if scored.n_without_score:
            n_documents = counted(scored.n_without_score, "document")
            warn(f"{scored.name}: {n_documents} without a score, left out")
    n_unreadable = sum(source.n_unreadable for source in study.drawn.counts)
    if n_unreadable:
        warn(f"\nnot read: {counted(n_unreadable, 'row')}, for example:")
        for place in study.drawn.unreadable:
            warn(f"  {place}")
