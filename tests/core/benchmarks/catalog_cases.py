"""A made-up row for every recipe of the catalog, and the records that it must become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from decon_core.benchmarks.catalog import entries


def catalog_cases() -> dict[str, dict[str, Any]]:
    """Return the cases by recipe; recipes of the same shape share a row."""
    path = Path(__file__).with_name("catalog_rows.yaml")
    cases: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    for shared in cases.pop("shared"):
        for name in shared["names"]:
            config = entries()[name].get("hf_config")
            single = config if isinstance(config, str) and config != "*" else None
            cases[name] = {"config": single, **shared}
    return cases
