"""Figures of the report page as SVG files: leak rates, scores, and probabilities by score."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from decon_core.report.html.charts import Chart
from decon_core.report.html.gather import Facts
from decon_core.report.html.sections import section
from decon_core.report.html.still import svg
from decon_core.storage.checksums import sealed_page
from decon_core.storage.files import atomic_path

_SECTIONS = {"rates": "leak_rates", "scores": "scores", "calibration": "calibration"}


def figures(facts: Facts) -> Mapping[str, Sequence[Chart]]:
    """Return the figures of all benchmarks together, by what they show."""
    choices = {name: section(key, facts).choices[:1] for key, name in _SECTIONS.items()}
    return {name: choice.charts for name, chosen in choices.items() for choice in chosen}


def write_figures(drawn: Mapping[str, Sequence[Chart]], folder: Path) -> None:
    """Write each figure to a file named by its title; the folder is replaced."""
    with atomic_path(folder) as draft:
        draft.mkdir()
        for charts in drawn.values():
            for chart in charts:
                name = re.sub(r"\W+", "_", chart.title.lower())
                (draft / f"{name}.svg").write_bytes(sealed_page(svg(chart)))
