"""Recognize the format of a shard, by its suffix and by its first bytes, which must agree."""

from __future__ import annotations

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
        found = f"{kind} in a compressed file: it was compressed twice"
        remedy = f"decompress it once, for example with `zstd -d` or `gunzip`, and {REGISTER}"
        raise CorpusError(Problem(str(path), found, "text that was compressed once", remedy))
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
