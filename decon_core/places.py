"""Files by path or by URL: `s3://bucket/web/a.jsonl.gz` is used as a path is, and read in pieces.

`place("s3://...")` gives a path whose bytes come from a file system that fsspec knows; everything
else, and `file://`, is a path of this machine. Only what the pipeline reads its inputs with works
on such a path. It is not there for the system: whoever hands it on by name is told "no such file",
and never reads another file in its stead.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PosixPath
from typing import IO, Any, NamedTuple

from decon_core.errors import ConfigError, Problem

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_BLOCK = 4 << 20  # bytes that one request asks for
_OPTIONS_VARIABLE = "FSSPEC_{}"  # where fsspec looks when it is imported

_ALSO_CALLED = (
    {"s3", "s3a"},
    {"gs", "gcs"},
    {"abfs", "abfss", "adl", "az"},
    {"http", "https"},
    {"file", "local"},
)

# Where an upload is there as a whole or not at all.
_WHOLE_UPLOADS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"})


class Stamp(NamedTuple):
    """What a file system says of a file without reading it; another content has another."""

    n_bytes: int
    modified_ns: int
    tag: str  # its ETag, or what else names a content; empty where there is none


class RemotePath(PosixPath):
    """A path on a file system of fsspec; its first part is the scheme."""

    def __str__(self) -> str:
        return _SCHEME.sub(r"\1://", super().__str__(), count=1)

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str, ...]]:
        return type(self), (str(self),)

    @property
    def file_system(self) -> Any:  # fsspec has no types
        return file_system_of(self)

    @property
    def key(self) -> str:
        """What the file system itself calls it."""
        return str(self.file_system._strip_protocol(str(self)))  # noqa: SLF001 - its public name is for classes

    def open(  # type: ignore[override] # reading takes no more
        self, mode: str = "r", *_: Any, encoding: str | None = None, **__: Any
    ) -> IO[Any]:
        if "w" in mode or "a" in mode or "+" in mode:
            raise OSError(f"{self} is only read here")
        options = {"block_size": _BLOCK, "cache_type": "readahead"} if "b" in mode else {}
        if encoding:
            options["encoding"] = encoding
        file: IO[Any] = self.file_system.open(self.key, mode, **options)
        return file

    def read_bytes(self) -> bytes:
        return bytes(self.file_system.cat_file(self.key))

    def read_text(self, encoding: str | None = None, errors: str | None = None, *_: Any) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def is_file(self, **_: Any) -> bool:
        return bool(self.file_system.isfile(self.key))

    def is_dir(self, **_: Any) -> bool:
        return bool(self.file_system.isdir(self.key))

    def exists(self, **_: Any) -> bool:
        return bool(self.file_system.exists(self.key))

    def absolute(self) -> RemotePath:
        return self

    def resolve(self, strict: bool = False) -> RemotePath:  # noqa: ARG002 - as paths have it
        return self

    def glob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override] # gives its own kind
        return iter([path for path, _ in found_by(str(self / pattern))])

    def rglob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override] # gives its own kind
        return self.glob(f"**/{pattern}")


def network_errors() -> tuple[type[Exception], ...]:
    """What file systems raise, beside `OSError`, when the network fails them; of those in use."""
    s3 = sys.modules.get("botocore.exceptions")
    return (s3.BotoCoreError,) if s3 else ()


def place(text: str | Path, *, base: Path | None = None) -> Path:
    """A path or URL as people write it, from a folder on unless it says itself where it is."""
    if isinstance(text, Path):
        return text
    if not is_url(text):
        return base / text if base is not None else Path(text)
    scheme = scheme_of(text)
    if scheme in ("file", "local"):
        return Path("/" + text.partition(":")[2].lstrip("/"))
    return RemotePath(text.replace(text[: len(scheme)], scheme, 1))


def is_url(text: str) -> bool:
    """Whether a text names a file system, as `s3://` does."""
    return "://" in text and bool(_SCHEME.match(text))


def scheme_of(text: str) -> str:
    found = _SCHEME.match(text)
    return found[1].lower() if found else ""


def is_same_system(scheme: str, other: str) -> bool:
    """Whether the options of one scheme hold for another: fsspec has several names for some."""
    return scheme == other or any({scheme, other} <= names for names in _ALSO_CALLED)


def file_system_of(path: RemotePath) -> Any:
    """The file system behind a URL; fsspec keeps one for each scheme and its options."""
    import fsspec

    scheme = scheme_of(str(path))
    try:
        # Listings are not kept: what others wrote a second ago has to be seen.
        files = fsspec.filesystem(scheme, use_listings_cache=False)
        _try_options(files)
        return files
    except TypeError as error:
        expected = "options that the file system knows"
        raise ConfigError(Problem(f"storage.{scheme}", str(error), expected)) from None
    except (ImportError, ValueError) as error:
        remedy = "pip install 'decon-assets[s3]'" if scheme in ("s3", "s3a") else ""
        expected = "a file system that fsspec knows, with its package installed"
        raise ConfigError(Problem(str(path), str(error), expected, remedy)) from None


@lru_cache(maxsize=64)
def _try_options(files: Any) -> None:
    """Have a file system look at its options, as some do only before their first request."""
    if hasattr(files, "connect"):
        files.connect()


def uploads_are_whole(scheme: str) -> bool:
    """Whether nobody ever sees half a file while it is written."""
    return scheme in _WHOLE_UPLOADS


def use_options(options: Mapping[str, Mapping[str, Any]]) -> None:
    """Settings of file systems, by scheme: for this process and for those that it starts.

    Workers get paths only, and open them with what they find here.
    """
    if not options:
        return
    import fsspec

    for scheme, values in options.items():
        told = json.dumps(dict(values), sort_keys=True)
        if fsspec.config.conf.get(scheme) != dict(values):
            os.environ[_OPTIONS_VARIABLE.format(scheme.upper())] = told
            fsspec.config.conf[scheme] = json.loads(told)


def stamp_of(path: Path) -> Stamp:
    """What tells, without reading it, that a file is still the one it was."""
    if isinstance(path, RemotePath):
        return _stamp(path.file_system.info(path.key))
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns, "")


def _stamp(info: Mapping[str, Any]) -> Stamp:
    tag = next((info[key] for key in ("ETag", "etag", "md5", "content_md5") if info.get(key)), "")
    keys = ("LastModified", "last_modified", "mtime", "updated", "created")
    modified = next((info[key] for key in keys if info.get(key)), None)
    return Stamp(int(info["size"]), _nanoseconds(modified), str(tag).strip('"'))


def _nanoseconds(modified: object) -> int:
    """One number for a time, however a file system writes it down."""
    if isinstance(modified, datetime):
        return int(modified.timestamp() * 1_000_000) * 1_000
    if isinstance(modified, int | float):
        return int(modified * 1_000_000) * 1_000
    return int.from_bytes(sha256(str(modified).encode()).digest()[:7]) if modified else 0


def found_by(pattern: str) -> list[tuple[RemotePath, Stamp]]:
    """The files that a glob over a URL finds, by name. One listing, however many there are."""
    path = RemotePath(pattern)
    prefix = f"{scheme_of(pattern)}://"
    found = path.file_system.glob(path.key, detail=True)
    named = [
        (RemotePath(prefix + key.lstrip("/")), _stamp(info))
        for key, info in found.items()
        if info.get("type") == "file"
    ]
    depth = len(fixed_part(path).parts)
    return sorted(one for one in named if not _is_hidden(one[0].parts[depth:]))


def listed(folder: RemotePath) -> dict[str, Stamp]:
    """All files below a folder, by their names from there on. One listing."""
    key = folder.key.rstrip("/")
    try:
        found = folder.file_system.find(key, detail=True)
    except FileNotFoundError:
        return {}
    return {name[len(key) :].lstrip("/"): _stamp(info) for name, info in found.items()}


def fixed_part(path: Path) -> Path:
    """The part of a pattern before its first wildcard; of a plain path, its folder."""
    parts = path.parts
    wild = next((at for at, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts) - 1)
    return type(path)(*parts[:wild])


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """As a shell has it: a `*` finds nothing that begins with a dot."""
    return any(part.startswith(".") for part in parts)
