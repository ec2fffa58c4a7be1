"""Names of benchmarks, sources and packs, which are also partition keys and folder names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from decon_core.errors import KeyNameError, Problem

# Dagster joins the parts of partition keys with "|", writes ranges with "..." and lists with ",",
# and silently drops a key that contains one of them: the benchmark would count as clean. Only
# characters without a special meaning in Dagster, file systems and shells are allowed.
_ALLOWED = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.)){0,119}")


def check_names(names: Iterable[str], *, what: str) -> None:
    """Raise `KeyNameError` if a name cannot be a partition key. `what`: the kind of name."""
    expected = (
        "letters, digits, '_', '-' and single '.', at most 120 characters, not starting with '-' "
        "or '.'"
    )
    remedy = "rename it: '|', ',' and '...' are special in partition keys"
    problems = [
        Problem(f"{what} name", repr(name), expected, remedy)
        for name in names
        if not _ALLOWED.fullmatch(name) or name.endswith(".")
    ]
    if problems:
        raise KeyNameError(problems)


def folded(text: str) -> str:
    """Return the text without combining accents ("é" becomes "e")."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))
