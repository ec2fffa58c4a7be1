"""Names of benchmarks, sources and packs: partition keys, folder names and values in SQL."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from decon_core.errors import KeyNameError, Problem

# Dagster joins the two halves of a grid cell with "|", writes ranges with "..." and lists with ",",
# and silently drops a key that holds one of them: the benchmark would count as clean. So only
# characters that mean nothing to Dagster, to a file system or to a shell are let through.
_ALLOWED = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.)){0,119}")


def check_names(names: Iterable[str], *, what: str) -> None:
    """Refuse names that would get lost, or be taken for two, once they are partition keys."""
    problems = [
        Problem(
            where=f"{what} name",
            found=repr(name),
            expected="letters, digits, '_', '-' and single '.', at most 120 of them, "
            "not starting with '-' or '.'",
            remedy="'|', ',' and '...' have a meaning of their own in partition keys: rename it",
        )
        for name in names
        if not _ALLOWED.fullmatch(name) or name.endswith(".")
    ]
    if problems:
        raise KeyNameError(problems)


def folded(text: str) -> str:
    """Letters with accents as plain ones, where they are plain ones with something on top."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))
