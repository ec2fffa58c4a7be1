"""Tables that features add to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.config.load import Config
from decon_core.corpus.packs import Pack
from decon_core.feature import feature_hooks
from decon_core.storage.store import Store


@dataclass(frozen=True)
class ReportAddition:
    """Tables of a report, and a key of their content: with another key the report is outdated."""

    key: str
    tables: Callable[[], Mapping[str, pa.Table]]


def report_additions(
    config: Config, store: Store, packs: Sequence[Pack], versions: Sequence[Version]
) -> list[ReportAddition]:
    """Return what features add now."""
    added = (hook(config, store, packs, versions) for hook in feature_hooks("report"))
    return [one for one in added if one]
