"""Edits that write the same text with other characters, as filters are evaded."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from urllib.parse import quote

from decon_core.quality.scorecard.edits.edit import Edit, Material, of_text
from decon_core.quality.scorecard.items import as_text
from decon_core.quality.scorecard.pieces import plain_words, spliced

# One word in this many is changed.
_TOUCHED = 5
_ZERO_WIDTH = "\u200b\u200c\u2060\ufeff"
_TAGS = ("<b>{}</b>", "<span class='w'>{}</span>", "<wbr>{}", "{}<!-- -->", "<i>{}</i>")
_SAME_LOOK = str.maketrans("aceiopsxyACEHKMOPTX", "асеіорѕхуАСЕНКМОРТХ")
_LIGATURES = (("ffi", "ﬃ"), ("ffl", "ﬄ"), ("ff", "ﬀ"), ("fi", "ﬁ"), ("fl", "ﬂ"))
_FULL_WIDTH = {point: point + 0xFEE0 for point in range(ord("!"), ord("~") + 1)}
_ENTITIES = ("&#{};", "&#x{:x};", "&shy;&#{};")


def _of_words(change: Callable[[Random, str, int], str]) -> Callable[[Material], str | None]:
    """Return an edit of one word in five, at least one; `change` gets a position in the word."""

    def apply(m: Material) -> str | None:
        text = as_text(m.item)
        spans = [(start, stop) for start, stop in plain_words(text) if stop - start > 1]
        chosen = m.rng.sample(spans, -(-len(spans) // _TOUCHED))
        changes = [
            (span, change(m.rng, text[slice(*span)], m.rng.randrange(1, span[1] - span[0])))
            for span in sorted(chosen)
        ]
        changed = spliced(text, changes)
        return changed if changed != text else None

    return apply


def _zero_width(rng: Random, word: str, at: int) -> str:
    return word[:at] + rng.choice(_ZERO_WIDTH) + word[at:]


def _soft_hyphen(_: Random, word: str, at: int) -> str:
    return f"{word[:at]}\u00ad{word[at:]}"


def _look_alikes(_: Random, word: str, at: int) -> str:
    """Replace letters by Cyrillic look-alikes in the second part of a word."""
    return word[:at] + word[at:].translate(_SAME_LOOK)


def _tag(rng: Random, word: str, at: int) -> str:
    return word[:at] + rng.choice(_TAGS).format(word[at:])


def _entity(rng: Random, word: str, at: int) -> str:
    return word[:at] + rng.choice(_ENTITIES).format(ord(word[at])) + word[at + 1 :]


def _ligatures(text: str) -> str:
    for letters, ligature in _LIGATURES:
        text = text.replace(letters, ligature)
    return text


_CHANGES = {
    "zero width": _of_words(_zero_width),
    "soft hyphens": _of_words(_soft_hyphen),
    "full width": of_text(lambda text: text.translate(_FULL_WIDTH)),
    "ligatures": of_text(_ligatures),
    "other spaces": of_text(lambda text: text.replace(" ", "\u00a0")),
    "look-alikes": _of_words(_look_alikes),
    "tags in words": _of_words(_tag),
    "entities in words": _of_words(_entity),
    "URL-encoded": of_text(lambda text: quote(text, safe="")),
}
EDITS = tuple(Edit("obfuscated", grade, apply) for grade, apply in _CHANGES.items())
