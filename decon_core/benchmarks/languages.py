"""Languages of translations: which one the name of a field says."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import NamedTuple

# English names, by code of ISO 639.
LANGUAGES: dict[str, str] = tomllib.loads(
    files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
)
_NAME = re.compile(r"(.*?[_-])?([A-Za-z]{2,3})([_-][A-Z][A-Za-z]+)?")


class NamedLanguage(NamedTuple):
    """A field whose name ends in a language: what precedes it, and the language."""

    prefix: str
    language: str


def language_in(field: str) -> NamedLanguage | None:
    """Return the language of `translation.de` or `sentence_deu_Latn`; None if none is named."""
    head, dot, leaf = field.rpartition(".")
    parts = _NAME.fullmatch(leaf)
    language = LANGUAGES.get(parts[2].lower()) if parts else None
    if parts is None or language is None:
        return None
    return NamedLanguage(f"{head}{dot}{parts[1] or ''}", language)
