"""Files by path or by URL: `s3://bucket/web/a.jsonl.gz` is used as a path is, and read in pieces.

`place("s3://...")` gives a path whose bytes come from a file system that fsspec knows; everything
else, and `file://`, is a path of this machine. Only what the pipeline reads its inputs with works
on such a path. It is not there for the system: whoever hands it on by name is told "no such file",
and never reads another file in its stead.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PosixPath
from typing import IO, Any, NamedTuple

from decon_core.errors import ConfigError, DeconError, Problem

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
        with naming_unreachable(self):
            file: IO[Any] = self.file_system.open(self.key, mode, **options)
        return file

    def read_bytes(self) -> bytes:
        with naming_unreachable(self):
            return bytes(self.file_system.cat_file(self.key))

    def read_text(self, encoding: str | None = None, errors: str | None = None, *_: Any) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def is_file(self, **_: Any) -> bool:
        with naming_unreachable(self):
            return bool(self.file_system.isfile(self.key))

    def is_dir(self, **_: Any) -> bool:
        with naming_unreachable(self):
            return bool(self.file_system.isdir(self.key))

    def exists(self, **_: Any) -> bool:
        with naming_unreachable(self):
            return bool(self.file_system.exists(self.key))

    def absolute(self) -> RemotePath:
        return self

    def resolve(self, strict: bool = False) -> RemotePath:  # noqa: ARG002 - as paths have it
        return self

    def glob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override] # gives its own kind
        return iter([path for path, _ in expand_glob(str(self / pattern))])

    def rglob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override] # gives its own kind
        return self.glob(f"**/{pattern}")


# Errors that are no `OSError`, by the module of the library: what a network does may pass,
_NETWORK_ERRORS = {
    "botocore.exceptions": ("BotoCoreError",),
    "aiohttp": ("ClientError",),
    "httpx": ("HTTPError",),
    "httpx2": ("HTTPError",),
    "huggingface_hub.errors": ("HfHubHTTPError", "LocalEntryNotFoundError"),
    "requests": ("RequestException",),
    "urllib3.exceptions": ("HTTPError",),
    "google.auth.exceptions": ("TransportError",),
    "gcsfs.retry": ("HttpError",),
    "azure.core.exceptions": ("AzureError",),
    "paramiko.ssh_exception": ("SSHException",),
}
# and what a library says of names, rights or damaged files does not.
_OTHER_ERRORS = {
    "botocore.exceptions": ("ClientError",),
    "google.auth.exceptions": ("GoogleAuthError",),
    "huggingface_hub.errors": ("HFValidationError",),
    "datasets.exceptions": ("DatasetsError",),
    "pyarrow": ("ArrowException",),
}


def network_errors() -> tuple[type[Exception], ...]:
    """What file systems raise, beside `OSError`, when the network fails them; of those in use."""
    return _imported(_NETWORK_ERRORS)


def library_errors() -> tuple[type[Exception], ...]:
    """What libraries that read files raise beside `OSError`, network or not; of those in use."""
    return (*network_errors(), *_imported(_OTHER_ERRORS))


def _imported(names: Mapping[str, Sequence[str]]) -> tuple[type[Exception], ...]:
    """The classes of modules that are imported: no other library can have raised anything."""
    return tuple(
        getattr(sys.modules[module], name)
        for module, of_module in names.items()
        if module in sys.modules
        for name in of_module
        if hasattr(sys.modules[module], name)
    )


class UnreachableError(OSError):
    """A place behind a URL that does not answer, or answers with a refusal; says what to do.

    Its number is that of the system for the like: whether it may pass is decided by that.
    """

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def naming_unreachable(where: object) -> Iterator[None]:
    """Turn what libraries raise about a network or a right into an error that names the place."""
    try:
        yield
    except (UnreachableError, DeconError):
        raise
    except _of_network_or_rights() as error:
        raise unreachable(where, error) from error


def _of_network_or_rights() -> tuple[type[Exception], ...]:
    """Looked up when something was raised: until then the library may not be imported."""
    return (PermissionError, ConnectionError, TimeoutError, *library_errors())


def unreachable(where: object, error: Exception) -> UnreachableError:
    """An error of a library, as one line: the place, the cause, and what to do."""
    number, remedy = _number_and_remedy(error)
    problem = Problem(str(where), cause_of(error), "a place that answers", remedy)
    return UnreachableError(number, str(problem))


def cause_of(error: BaseException) -> str:
    """An error of a library on one line, however many it takes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = lines[0][:_LONGEST_CAUSE] if lines else "no reason given"
    return f"{type(error).__name__}: {told}"


def remedy_for(error: BaseException) -> str:
    """What to do about an error of a library or of the system; empty where that is not known."""
    if isinstance(error, UnreachableError):
        return ""  # it says so itself
    if isinstance(error, OSError) and error.errno in _OF_SYSTEM:
        return _OF_SYSTEM[error.errno]
    is_network: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, *network_errors())
    return _number_and_remedy(error)[1] if isinstance(error, is_network) else ""


_LONGEST_CAUSE = 300
_REFUSED = re.compile(
    r"\b(401|403)\b|denied|forbidden|unauthori[sz]ed|credential|gated|log ?in", re.IGNORECASE
)
_ABSENT = re.compile(r"\b404\b|not ?found|no such", re.IGNORECASE)
_LOG_IN = (
    "log in, or ask for access: the hub reads HF_TOKEN, S3 reads AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY or a profile"
)
_CONNECT = (
    "check the network, the address and the proxy, and run the same command again; or download the "
    "files and name their local path"
)
_OF_SYSTEM = {
    errno.EACCES: "allow this user to read and write there",
    errno.EPERM: "allow this user to read and write there",
    errno.ENOSPC: "free some space, and run the same command again",
    errno.EDQUOT: "free some space, and run the same command again",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EROFS: "name a folder that can be written",
}


def _number_and_remedy(error: BaseException) -> tuple[int, str]:
    text = f"{type(error).__name__}: {error}"
    if "OfflineMode" in text or "offline mode" in text:
        return errno.ENETDOWN, "unset HF_HUB_OFFLINE, or download the files and name their path"
    if isinstance(error, PermissionError) or _REFUSED.search(text):
        return errno.EACCES, _LOG_IN
    is_no_answer = isinstance(error, ConnectionError | TimeoutError) or "Connect" in text
    if _ABSENT.search(text) and not is_no_answer:
        return errno.ENOENT, f"correct the address; a private one also answers so: {_LOG_IN}"
    return errno.EHOSTUNREACH, _CONNECT


def parse_path(text: str | Path, *, base: Path | None = None) -> Path:
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


_EXTRAS = {"s3": "s3", "s3a": "s3"}  # groups of packages, by scheme


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
        remedy = f"pip install 'decon-assets[{_EXTRAS[scheme]}]'" if scheme in _EXTRAS else ""
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
        with naming_unreachable(path):
            return _stamp(path.file_system.info(path.key))
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns, "")


# What file systems call a name of a content; the hub has the last one.
_TAGS = ("ETag", "etag", "md5", "content_md5", "blob_id")


def _stamp(info: Mapping[str, Any]) -> Stamp:
    tag = next((info[key] for key in _TAGS if info.get(key)), "")
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


def expand_glob(pattern: str) -> list[tuple[RemotePath, Stamp]]:
    """The files that a glob over a URL finds, by name. One listing, however many there are."""
    path = RemotePath(pattern)
    prefix = f"{scheme_of(pattern)}://"
    with naming_unreachable(pattern):
        found = path.file_system.glob(path.key, detail=True)
    named = [
        (RemotePath(prefix + key.lstrip("/")), _stamp(info))
        for key, info in found.items()
        if info.get("type") == "file"
    ]
    depth = len(fixed_part(path).parts)
    return sorted(one for one in named if not _is_hidden(one[0].parts[depth:]))


def list_files(folder: RemotePath) -> dict[str, Stamp]:
    """All files below a folder, by their names from there on. One listing."""
    key = folder.key.rstrip("/")
    try:
        with naming_unreachable(folder):
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


_OWN_MARKS = ("_", ".")


def is_hidden(parts: Sequence[str], pattern: Sequence[str] = ()) -> bool:
    """Whether a file below a folder is bookkeeping by its name: one part begins with `_` or `.`.

    Spark, Hive, Arrow and this project's mixtures name their own files so (`_manifest.json`,
    `_SUCCESS`, `.crc`). `parts`: names from the folder, or from a pattern's first wildcard on.
    `pattern`: the parts of that pattern; a part that itself begins with the mark asks for the name.
    """
    return any(
        part.startswith(_OWN_MARKS) and not any(_names(one, part) for one in pattern)
        for part in parts
    )


def _names(pattern: str, name: str) -> bool:
    return pattern.startswith(_OWN_MARKS) and fnmatchcase(name, pattern)
