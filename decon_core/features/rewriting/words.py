"""The lists of words in words.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def listed(group: str, name: str) -> tuple[str, ...]:
    """Return the words of a list, in its order."""
    read = tomllib.loads(
        files("decon_core.features.rewriting").joinpath("words.toml").read_text("utf-8")
    )
    return tuple(read[group][name].split())
