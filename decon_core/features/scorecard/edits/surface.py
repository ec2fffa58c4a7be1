"""Edits that keep the words: case, signs, line breaks, a markup language, other characters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from textwrap import TextWrapper
from typing import Any
from urllib.parse import quote

from decon_core.features.scorecard.edits.edit import DATA, Edit, Material, graded, of_text
from decon_core.features.scorecard.items import as_text, together
from decon_core.text.segments import formulas, plain_words, spliced

_SIGNS = r".,;:!?\"“”'‘’()\[\]…。，；：！？、—–-"
_PUNCTUATION = re.compile(rf"(?<!\d)[{_SIGNS}]|[{_SIGNS}](?!\d)")  # except within numbers
_TYPESET = (
    (re.compile(r'(?<!\S)"|(?<=[(\[])"'), "“"),
    (re.compile(r'"'), "”"),
    (re.compile(r"(?<=\w)'"), "’"),
    (re.compile(r"'"), "‘"),
    (re.compile(r"\.\.\."), "…"),
    (re.compile(r" -{1,2} |--"), " – "),
    (re.compile(r"(?<=\d) (?=[^\W\d])"), "\u00a0"),
    (re.compile(r"(?<=[.?!]) (?=\S)"), "  "),
    (re.compile(r"fi"), "ﬁ"),
    (re.compile(r"fl"), "ﬂ"),
)
_LONG_WORD = re.compile(r"([^\W\d_]{3,5})([^\W\d_]{3,})")
_HYPHENATED_WIDTH = 60


def verbatim(m: Material) -> str:
    return as_text(m.item)


def without_punctuation(text: str) -> str:
    return re.sub(r"[^\S\n]+", " ", _PUNCTUATION.sub(" ", text)).strip()


def typeset(text: str) -> str:
    for pattern, sign in _TYPESET:
        text = pattern.sub(sign, text)
    return text


def wrapped(width: int, text: str) -> str:
    return "\n".join("\n".join(lines) for lines in _wrapped_lines(text, width))


def hyphenated(text: str) -> str:
    """Wrap, and hyphenate long words; the same text if there is none to hyphenate."""
    paragraphs = _wrapped_lines(text, _HYPHENATED_WIDTH)
    made = [_hyphenated_lines(lines) for lines in paragraphs]
    return text if made == paragraphs else "\n".join("\n".join(lines) for lines in made)


def unwrapped(text: str) -> str:
    """Hyphenate as `hyphenated` does, then write spaces for the line breaks."""
    made = hyphenated(text)
    return text if made == text else made.replace("\n", " ")


def _wrapped_lines(text: str, width: int) -> list[list[str]]:
    wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return [wrapper.wrap(line) for line in text.split("\n")]


def _hyphenated_lines(lines: list[str]) -> list[str]:
    """Move the start of a long first word to the end of the line before."""
    made = list(lines)
    for at in range(len(made) - 1):
        long = _LONG_WORD.match(made[at + 1])
        if made[at] and long:
            made[at] += f" {long.group(1)}-"
            made[at + 1] = made[at + 1][long.end(1) :]
    return made


# Markup -------------------------------------------------------------------------------------------

_Markup = Mapping[str, Any]


def marked_up(markup: _Markup, m: Material) -> str | None:
    item = m.item
    parts = [markup["passage"].format(_marked(markup, m, item.passage)) if item.passage else ""]
    parts.append(markup["question"].format(_marked(markup, m, item.question)))
    if item.choices:
        listed = [
            markup["choice"].format(_marked(markup, m, str(choice))) for choice in item.choices
        ]
        parts.append("\n".join(listed).join(markup["around_choices"]))
    answer = item.answer if item.correct is None else str(item.choices[item.correct])
    if answer:
        parts.append(markup["answer"].format(_marked(markup, m, answer)))
    return together(parts)


def _marked(markup: _Markup, m: Material, text: str) -> str:
    """Escape all but formulas, and emphasise one word in 25, at least one."""
    spans = plain_words(text)
    chosen = m.rng.sample(spans, min(len(spans), max(1, len(spans) // 25)))
    cuts = sorted([*chosen, *formulas(text)])
    starts = [0, *(stop for _, stop in cuts)]
    stops = [*(start for start, _ in cuts), len(text)]
    rest = [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]
    changes = []
    for start, stop in rest:
        escaped = text[start:stop]
        for sign, replacement in markup["escape"]:
            escaped = re.sub(sign, replacement, escaped)
        changes.append(((start, stop), escaped))
    for start, stop in chosen:
        pattern, word = m.rng.choice(markup["emphasis"]), text[start:stop]
        changes.append(((start, stop), pattern.format(*[word] * pattern.count("{}"))))
    return spliced(text, changes).replace("\n", markup["line"])


# Other characters, as filters are evaded ----------------------------------------------------------

_TOUCHED = 5  # one word in so many is changed
_ZERO_WIDTH = "\u200b\u200c\u2060\ufeff"
_TAGS = ("<b>{}</b>", "<span class='w'>{}</span>", "<wbr>{}", "{}<!-- -->", "<i>{}</i>")
_SAME_LOOK = str.maketrans("aceiopsxyACEHKMOPTX", "асеіорѕхуАСЕНКМОРТХ")
_LIGATURES = (("ffi", "ﬃ"), ("ffl", "ﬄ"), ("ff", "ﬀ"), ("fi", "ﬁ"), ("fl", "ﬂ"))
_FULL_WIDTH = {point: point + 0xFEE0 for point in range(ord("!"), ord("~") + 1)}
_ENTITIES = ("&#{};", "&#x{:x};", "&shy;&#{};")
_CONTROLS = "\x03\x01\x02\x08\x1b\x1f\x7f\x81"
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


_CASE, _WRAP = "case and punctuation", "lines"

EDITS = (
    Edit("verbatim", "", verbatim),
    Edit(_CASE, "lower case", of_text(str.lower)),
    Edit(_CASE, "upper case", of_text(str.upper)),
    Edit(_CASE, "no punctuation", of_text(without_punctuation)),
    Edit(_CASE, "typeset", of_text(typeset)),
    Edit(_WRAP, "72 columns", of_text(partial(wrapped, 72))),
    Edit(_WRAP, "40 columns", of_text(partial(wrapped, 40))),
    Edit(_WRAP, "hyphens", of_text(hyphenated)),
    Edit(_WRAP, "hyphens and spaces", of_text(unwrapped)),
    *graded("mark-up", marked_up, DATA["markup"]),
    *(Edit("obfuscated", grade, apply) for grade, apply in _CHANGES.items()),
)
