"""The columns of the scorecard's tables, as tables.toml declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import polars as pl

_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

SCHEMAS: Mapping[str, pl.Schema] = {
    table: pl.Schema({name: getattr(pl, kind) for name, kind in columns.items()})
    for table, columns in _DECLARED.items()
}
