"""The report page of a scanned folder, its section for a dataset card, and their database."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from decon_core.benchmarks.records import NotCovered
from decon_core.corpus.packs import Pack
from decon_core.decisions.not_read import UnreadRule
from decon_core.decisions.verdicts import Verdicts
from decon_core.library.estimates import Rate
from decon_core.library.stored_index import StoredIndex
from decon_core.storage.files import atomic_path, write_text
from decon_core.storage.listing import Skipped

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
    from decon_core.report.build import build_report, is_current
    from decon_core.report.html.build import write_page
    from decon_core.report.html.opening import Scanned
    from decon_core.report.open import opened

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
    is_built = not is_current(builder) or not store.report_page.is_file()
    if is_built:
        build_report(builder)
    with opened(store.report):  # while it is open, the page and the card open it at once
        if is_built:
            scanned = Scanned(out, store.report, pack.source.path, evals)
            write_page(store.report, store.report_page, scanned=scanned)
        with atomic_path(out / PAGE_FILE) as draft:
            shutil.copyfile(store.report_page, draft)
        _write_card(store.report, out)


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
