"""Recognize the format of a shard, by its suffix and its first bytes, and the encoding of a row."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from decon_core.corpus.formats.shard_format import ShardFormat
from decon_core.corpus.shard_file import REGISTER
from decon_core.errors import CorpusError, Problem
from decon_core.storage import compression as packing
from decon_core.storage.compression import COMPRESSIONS, compression_of, suffix_of

_ZIP = b"PK\x03\x04"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@cache
def shard_formats() -> dict[str, ShardFormat]:
    """Return the formats by suffix. Their files are imported when they are first asked for."""
    names = sorted(module.name for module in iter_modules([str(Path(__file__).parent)]))
    modules = (import_module(f"{__package__}.{name}") for name in names)
    formats = (form for module in modules for form in getattr(module, "SHARD_FORMATS", ()))
    return {suffix: form for form in formats for suffix in form.suffixes}


def is_shard(path: Path) -> bool:
    """Return whether a file has the suffix of a shard format, compressed or not."""
    return suffix_of(path) in shard_formats()


def known_suffixes() -> str:
    return ", ".join(shard_formats())


def format_of(path: Path) -> ShardFormat:
    """Return the format of a shard by its suffix. Raises `CorpusError` if it is unknown."""
    if not is_shard(path):
        raise CorpusError(unknown_format(path))
    return shard_formats()[suffix_of(path)]


def unknown_format(path: Path) -> Problem:
    return Problem(str(path), f"format {suffix_of(path)!r}", f"one of {known_suffixes()}")


def sniff(head: bytes) -> tuple[str, str] | None:
    """Detect a file type from the first bytes: its description and suffix, or None if unknown."""
    if packed := packing.sniff(head):
        return packed
    for suffix, form in shard_formats().items():
        for magic, kind in form.magics:
            if head.startswith(magic):
                return kind, suffix
    if head.startswith(_ZIP):
        return "a zip archive", ".zip"
    is_text = bool(head) and all(byte >= 0x20 or byte in b"\t\n\r" for byte in head)
    return ("plain text", "") if is_text else None


def require_format(head: bytes, path: Path) -> None:
    """Raise `CorpusError` if the first bytes of a file do not match its suffix."""
    form, detected = format_of(path), sniff(head)
    expected = compression_of(path).replace(".zstd", ".zst")
    if not expected and not form.is_text:
        expected = form.suffixes[0]
    if detected and detected[1] != expected:  # None: damaged or empty, the reader raises
        raise CorpusError(_misnamed(path, *detected))


def require_text(head: bytes, path: Path) -> None:
    """Raise `CorpusError` if the first decompressed bytes of a shard are another file format."""
    kind, suffix = sniff(head) or ("", "")
    if suffix in COMPRESSIONS and compression_of(path):
        found = f"the file was compressed twice: it contains {kind}"
        remedy = f"decompress it once, for example with `zstd -d` or `gunzip`, and {REGISTER}"
        raise CorpusError(Problem(str(path), found, remedy=remedy))
    if suffix:
        raise CorpusError(_misnamed(path.with_suffix(""), kind, suffix))


def require_utf8(head: bytes, path: Path) -> None:
    """Raise `CorpusError` if the first bytes of a text are of UTF-16."""
    encoding = ""
    if head.startswith(_UTF16):
        encoding = "UTF-16"  # iconv reads the byte order
    elif len(head) > 1 and not any(head[::2]):
        encoding = "UTF-16BE"
    elif len(head) > 1 and not any(head[1::2]):
        encoding = "UTF-16LE"
    if encoding:
        remedy = f"convert it with `iconv -f {encoding} -t UTF-8`"
        raise CorpusError(Problem(str(path), f"text in {encoding}", "UTF-8", remedy))


def _misnamed(path: Path, kind: str, suffix: str) -> Problem:
    """Describe a file whose suffix does not match its content."""
    stem = path.with_suffix("") if compression_of(path) else path
    form = shard_formats().get(suffix_of(path))
    ending = suffix_of(path) if form and form.is_text else ".jsonl"
    if suffix in shard_formats():
        remedy = f"rename it to {stem.with_suffix(suffix).name}"
    elif suffix in ("", *COMPRESSIONS):
        remedy = f"rename it to {stem.with_suffix(ending).name}{suffix}, if it contains JSON lines"
    else:
        remedy = "unpack it"
    suffixes = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
    found, expected = f"{kind}, judging by its first bytes", f"{suffixes}, judging by its name"
    return Problem(str(path), found, expected, f"{remedy}, and {REGISTER}")


# Rows in another encoding than UTF-8 --------------------------------------------------------------

LEAST_INVALID = 16  # bytes of a row that are not UTF-8
_LEAST_SHARE = 8  # one in so many bytes beyond ASCII
_FIRST_BYTES = 1 << 16  # that decide which encoding it is, from the first one beyond ASCII
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
    """Return the encoding that bytes beyond ASCII are probably in; None if none is likely."""
    first = len(content) - len(content.lstrip(_ASCII))
    for name, pattern, least_share in _ENCODINGS:
        text = content[first : first + _FIRST_BYTES].decode(name, "replace")
        n_typical = sum(map(len, re.findall(pattern, text)))
        if n_typical >= least_share * sum(not char.isascii() for char in text):
            return name
    return None
