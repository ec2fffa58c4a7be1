"""Rows that are not UTF-8 at all: how they are told from a few broken bytes, and what they are."""

from __future__ import annotations

import re

LEAST_INVALID = 16  # bytes of a row that are not UTF-8
_LEAST_SHARE = 8  # one in so many bytes beyond ASCII
_FIRST_BYTES = 1 << 16  # that decide which encoding it is
_ASCII = bytes(range(0x80))
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")  # of writers that encode UTF-16
# Quotation marks, dashes and the like of Windows-1252, in a text that is ASCII otherwise.
_SIGN = re.compile(rb"(?<![\x80-\xff])[\x80-\xbf](?![\x80-\xff])")

_KANA = "[\u3041-\u3093\u30a1-\u30fc\u3001\u3002]"
_HAN = "[的一是不了在人有我他她这這中大来來上个個国國，。、：]"
_CYRILLIC = "[а-яё]{3,}"
_LATIN = "(?<![^\\x00-\\x7f])[À-ÿ\u2013\u2014\u2018-\u201e\u2026](?![^\\x00-\\x7f])"
# The name that `iconv` and Python know, a pattern that texts in it have much of, and the least
# share of this in their characters beyond ASCII.
_ENCODINGS = (
    ("SHIFT_JIS", _KANA, 0.3),
    ("EUC-JP", _KANA, 0.3),
    ("EUC-KR", "[\uac00-\ud7a3]", 0.9),
    ("GB18030", _HAN, 0.1),
    ("BIG5", _HAN, 0.1),
    ("WINDOWS-1251", _CYRILLIC, 0.6),
    ("KOI8-R", _CYRILLIC, 0.6),
    ("WINDOWS-1252", _LATIN, 0.7),
)


def fault_of_bytes(content: bytes) -> tuple[str, str] | None:
    """Return why a row cannot be read as UTF-8, reason and detail; None if it can.

    A few broken bytes may be replaced: the rest is text. Most of another encoding is not.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        pass
    else:
        return None
    letters = _SIGN.sub(b"", _SURROGATE.sub(b"", content))
    n_wide = len(letters.translate(None, _ASCII))
    n_invalid = len(letters) - len(letters.decode("utf-8", "ignore").encode())
    if n_invalid < LEAST_INVALID or _LEAST_SHARE * n_invalid < n_wide:
        return None
    name = encoding_of(content)
    found = f"{n_invalid:,} of {n_wide:,} bytes beyond ASCII are not UTF-8"
    remedy = f"convert it with `iconv -f {name or 'ENCODING'} -t UTF-8`"
    return f"not UTF-8{f', but probably {name}' if name else ''}", f"{found}; {remedy}"


def encoding_of(content: bytes) -> str | None:
    """Return the encoding that bytes are probably in; None if none is likely."""
    for name, pattern, least_share in _ENCODINGS:
        text = content[:_FIRST_BYTES].decode(name, "replace")
        n_typical = sum(map(len, re.findall(pattern, text)))
        if n_typical >= least_share * sum(not char.isascii() for char in text):
            return name
    return None
