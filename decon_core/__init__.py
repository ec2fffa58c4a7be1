"""Find benchmark leaks in texts: the library for notebooks and scripts.

    import decon_core as dc

    index = dc.build_index([{"question": ..., "answer": ...}])
    index.check("a text")

docs/library.md shows how to use it. The names below are public and stable; all others may change.
They are loaded on first use, so importing a module of this package loads only what that module
needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decon_core.config.policy import Policy
    from decon_core.errors import DeconError
    from decon_core.library.findings import Finding, Findings
    from decon_core.library.index import Index, build_index, open_index

__all__ = ["DeconError", "Finding", "Findings", "Index", "Policy", "build_index", "open_index"]

_MODULES = {
    "DeconError": "decon_core.errors",
    "Finding": "decon_core.library.findings",
    "Findings": "decon_core.library.findings",
    "Index": "decon_core.library.index",
    "Policy": "decon_core.config.policy",
    "build_index": "decon_core.library.index",
    "open_index": "decon_core.library.index",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
