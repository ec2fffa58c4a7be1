"""Write card and summary to a folder."""

from __future__ import annotations

from pathlib import Path

from decon_core.report.publish.card import card_from
from decon_core.report.publish.summary import Summary
from decon_core.storage.checksums import sealed_page
from decon_core.storage.store import atomic_path, write_json

CARD = "card.md"
SUMMARY = "summary.json"


def write_published(summary: Summary, folder: Path) -> None:
    """Write card.md and summary.json."""
    write_json(folder / SUMMARY, summary)
    with atomic_path(folder / CARD) as draft:
        draft.write_bytes(sealed_page(card_from(summary)))
