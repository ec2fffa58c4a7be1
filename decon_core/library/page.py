"""The report page of a scanned folder, its section for a dataset card, and their database."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from decon_core.benchmarks.records import NotCovered
from decon_core.corpus.packs import Pack
from decon_core.decisions.not_read import UnreadRule
from decon_core.decisions.verdicts import Verdicts
from decon_core.library.estimates import Rate
from decon_core.library.stored_index import StoredIndex
from decon_core.storage.files import atomic_path, write_text
from decon_core.storage.listing import Skipped

if TYPE_CHECKING:
    from decon_core.mixtures.builder import Builder

FIGURE_FILES = ("sample.svg", "sample_items.svg")  # if only a sample was scanned
PAGE_FILE = "report.html"
CARD_FILE = "card.md"


def write_report(
    out: Path,
    index: StoredIndex,
    pack: Pack,
    verdicts: Verdicts,
    not_covered: Sequence[NotCovered],
    skipped: Sequence[Skipped],
    evals: Path,
) -> None:
    """Write the page and card of a scan, and their database in the store, if it is not current."""
    from decon_core.mixtures.builder import Builder
    from decon_core.report.build import is_current

    store = index.store
    builder = Builder(
        store,
        (pack,),
        index.versions,
        index.policy,
        mixtures=(),
        verdicts=verdicts,
        unread=UnreadRule(((pack.source.name, pack.source.ignore),)),
        not_covered=tuple(not_covered),
        skipped=tuple(skipped),
    )
    card = store.report.with_name(CARD_FILE)
    if not (is_current(builder) and store.report_page.is_file() and card.is_file()):
        _build(builder, out, evals)
    for kept, name in ((store.report_page, PAGE_FILE), (card, CARD_FILE)):
        with atomic_path(out / name) as draft:
            shutil.copyfile(kept, draft)


def _build(builder: Builder, out: Path, evals: Path) -> None:
    """Build the report in the store, with its page and its card."""
    from decon_core.report.build import build_report
    from decon_core.report.html.build import write_page
    from decon_core.report.html.opening import Scanned
    from decon_core.report.open import opened

    build_report(builder)
    store, (pack,) = builder.store, builder.packs
    with opened(store.report):  # while it is open, the page and the card open it at once
        scanned = Scanned(out, store.report, pack.source.path, evals)
        write_page(store.report, store.report_page, scanned=scanned)
        _write_card(store.report, store.report.parent)


def write_report_of_sample(out: Path, rates: Sequence[Rate], corpus: str, evals: Path) -> None:
    """Write the page, card and figures of a sample: without texts, and marked as incomplete."""
    from decon_core.library.as_report import read_folder
    from decon_core.library.sample_section import sample_figures, sample_section
    from decon_core.report.html.build import write_page
    from decon_core.report.html.opening import Scanned
    from decon_core.report.html.still import svg
    from decon_core.report.page_additions import Addition

    for name, chart in sample_figures(rates).items():
        write_text(out / name, svg(chart))
    estimates = Addition("", lambda: sample_section(rates))

    with TemporaryDirectory(prefix="decon-report-") as folder:
        database = Path(folder) / "report.duckdb"
        read_folder(out, database)
        scanned = Scanned(out, database, corpus, evals)
        write_page(database, out / PAGE_FILE, additions=[estimates], scanned=scanned)
        _write_card(database, out)


def _write_card(database: Path, out: Path) -> None:
    from decon_core.report.publish.summary import summary_of, write_card

    write_card(summary_of(database), out / CARD_FILE)
