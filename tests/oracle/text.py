"""Canonical text, slow and simple: the oracle of `decon_core/text`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from decon_core.text.characters import (
    ACCENTS,
    COMMANDS,
    CONTROLS,
    ENTITIES,
    IGNORABLE,
    LIKE_ESCAPES,
    LOOK_ALIKES,
    PLAIN_LETTERS,
    SIGNS,
    TAGS,
    WINDOWS_1252,
)

# A tag or comment with more text is kept.
MOST_SPACES, MOST_WIDE_BYTES = 7, 63

WHITE_SPACE_RUN = re.compile(
    r"[\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)


# Scripts without spaces between words: with `normalize_unicode`, each character is a word.
THAI_TO_KHMER = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
KANA_AND_HAN = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF))


def clean(text: str, punctuation: str) -> str:
    """Lower-case, replace punctuation by spaces, collapse white space, and trim."""
    lowered = text.lower()
    without = "".join(" " if char in punctuation else char for char in lowered)
    return WHITE_SPACE_RUN.sub(" ", without).strip(" ")


def split(text: str) -> list[str]:
    """Return the words of a cleaned text; voicing marks belong to the kana before them."""
    words = [""]
    for char in text:
        if char in "\u3099\u309a" and words[-1] and is_unspaced(words[-1][0]):
            words[-1] += char
        elif char == " ":
            words.append("")
        elif is_unspaced(char) or (words[-1] and is_unspaced(words[-1][0])):
            words.append(char)
        else:
            words[-1] += char
    return [word for word in words if word]


def is_unspaced(character: str) -> bool:
    return is_between(character, (*THAI_TO_KHMER, *KANA_AND_HAN))


def is_between(character: str, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)


def normalized(word: str, punctuation: str) -> list[str]:
    """Return the words that a lower-case word becomes when look-alikes are folded."""
    if "\0" in word:
        lengths = [len(piece) for piece in word.split("\0") if piece]
        if 2 * lengths.count(1) <= len(lengths):
            word = word.replace("\0", " ")
    printable = "".join(CONTROLS.get(ord(char), char) or "" for char in word)
    signs = "".join(SIGNS.get(ord(char), char) for char in printable)
    visible = "".join(char for char in signs if ord(char) not in IGNORABLE)
    lowered = unicodedata.normalize("NFKC", visible).lower()
    visible = "".join(char for char in lowered if ord(char) not in IGNORABLE)
    composed = unicodedata.normalize("NFKC", visible)
    signs = "".join(SIGNS.get(ord(char), char) for char in composed)
    cut = "".join(" " if char in punctuation else char for char in signs)
    words = split(WHITE_SPACE_RUN.sub(" ", cut))
    return [plain for word in words if (plain := _latin(_plain(word)))]


def _plain(word: str) -> str:
    """Drop accents and vowel signs, and fold variants of letters."""
    plain = "".join(PLAIN_LETTERS.get(ord(char), char) or "" for char in word)
    return unicodedata.normalize("NFKC", plain)


def _latin(word: str) -> str:
    """Fold look-alike letters and drop accents in a word with a letter from a to z."""
    parts = unicodedata.normalize("NFD", word)
    if not re.search("[a-z]", parts):
        return word
    left = ""
    behind_letter = False
    for char in parts:
        latin = LOOK_ALIKES.get(ord(char), char)
        if ord(latin) in ACCENTS and behind_letter:
            continue
        behind_letter = "a" <= latin <= "z"
        left += latin
    return unicodedata.normalize("NFKC", left)


# Mark-up ----------------------------------------------------------------------------------------

_W = r"[ \t\n\f\r]"
_VALUE = r"""(?:"[^"<]*+"|'[^'<]*+'|[^ \t\n\f\r"'<>=`]++)"""
_ATTRIBUTE = rf"""{_W}++[^ \t\n\f\r"'<>=`/]++{_W}*+={_W}*+{_VALUE}"""
_TAG = re.compile(rf"</?([A-Za-z0-9]++)((?:{_ATTRIBUTE})*+){_W}*+/?>")
_QUOTED = re.compile(rf"""={_W}*("[^"<]*"|'[^'<]*')""")
_COMMENT = re.compile("<!--([^<>]*)-->")
_NAMED = re.compile("([A-Za-z0-9]+);")
_NUMBERED = re.compile("#(?:[xX]([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_LINE_END = re.compile("[-\u2010\u00ad][ \t]*\r?\n[ \t]*")
_LINK = re.compile(
    r"""\]\((?:#|\.{0,2}/|[A-Za-z]+:)"""
    r"""(?:[^ \t\n\f\r()<>\[\]]|\([^ \t\n\f\r()<>\[\]]*\))*+"""
    r"""(?: +("[^"]*"|'[^']*'))?\)"""
)
_NAME = re.compile(r"[A-Za-z]+")
_ARGUMENT = re.compile(r"\{[A-Za-z]*\}")
_UNIT = re.compile(r"\\u([0-9A-Fa-f]{4})")
_LOW_UNIT = re.compile(r"\\+u([0-9A-Fa-f]{4})")
_BYTES = re.compile(r"\\x[0-9A-Fa-f]{2}(?:\\+x[0-9A-Fa-f]{2}){1,3}")
_DOUBLED = re.compile(r"\\+(?=\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}))")
_SPELLED = re.compile(r"&#(?:[xX]([0-9A-Fa-f]{1,6})|([0-9]{1,7}));|\\u([0-9A-Fa-f]{4})")
_ESC = r"(?:\x1b|\\u001[bB])"
_CONTROL = re.compile(rf"{_ESC}\[[0-?]*+([A-Za-z])")
_SPELLED_COLOR = re.compile(r"(?:\\x1[bB]|\\033|\\e|\^\[)\[[0-9:;]*+[mK]")
_CHARACTER_SET = re.compile(rf"{_ESC}[()][0-9A-Z](?!\))")
_STRING = re.compile(rf"{_ESC}\]([0-9][^\x00-\x1f\\]*+)(?:\x07|\\u0007|\x1b\\|\\u001[bB]\\\\)")

_Change = tuple[str, int]  # the replacement of a piece of mark-up, and its end


def without_markup(text: str) -> str:
    """Replace mark-up from left to right; replacements are not processed again."""
    pieces = []
    at = 0
    while at < len(text):
        change = _change_at(text, at)
        pieces.append(change[0] if change else text[at])
        at = change[1] if change else at + 1
    return "".join(pieces)


def _change_at(text: str, at: int) -> _Change | None:
    if text[at] == "<":
        return _tag(text, at) or _comment(text, at)
    if text[at] == "&":
        return _entity(text, at + 1)
    if text[at] == "%":
        return _escapes(text, at)
    if text[at] == "]":
        return _link(text, at)
    if text[at] in "\x1b^":
        return _terminal_code(text, at)
    if text[at] == "\\":
        doubled = _DOUBLED.match(text, at)  # by JSON in a string
        at = doubled.end() if doubled else at
        code = _terminal_code(text, at) or _command(text, at)
        return code or _unit(text, at) or _character_of_bytes(text, at) or _break(text, at)
    return _hyphen(text, at)


def _tag(text: str, at: int) -> _Change | None:
    """Replace an HTML tag by nothing (inline) or a space. One that contains text is kept."""
    tag = _TAG.match(text, at)
    if not tag or tag[1] not in TAGS or any(map(_holds_text, _QUOTED.findall(tag[2]))):
        return None
    return TAGS[tag[1]], tag.end()


def _comment(text: str, at: int) -> _Change | None:
    comment = _COMMENT.match(text, at)
    return ("", comment.end()) if comment and not _holds_text(comment[1]) else None


def _holds_text(text: str) -> bool:
    n_wide = sum(len(char.encode()) for char in text if not char.isascii())
    for hexadecimal, decimal, unit in _SPELLED.findall(text):
        point = int(decimal) if decimal else int(hexadecimal or unit, 16)
        n_wide += 0 if point < 0x80 else 2 if point < 0x800 else 3
    return len(re.findall(_W, text)) > MOST_SPACES or n_wide > MOST_WIDE_BYTES


def _entity(text: str, at: int) -> _Change | None:
    """Decode the entity after `&`; `&amp;` before an entity is another `&`."""
    change = _one_entity(text, at)
    while change and text[at : at + 4] in ("amp;", "AMP;"):
        inner = _one_entity(text, at + 4)
        if not inner:
            break
        change, at = inner, at + 4
    return change


def _one_entity(text: str, at: int) -> _Change | None:
    named = _NAMED.match(text, at)
    if named:
        return (ENTITIES[named[1]], named.end()) if named[1] in ENTITIES else None
    numbered = _NUMBERED.match(text, at)
    if not numbered:
        return None
    point = int(numbered[1], 16) if numbered[1] else int(numbered[2])
    point = WINDOWS_1252.get(point, point)
    if point == 0 or point > 0x10FFFF or 0xD800 <= point < 0xE000:
        return None
    return chr(point), numbered.end()


def _escapes(text: str, at: int) -> _Change | None:
    """Decode a URL-encoded character in a word with two escapes or more."""
    before = re.split(_W, text[:at])[-1]
    behind = re.split(_W, text[at:])[0]
    if len(_ESCAPE.findall(before + behind)) < 2:
        return None
    content = b""
    while escape := _ESCAPE.match(text, at):
        at = escape.end()
        content += bytes([int(escape[1], 16)])
        try:
            char = content.decode()
        except UnicodeDecodeError:
            if len(content) == 4:
                return None
            continue
        return (char, at) if (char >= " " and char != "\x7f") or char in "\t\n\r" else None
    return None


def _hyphen(text: str, at: int) -> _Change | None:
    """Remove a hyphen and the line break after it, between lower-case letters."""
    hyphen = _LINE_END.match(text, at)
    is_word = hyphen and at and text[at - 1].islower() and text[hyphen.end() :][:1].islower()
    return ("", hyphen.end()) if hyphen and is_word else None


def _link(text: str, at: int) -> _Change | None:
    """Remove the target and the title of a Markdown link, from the bracket behind its text on."""
    link = _LINK.match(text, at)
    return ("", link.end()) if link and not _holds_text(link[1] or "") else None


def _terminal_code(text: str, at: int) -> _Change | None:
    """Remove an escape sequence of terminals; one that moves the cursor parts words."""
    if control := _CONTROL.match(text, at):
        return "" if control[1] in "mK" else " ", control.end()
    if code := _SPELLED_COLOR.match(text, at) or _CHARACTER_SET.match(text, at):
        return "", code.end()
    string = _STRING.match(text, at)
    return ("", string.end()) if string and not _holds_text(string[1]) else None


def _command(text: str, at: int) -> _Change | None:
    """Remove a LaTeX command and the brace behind it, not what is between the braces."""
    name = _NAME.match(text, at + 1)
    if not name:
        return None
    argument = _ARGUMENT.match(text, name.end())
    longer = [name[0] + argument[0]] if argument else []
    for spelled in (*longer, name[0] + "{", name[0]):
        if spelled in COMMANDS and text.startswith(spelled, at + 1):
            return COMMANDS[spelled], at + 1 + len(spelled)
    return None


def _unit(text: str, at: int) -> _Change | None:
    r"""Decode `\uXXXX`, or two of them that are one character; U+0000 becomes nothing."""
    unit = _UNIT.match(text, at)
    if not unit:
        return None
    point = int(unit[1], 16)
    if 0xD800 <= point < 0xDC00:
        unit = _LOW_UNIT.match(text, unit.end())
        low = int(unit[1], 16) if unit else 0
        if not unit or not 0xDC00 <= low < 0xE000:
            return None
        point = 0x10000 + (point - 0xD800) * 0x400 + low - 0xDC00
    if 0xDC00 <= point < 0xE000:
        return None
    return chr(point) if point else "", unit.end()


def _character_of_bytes(text: str, at: int) -> _Change | None:
    r"""Decode a character beyond ASCII that is spelled `\xHH` for each of its bytes."""
    while spelled := _BYTES.match(text, at):
        content = bytes.fromhex("".join(re.findall("x(..)", spelled[0])))
        for size in (2, 3, 4):
            try:
                char = content[:size].decode()
            except UnicodeDecodeError:
                continue
            if len(char) == 1:
                end = [*re.finditer("x..", spelled[0])][size - 1].end()
                return char, at + end
        return None
    return None


def _break(text: str, at: int) -> _Change | None:
    r"""Decode `\n`, `\r\n` and `\t`, unless a LaTeX command begins like this."""
    if text.startswith("\\r\\n", at):
        return "\n", at + 4
    name = _NAME.match(text, at + 1)
    if not name or name[0] in LIKE_ESCAPES or name[0][0] not in "nt":
        return None
    return "\n" if name[0][0] == "n" else "\t", at + 2
