"""The dataset card (README.md) of a blend: sources, passes, inserted items and files.

It depends only on the manifest. Its YAML front matter is what Hugging Face's loaders read: every
phase is a configuration, and the default is all phases in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decon_core.mixtures.card import size_of
from decon_core.mixtures.composition import ITEMS as ITEMS_OF_BENCHMARKS
from decon_core.mixtures.composition import NO_LABELS, Amount, Labels, phase_heads, phase_rows
from decon_core.wording import percent, render

Value = Mapping[str, Any]


def card_of_blend(manifest: Value, labels: Labels = NO_LABELS) -> str:
    """Render the card of a blend. `labels`: of the sources, for its composition."""
    with_test_items = [entry for entry in manifest["contamination"] if entry["holds_test_items"]]
    return render(
        "features/blends/card.md.j2",
        **manifest,
        size=size_of(manifest["totals"]["n_documents"]),
        with_test_items=with_test_items,
        test_benchmarks=sorted(
            {name for entry in with_test_items for name in entry["declared"]["benchmarks"]}
        ),
        settings={**manifest, **manifest["mixture"]},
        account_tables=tables_of(manifest),
        has_labels=bool(labels),
        composition_heads=phase_heads(len(manifest["phases"])),
        composition=phase_rows(contents_of_phases(manifest), labels),
    )


def contents_of_phases(account: Value) -> list[dict[str, Amount]]:
    """Return what every phase holds of each source, and of items in place of documents."""
    phases = []
    for phase in account["phases"]:
        contents = {
            source["source"]: Amount(
                source["n_drawn"] - source["n_replaced"],
                source["n_drawn_tokens"] - source["n_replaced_tokens"],
            )
            for source in phase["sources"]
            if source["n_drawn"]
        }
        if phase["n_test_texts"]:
            items = Amount(phase["n_test_texts"], phase["n_test_tokens"])
            contents[ITEMS_OF_BENCHMARKS] = items
        phases.append(contents)
    return phases


_ITEM_COUNTS = (
    "n_items_seen",
    "n_items_unseen",
    "n_items_without_answer",
    "n_items_not_rewritten",
    "n_texts",
    "n_tokens",
    "n_replaced",
    "n_replaced_tokens",
)
_HEADS = {
    "drawn": ("phase", "source", "documents drawn", "tokens", "share of the phase"),
    "sources": (
        "source", "documents in the mixture", "tokens", "tokens drawn", "passes",
        "different documents drawn",
    ),
    "items": (
        "benchmarks", "texts by split", "form", "items seen", "unseen",
        "without answer", "not rewritten",
        "texts", "tokens", "documents replaced", "tokens replaced", "place in the blend",
    ),
}  # fmt: skip


def tables_of(account: Value) -> dict[str, tuple[Sequence[str], list[list[str]]]]:
    """Return heads and rows of the counts of a blend, from its manifest or from a plan.

    What was drawn has a row for each phase and source, sources one with the passes over each, and
    items one for each contamination, with the documents that they replace.
    """
    drawn = [
        [
            f"{phase['phase']}",
            source["source"],
            f"{source['n_drawn']:,}",
            f"{source['n_drawn_tokens']:,}",
            percent(source["share_of_tokens"]),
        ]
        for phase in account["phases"]
        for source in phase["sources"]
    ]
    sources = [
        [
            source["source"],
            *(f"{source[name]:,}" for name in ("n_documents", "n_tokens", "n_drawn_tokens")),
            f"{source['passes']:g}",
            f"{source['n_different']:,}",
        ]
        for source in account["sources"]
    ]
    items = [
        [
            ", ".join(contamination["declared"]["benchmarks"]),
            ", ".join(f"{split}: {n:,}" for split, n in contamination["texts_by_split"].items()),
            contamination["declared"]["form"],
            *(f"{contamination[name]:,}" for name in _ITEM_COUNTS),
            f"{percent(contamination['first_at'])} to {percent(contamination['last_at'])}",
        ]
        for contamination in account["contamination"]
    ]
    rows = {"drawn": drawn, "sources": sources, "items": items}
    return {name: (heads, rows[name]) for name, heads in _HEADS.items()}
