"""What the phases of blends consist of, as figures, and as a section of the report's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decon_core.features.blends.card import contents_of_phases
from decon_core.mixtures.composition import Labels, phase_heads, phase_rows, phase_tokens
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import MOST_CURVES, pairs
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import Choice, Section, Table

_ABOUT = (
    "The composition of each phase of a blend: shares of its tokens by source, and by each label "
    "of the sources. Benchmark items have a separate row. docs/studies/composition.md has more "
    "details."
)


def composition_figure(account: Mapping[str, Any], labels: Labels) -> Chart:
    """Draw the shares of sources and labels in the first few phases of a blend, a dot for each.

    `account`: the counts of a blend, from its manifest or from a plan.
    """
    phases = contents_of_phases(account)
    totals = [sum(amount.n_tokens for amount in phase.values()) or 1 for phase in phases]
    n = min(len(phases), MOST_CURVES)
    rows = {
        f"{column}: {value}": [100 * n_tokens[at] / totals[at] for at in range(n)]
        for (column, value), n_tokens in phase_tokens(phases, labels).items()
    }
    title = "Composition by phase" + (f" ({n} of {len(phases)} drawn)" if n < len(phases) else "")
    sides = [f"phase {number + 1}" for number in range(n)]
    return pairs(title, rows, sides, "tokens, in % of the phase")


def section_of(manifests: Mapping[str, Mapping[str, Any]], labels: Labels) -> Section:
    choices, tables = [], []
    for name, manifest in manifests.items():
        heads = phase_heads(len(manifest["phases"]))
        columns = [
            {"name": head, "kind": "short" if at < 2 else "formatted"}
            for at, head in enumerate(heads)
        ]
        phases = contents_of_phases(manifest)
        # The rows of the card have names for Markdown.
        names, rows = phase_tokens(phases, labels), phase_rows(phases, labels)
        cells = [[*map(shown, key), *row[2:]] for key, row in zip(names, rows, strict=True)]
        tables.append(Table(f"composition_{name}", shown(name), columns, cells, (), is_folded=True))
        choices.append(Choice(shown(name), [composition_figure(manifest, labels)]))
    return Section("composition", "Composition", [_ABOUT], choices, tables)
