"""Additions to the page of the report: sections that features write, and the keys of those it has.

Runs and the sensor ask often which additions a page has, so nothing here loads what draws them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decon_core.config.load import Config
from decon_core.feature import feature_hooks
from decon_core.storage.store import Store

if TYPE_CHECKING:
    from decon_core.report.html.sections import Section

_ADDITIONS = re.compile(rb'<meta name="additions" content="([0-9a-f ]+)">')
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class Addition:
    """A section of the page from a feature, and the key of its content."""

    key: str
    section: Callable[[], Section]


def additions_of(config: Config, store: Store) -> list[Addition]:
    """Return the sections of features that were built."""
    additions = (page(config, store) for page in feature_hooks("page"))
    return [addition for addition in additions if addition]


def key_of(additions: Iterable[Addition]) -> str:
    return " ".join(addition.key for addition in additions)


def additions_on_page(page: Path) -> str:
    """Return the key of the additions that a page shows; empty if it has none."""
    with page.open("rb") as file:
        found = _ADDITIONS.search(file.read(_HEAD_BYTES))
    return found[1].decode() if found else ""
