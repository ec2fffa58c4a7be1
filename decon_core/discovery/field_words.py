"""The words of field_words.toml: what the name of a field says about it."""

from __future__ import annotations

import tomllib
from importlib.resources import files

_WORDS = {
    role: frozenset(words.split())
    for role, words in tomllib.loads(
        files(__package__).joinpath("field_words.toml").read_text(encoding="utf-8")
    ).items()
}
ASKS = _WORDS["asks"]
MAY_ASK = _WORDS["may_ask"]
PASSAGES = _WORDS["passages"]
CHOICES = _WORDS["choices"]
ANSWERS = _WORDS["answers"]
CODE = _WORDS["code"]
CLASSES = _WORDS["classes"]
WRONG = _WORDS["wrong"]
NO_TEXT = _WORDS["no_text"]
PAIRED = _WORDS["paired"]
