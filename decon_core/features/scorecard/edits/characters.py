"""Edits that write the same text with other characters, as filters are evaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from urllib.parse import quote

from decon_core.features.scorecard.edits.edit import Edit, Material, of_text
from decon_core.features.scorecard.edits.surface import typeset, wrapped
from decon_core.features.scorecard.items import as_text
from decon_core.text.segments import plain_words, spliced

_TOUCHED = 5  # one word in so many is changed
_ZERO_WIDTH = "\u200b\u200c\u2060\ufeff"
_TAGS = ("<b>{}</b>", "<span class='w'>{}</span>", "<wbr>{}", "{}<!-- -->", "<i>{}</i>")
_SAME_LOOK = str.maketrans("aceiopsxyACEHKMOPTX", "асеіорѕхуАСЕНКМОРТХ")
_LIGATURES = (("ffi", "ﬃ"), ("ffl", "ﬄ"), ("ff", "ﬀ"), ("fi", "ﬁ"), ("fl", "ﬂ"))
_FULL_WIDTH = {point: point + 0xFEE0 for point in range(ord("!"), ord("~") + 1)}
_ENTITIES = ("&#{};", "&#x{:x};", "&shy;&#{};")
_CONTROLS = "\x00\x01\x02\x08\x1b\x1f\x7f\x81"
_ACCENTS = "\u0300\u0301\u0302\u0308\u0323\u0327\u0336"
_LINKS = ("[{0}](https://example.org/wiki/{0})", '[{0}](/wiki/{0} "{0}")', "[{0}](#{0})")
_COMMANDS = (
    r"\textbf{{{}}}", r"\emph{{{}}}", r"\text{{{}}}", r"\underline{{{}}}", r"\texttt{{{}}}",
)  # fmt: skip


def _of_words(
    change: Callable[[Random, str], str], *, is_whole: bool = False
) -> Callable[[Material], str | None]:
    """Return an edit of a fifth of the words, of at least a single word.

    `change` gets the word if `is_whole`, else the rest of it from a random position on.
    """

    def apply(m: Material) -> str | None:
        text = as_text(m.item)
        spans = [(start, stop) for start, stop in plain_words(text) if stop - start > 1]
        chosen = m.rng.sample(spans, -(-len(spans) // _TOUCHED))
        changes = []
        for start, stop in sorted(chosen):
            at = start if is_whole else m.rng.randrange(start + 1, stop)
            changes.append(((at, stop), change(m.rng, text[at:stop])))
        changed = spliced(text, changes)
        return changed if changed != text else None

    return apply


def _formatted(*patterns: str) -> Callable[[Material], str | None]:
    """Return an edit that writes one word in five in one of these patterns."""
    return _of_words(lambda rng, word: rng.choice(patterns).format(word), is_whole=True)


def _ligatures(text: str) -> str:
    for letters, ligature in _LIGATURES:
        text = text.replace(letters, ligature)
    return text


_CHANGES = {
    "zero width": _of_words(lambda rng, rest: rng.choice(_ZERO_WIDTH) + rest),
    "soft hyphens": _of_words(lambda _, rest: f"\u00ad{rest}"),
    "full width": of_text(lambda text: text.translate(_FULL_WIDTH)),
    "ligatures": of_text(_ligatures),
    "other spaces": of_text(lambda text: text.replace(" ", "\u00a0")),
    "look-alikes": _of_words(lambda _, rest: rest.translate(_SAME_LOOK)),
    "tags in words": _of_words(lambda rng, rest: rng.choice(_TAGS).format(rest)),
    "entities in words": _of_words(
        lambda rng, rest: rng.choice(_ENTITIES).format(ord(rest[0])) + rest[1:]
    ),
    "URL-encoded": of_text(lambda text: quote(text, safe="")),
    "control characters": _of_words(lambda rng, rest: rng.choice(_CONTROLS) + rest),
    "accents": _of_words(lambda rng, rest: rest[0] + rng.choice(_ACCENTS) + rest[1:]),
    "Markdown links": _formatted(*_LINKS),
    "LaTeX commands": _formatted(*_COMMANDS),
    "escape sequences in words": _of_words(lambda _, rest: f"\\u{ord(rest[0]):04x}{rest[1:]}"),
    # Lines with typographic signs, without the quotes.
    "JSON string": of_text(lambda text: json.dumps(typeset(wrapped(72, text)))[1:-1]),
}
EDITS = tuple(Edit("obfuscated", grade, apply) for grade, apply in _CHANGES.items())
