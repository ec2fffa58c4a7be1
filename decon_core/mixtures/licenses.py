"""Which documents a mixture may take by their licenses: names and SPDX expressions.

An expression joins names by AND, OR, WITH and parentheses, in any case, as `MIT OR Apache-2.0`.
Names need not be in SPDX's list: many corpora have their own, and wildcards of `decon.toml` match
any name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

from decon_core.config.mixtures import Licenses

# Values for a missing license: those of many corpora, and SPDX's own.
_NO_LICENSE = frozenset({"", "unknown", "none", "noassertion"})
# Longer texts are licenses themselves, not names of licenses.
_MAX_CHARACTERS = 1000
_JOINED = re.compile(r"\b(?:and|or|with)\b|\(|\+$", re.IGNORECASE)
# Names and parentheses; the parser would also take names with spaces and other signs.
_NAME = re.compile(r"(?:[A-Za-z0-9.-]+:)?[A-Za-z0-9.-]+\+?")
_CHARACTERS = re.compile(r"[A-Za-z0-9.:+()\s-]+")


def may_be_taken(license_name: str | None, licenses: Licenses) -> bool:
    """Return whether a text allows to take a document: a name, or an SPDX expression."""
    text = _normalized(license_name or "")
    expression = parse(text)
    if expression is None:
        return _is_allowed((text,), licenses)
    # A denied pattern may mean the text as a whole ("*GPL*"), and an allowed name may be it.
    if _matches((text,), licenses.deny):
        return False
    is_named = text in map(_normalized, licenses.allow)
    return is_satisfied(expression, lambda names: _is_allowed(names, licenses, is_named=is_named))


def names_license(text: str) -> bool:
    """Return whether a text names a license; "unknown", for example, does not."""
    return _normalized(text) not in _NO_LICENSE


def _is_allowed(names: Sequence[str], licenses: Licenses, *, is_named: bool = False) -> bool:
    """Return whether a license may be taken, known under these names."""
    if not names_license(names[0]):
        return licenses.unknown == "keep"
    is_allowed = is_named or not licenses.allow or _matches(names, licenses.allow)
    return is_allowed and not _matches(names, licenses.deny)


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    folded = [pattern.casefold() for pattern in patterns]
    return any(fnmatchcase(name.casefold(), pattern) for name in names for pattern in folded)


def _normalized(name: str) -> str:
    return name.strip().casefold()


@lru_cache(maxsize=1 << 12)
def parse(text: str) -> Any:  # an expression of the library, which has no types
    """Return the parsed expression; None if the text is a plain name or no expression."""
    if len(text) > _MAX_CHARACTERS or not _JOINED.search(text) or not _CHARACTERS.fullmatch(text):
        return None
    from license_expression import ExpressionError

    try:
        parsed = _parser().parse(text)
    # The last two are how the parser fails at "(OR" and at "()".
    except (ExpressionError, AssertionError, IndexError):
        return None
    symbols = _parser().license_symbols(parsed, unique=False)
    return parsed if all(_NAME.fullmatch(symbol.key) for symbol in symbols) else None


def is_satisfied(expression: Any, takes: Callable[[Sequence[str]], bool]) -> bool:
    """Return whether an expression can be met with licenses that are taken, by their names."""
    if not expression.args:
        return takes(_names_of(expression))
    meets = any if isinstance(expression, _parser().OR) else all
    return meets(is_satisfied(part, takes) for part in expression.args)


@cache
def _parser() -> Any:
    from license_expression import Licensing

    return Licensing()


def _names_of(term: Any) -> tuple[str, ...]:
    """Return all names by which a pattern may mean a license of an expression.

    They are those without and with wider terms: `("GPL-2.0", "GPL-2.0+", "GPL-2.0+ WITH x")`.
    """
    name = getattr(term, "license_symbol", term).key
    without_later = (name.removesuffix("+"),) if name.endswith("+") else ()
    return (*without_later, name, str(term))
