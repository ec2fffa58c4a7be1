"""Run a scorecard: plant, scan with every chosen detector, compare, and write the results.

The scan is that of the pipeline: records are saved without the held-out items, idf is frozen from
them, and scan results become entries at the policy's thresholds.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import save_records
from decon_core.config.detector_registry import names_where
from decon_core.config.policy import Policy
from decon_core.corpus.packs import FILES, Pack, find_shards, hashes_below
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import InputError, Problem
from decon_core.features.scorecard.items import ItemKey
from decon_core.features.scorecard.marks import FINDINGS, Marks, mark
from decon_core.features.scorecard.page import markdown, svg
from decon_core.features.scorecard.plan import Plan, Tally, indexed_records, plan
from decon_core.features.scorecard.planted_shards import (
    PlantedCorpus,
    read_truth,
    sources,
    write_planted_corpus,
)
from decon_core.index.parts import build_part
from decon_core.index.term_weights import freeze
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scanner import Progress, scan_packs
from decon_core.storage.drafts import remove
from decon_core.storage.files import atomic_path, write_json
from decon_core.storage.store import Store
from decon_core.wording import counted

PAGE_FILE = "scorecard.md"
PICTURE_FILE = "scorecard.svg"
FINDINGS_FILE = "findings.parquet"  # the matches of each detector, by document
SUMMARY_FILE = "summary.json"  # settings and counts
PLANTED_FOLDER = "planted"  # the scanned shards, and the truth file

_STORE = ".store"
_TABLES = ("recall", "negatives", "totals", "curves", "agreement", "found")
_TALLIES = "tallies"
_PACKAGES = ("decon-assets", "numpy", "numba", "polars", "pyarrow", "splintr-rs")
_FILES = {
    PAGE_FILE, PICTURE_FILE, FINDINGS_FILE, SUMMARY_FILE, PLANTED_FOLDER,
    *(f"{name}.csv" for name in (*_TABLES, _TALLIES)),
}  # fmt: skip


@dataclass(frozen=True)
class Scorecard:
    """The results of a scorecard, and how it was made."""

    marks: Marks
    tallies: tuple[Tally, ...]
    corpus: PlantedCorpus
    about: Mapping[str, str]

    def page(self, *, image: str) -> str:
        return markdown(self.marks, about=self.about, image=image, tallies=self.tallies)

    def picture(self, *, shown_width: int | None = None) -> str:
        return svg(self.marks, shown_width=shown_width)


def run_scorecard(
    records: Mapping[str, pa.Table],
    hosts: Iterable[str],
    policy: Policy,
    out: Path,
    *,
    per_transformation: int,
    n_background: int,
    seed: int,
    about: Mapping[str, str],
    workers: int = 1,
    on_step: Callable[[str], None] = lambda _: None,
    on_progress: Progress | None = None,
) -> Scorecard:
    """Run a scorecard on records by benchmark and host texts; write `out` atomically.

    `about` is shown on the page: the origin of records and texts, and the command to reproduce it.
    """
    out = out.absolute()
    _require_replaceable(out)
    # Every item is planted some forty times, so n-grams are common here that are rare elsewhere.
    policy = replace(policy, leave_out_common=False)
    planned = plan(
        pa.concat_tables(records.values()), per_transformation=per_transformation, seed=seed
    )
    groups = (table.group_by([*ItemKey._fields]).aggregate([]) for table in records.values())
    n_indexed = sum(group.num_rows for group in groups) - len(planned.held_out)
    on_step(
        f"{counted(len(planned.plantings), 'planting')} of {counted(n_indexed, 'item')}, "
        f"{len(planned.held_out):,} more held out"
    )
    with atomic_path(out) as draft:
        draft.mkdir()
        corpus = write_planted_corpus(
            planned, hosts, draft / PLANTED_FOLDER, n_background=n_background
        )
        on_step(
            f"{counted(corpus.n_documents, 'document')}, {corpus.n_background:,} of them with "
            "nothing planted"
        )
        findings = _scan(records, planned, draft, policy, workers, on_progress)
        marks = mark(
            read_truth(draft / PLANTED_FOLDER),
            findings,
            thresholds=policy.thresholds,
            n_background=corpus.n_background,
        )
        remove(draft / _STORE)
        about = {**about, **_settings(policy, planned, corpus)}
        card = Scorecard(marks, planned.tallies, corpus, about)
        _write(draft, card, findings)
    return card


def _require_replaceable(out: Path) -> None:
    """Raise `InputError` if `out` is not an earlier scorecard and would be replaced."""
    expected = "a new folder, or one with an earlier scorecard"
    if out.is_dir():
        others = sorted(path.name for path in out.iterdir() if path.name not in _FILES)
        if others:
            raise InputError(Problem(str(out), f"{others[0]!r} in it", expected))
    elif out.exists():
        raise InputError(Problem(str(out), "a file", expected))


def _scan(
    records: Mapping[str, pa.Table],
    planned: Plan,
    draft: Path,
    policy: Policy,
    workers: int,
    on_progress: Progress | None,
) -> pl.DataFrame:
    """Scan the planted shards; return the findings of all detectors."""
    store = Store(draft / _STORE)
    versions = [
        save_records(store, name, indexed_records(table, planned))
        for name, table in records.items()
    ]
    snapshot = freeze(store, versions, policy)
    for version in versions:
        build_part(store, version, snapshot, policy)
    folder = draft / PLANTED_FOLDER
    packs = []
    for source in sources(folder):
        shards = tuple(find_shards(source, folder=folder, known={}))
        packs.append(Pack(name=f"{source.name}-0000", source=source, shards=shards))
    scan_packs(store, packs, versions, policy, workers=workers, on_progress=on_progress)
    # Without human verdicts: what the detectors find.
    reader = MatchReader(store, tuple(versions), policy, scan_fingerprint(store, policy))
    findings = [
        _calls_in(reader.entries(shard, versions, source=pack.source.name), shard.name)
        for pack in packs
        for shard in pack.shards
    ]
    return _in_plantings(pl.concat(findings), read_truth(folder))


def _calls_in(entries: pa.Table, shard: str) -> pl.DataFrame:
    by_length = names_where(lambda detector: detector.threshold.is_length)
    is_by_length = pl.col("detector").is_in(by_length)
    return pl.DataFrame(entries).select(
        "detector",
        pl.lit(shard).alias("shard"),
        "row",
        "benchmark",
        "split",
        "instance_index",
        pl.when(is_by_length).then(pl.col("n_matched")).otherwise("score").alias("score"),
        # What a detector finds, also if its score alone is no proof.
        pl.col("is_contaminated") | pl.col("needs_review"),
        "is_no_answer",
        *(
            pl.coalesce(f"question_char_{edge}", f"answer_char_{edge}").alias(edge)
            for edge in ("start", "stop")
        ),
    )


def _in_plantings(findings: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Drop matches outside the planted text of a document with a planting.

    A host of the user's corpus may contain a real leak, which is unrelated to the planting.
    """
    document = ["shard", "row"]
    planted = truth.select(
        *document, pl.col("start").alias("planted_start"), pl.col("stop").alias("planted_stop")
    ).unique(document)
    is_before = pl.col("stop") <= pl.col("planted_start")
    is_elsewhere = is_before | (pl.col("start") >= pl.col("planted_stop"))
    return (
        findings.join(planted, on=document, how="left")
        .filter(~is_elsewhere.fill_null(value=False))
        .select(*FINDINGS)
        .cast(FINDINGS)
        .sort(*FINDINGS)
    )


def _settings(policy: Policy, planned: Plan, corpus: PlantedCorpus) -> dict[str, str]:
    thresholds = (f"`{detector}` {value:g}" for detector, value in policy.thresholds.items())
    versions = (f"{name} {metadata.version(name)}" for name in _PACKAGES)
    default = asdict(Policy())
    changed = [
        f"`{name} = {value!r}`"
        for name, value in asdict(policy).items()
        if value != default[name] and name != "detectors" and not name.endswith("threshold")
    ]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": f"Python {platform.python_version()}, {', '.join(versions)}",
        "thresholds": ", ".join(thresholds),
        "policy": ", ".join(changed) or "the default",
        "seed": str(planned.seed),
        "planted": f"{counted(len(planned.plantings), 'planting')} in "
        f"{counted(corpus.n_documents, 'document')}, "
        f"{corpus.n_background:,} of them unchanged; "
        f"{counted(len(planned.held_out), 'item')} held out",
    }


def _write(out: Path, card: Scorecard, findings: pl.DataFrame) -> None:
    for name in _TABLES:
        getattr(card.marks, name).write_csv(out / f"{name}.csv")
    pl.DataFrame([asdict(tally) for tally in card.tallies]).write_csv(out / f"{_TALLIES}.csv")
    findings.write_parquet(out / FINDINGS_FILE)
    (out / PAGE_FILE).write_text(card.page(image=PICTURE_FILE), encoding="utf-8")
    (out / PICTURE_FILE).write_text(card.picture(), encoding="utf-8")
    summary = {"about": dict(card.about), **asdict(card.corpus), FILES: hashes_below(out)}
    write_json(out / SUMMARY_FILE, summary)
