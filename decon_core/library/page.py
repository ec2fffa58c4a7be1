"""The report of a scanned folder: its database, its page, and its section for a dataset card."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from decon_core.corpus.packs import Shard
from decon_core.decisions.not_read import UnreadRule
from decon_core.errors import InputError, MissingError, Problem
from decon_core.library import results
from decon_core.library.stored_index import StoredIndex
from decon_core.report.open import NOT_DRAWN, ONLY_SAMPLE
from decon_core.scan.coverage import Gap
from decon_core.storage.drafts import remove
from decon_core.storage.files import atomic_path, write_text
from decon_core.storage.store import Store

if TYPE_CHECKING:
    from decon_core.library.scan import Request
    from decon_core.mixtures.builder import Builder

FIGURE_FILES = ("sample.svg", "sample_items.svg")  # if only a sample was scanned
PAGE_FILE = "report.html"
CARD_FILE = "card.md"


def report_in(folder: Path) -> Path:
    """Return the database of a scanned folder; raise `MissingError` if it is not complete."""
    written = [folder / name for name in (results.SUMMARY_FILE, results.LEDGER_FILE)]
    if not any(path.is_file() for path in written):
        expected = "a report's database, a decon.toml, or a folder of `decon-assets scan`"
        raise InputError(Problem(str(folder), "no scan in this folder", expected))
    if not written[0].is_file():
        found = f"the scan is not complete: {results.SUMMARY_FILE} is missing"
        remedy = "run the scan again; it resumes where it stopped"
        raise MissingError(Problem(str(folder), found, remedy=remedy))
    report = Store(folder / results.STORE_FOLDER).report
    if not report.is_file():
        found, remedy = "the scan has no report", "scan again without --no-page"
        raise MissingError(Problem(str(folder), found, remedy=remedy))
    return report


def write_report(
    request: Request, index: StoredIndex, scanned: results.ScannedPack, outcome: results.Outcome
) -> None:
    """Write the page and card of a scan, and their database in the store, if it is not current.

    A sample also has figures of its estimates. Without a page, or if nothing was read, an earlier
    database is removed.
    """
    store, pack, out = index.store, scanned.pack, request.out
    if not request.has_page or len(scanned.unread) == len(pack.shards):
        for path in (store.report, *store.report_files):
            remove(path)
        return
    from decon_core.mixtures.builder import Builder
    from decon_core.report.build import is_current

    builder = Builder(
        store,
        (pack,),
        index.versions,
        index.policy,
        mixtures=(),
        verdicts=request.verdicts,
        unread=UnreadRule(((pack.source.name, pack.source.ignore),)),
        not_covered=tuple(outcome.not_covered),
        skipped=tuple(outcome.skipped),
        not_sampled=tuple(_not_sampled(scanned, outcome, index)),
    )
    if outcome.sample:
        from decon_core.library.sample_section import sample_figures
        from decon_core.report.html.still import svg

        for name, chart in sample_figures(outcome.rates).items():
            write_text(out / name, svg(chart))
    card = store.report.with_name(CARD_FILE)
    if not (is_current(builder) and store.report_page.is_file() and card.is_file()):
        _build(builder, request, outcome)
    for kept, name in ((store.report_page, PAGE_FILE), (card, CARD_FILE)):
        with atomic_path(out / name) as draft:
            shutil.copyfile(kept, draft)


def _not_sampled(
    scanned: results.ScannedPack, outcome: results.Outcome, index: StoredIndex
) -> list[Gap]:
    """Return the shards of which only a sample was scanned, or that are not in it."""
    pack, sample = scanned.pack, outcome.sample
    if not sample:
        return []
    start = NOT_DRAWN if outcome.not_drawn else ONLY_SAMPLE
    shards = [shard for shard in pack.shards if shard.name not in scanned.unread]
    if outcome.not_drawn:
        shards = [
            Shard(
                source=pack.source.name,
                name=file.path,
                path=file.path,
                n_bytes=file.n_bytes,
                modified_ns=0,
                content="",
                fingerprint="",
            )
            for file in outcome.not_drawn
        ]
    names = tuple(sorted(version.benchmark for version in index.versions))
    found, remedy = f"{start}{sample.words}", "scan without --sample"
    return [
        Gap(pack, shard, names, True, Problem("", found, remedy=remedy), is_scanned=True)
        for shard in shards
    ]


def _build(builder: Builder, request: Request, outcome: results.Outcome) -> None:
    """Build the report in the store, with its page and its card."""
    from decon_core.library.sample_section import sample_section
    from decon_core.report.build import build_report
    from decon_core.report.html.build import write_page
    from decon_core.report.html.opening import Scanned
    from decon_core.report.open import opened
    from decon_core.report.page_additions import Addition
    from decon_core.report.publish.summary import summary_of, write_card

    build_report(builder)
    store, (pack,) = builder.store, builder.packs
    estimates = [Addition("", lambda: sample_section(outcome.rates))] if outcome.sample else []
    with opened(store.report):  # while it is open, the page and the card open it at once
        scanned = Scanned(request.out, store.report, pack.source.path, request.evals)
        write_page(store.report, store.report_page, additions=estimates, scanned=scanned)
        write_card(summary_of(store.report), store.report.with_name(CARD_FILE))
