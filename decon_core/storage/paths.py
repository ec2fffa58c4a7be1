"""Local and remote files behind one type: `s3://bucket/web/a.jsonl.gz` is used like a `Path`.

A `RemotePath` reads through fsspec and has only the operations that the pipeline reads its inputs
with; a library that opens files itself fails with "no such file" and never reads another file. Not
`universal_pathlib`: its paths are no `pathlib.Path`s, and it has no stamps and no remedies.
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
_BLOCK = 4 << 20  # bytes per request

_ALIASES = (
    {"s3", "s3a"},
    {"gs", "gcs"},
    {"abfs", "abfss", "adl", "az"},
    {"http", "https"},
    {"file", "local"},
)

# Schemes where an upload appears completely or not at all.
ATOMIC_UPLOADS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"})


class Stamp(NamedTuple):
    """What identifies the content of a file without reading it."""

    n_bytes: int
    modified_ns: int
    tag: str  # the ETag or another content id, or inode and time of change; may be empty

    def content_at(self, path: Path) -> str:
        """Return what stands for the content of a file with this stamp; empty if nothing does.

        A remote file has a strong tag, unless the server gives it none or a weak one (`W/"..."`),
        which files of almost the same content may share. Tags of the hub are hashes, others may
        be the same for files at different addresses.
        """
        if not isinstance(path, RemotePath) or not self.tag or self.tag.startswith("W/"):
            return ""
        address = "" if scheme_of(str(path)) == "hf" else str(path)
        return sha256(json.dumps([self.tag, self.n_bytes, address]).encode()).hexdigest()[:32]


class RemotePath(PosixPath):
    """A path on an fsspec file system; its first part is the scheme."""

    def __str__(self) -> str:
        return _SCHEME.sub(r"\1://", super().__str__(), count=1)

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str, ...]]:
        return type(self), (str(self),)

    @property
    def file_system(self) -> Any:  # fsspec has no types
        """The file system; fsspec caches one per scheme and options."""
        import fsspec

        scheme = scheme_of(str(self))
        try:
            # No cached listings: files that others have just written must be visible.
            files = fsspec.filesystem(scheme, use_listings_cache=False)
            _try_options(files)
            return files
        except TypeError as error:
            expected = "options that the file system accepts"
            raise ConfigError(Problem(f"storage.{scheme}", str(error), expected)) from None
        except (ImportError, ValueError) as error:
            expected = "a file system that fsspec supports, with its package installed"
            remedy = _INSTALL.get(scheme, "")
            lacks = f"a missing package ({error})" if isinstance(error, ImportError) else str(error)
            raise ConfigError(Problem(str(self), lacks, expected, remedy)) from None

    @property
    def key(self) -> str:
        """The path without the scheme, as the file system expects it."""
        return str(self.file_system._strip_protocol(str(self)))  # noqa: SLF001 - its public name is for classes

    def open(  # type: ignore[override] # enough for reading
        self, mode: str = "r", *_: Any, encoding: str | None = None, **__: Any
    ) -> IO[Any]:
        if "w" in mode or "a" in mode or "+" in mode:
            raise OSError(f"{self} is read-only")
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
        from fsspec import AbstractFileSystem

        with naming_unreachable(self):
            # Not the file system's own method, which over HTTP sends a GET for the whole file.
            return bool(AbstractFileSystem.isfile(self.file_system, self.key))

    def is_dir(self, **_: Any) -> bool:
        with naming_unreachable(self):
            return bool(self.file_system.isdir(self.key))

    def exists(self, **_: Any) -> bool:
        with naming_unreachable(self):
            return bool(self.file_system.exists(self.key))

    def absolute(self) -> RemotePath:
        return self

    def resolve(self, strict: bool = False) -> RemotePath:  # noqa: ARG002 - signature of Path
        return self

    def glob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override] # yields RemotePath
        return iter([path for path, _ in expand_glob(str(self / pattern))])

    def rglob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override] # yields RemotePath
        return self.glob(f"**/{pattern}")


_INSTALL = {
    "s3": "run `pip install 'decon-assets[s3]'`",
    "s3a": "run `pip install 'decon-assets[s3]'`",
}

# Library errors that are not `OSError`: network failures, which may be temporary,
_NETWORK_ERRORS = """
    aiohttp.ClientError azure.core.exceptions.AzureError botocore.exceptions.BotoCoreError
    gcsfs.retry.HttpError google.auth.exceptions.TransportError httpx.HTTPError httpx2.HTTPError
    huggingface_hub.errors.HfHubHTTPError huggingface_hub.errors.LocalEntryNotFoundError
    paramiko.ssh_exception.SSHException requests.RequestException urllib3.exceptions.HTTPError
"""
# and errors about names, permissions or damaged files, which are permanent.
_OTHER_ERRORS = """
    botocore.exceptions.ClientError datasets.exceptions.DatasetsError
    google.auth.exceptions.GoogleAuthError huggingface_hub.errors.HFValidationError
    pyarrow.ArrowException
"""


def network_errors() -> tuple[type[Exception], ...]:
    """Return the errors besides `OSError` that imported libraries raise on network failures."""
    return _imported(_NETWORK_ERRORS)


def library_errors() -> tuple[type[Exception], ...]:
    """Return the errors besides `OSError` that imported libraries raise when reading files."""
    return _imported(_NETWORK_ERRORS + _OTHER_ERRORS)


def _imported(names: str) -> tuple[type[Exception], ...]:
    """Return the classes whose modules are imported: no other can have been raised."""
    parts = (name.rpartition(".") for name in names.split())
    classes = (getattr(sys.modules.get(module), name, None) for module, _, name in parts)
    return tuple(filter(None, classes))


class UnreachableError(OSError):
    """A URL that does not answer or refuses access; the message contains the remedy.

    Its `errno` is the system's for the same failure, and decides whether a retry is worthwhile.
    """

    def __str__(self) -> str:
        return str(self.strerror)

    @property
    def is_no_answer(self) -> bool:
        """Whether nothing answers, in contrast to an answer that refuses access or has no file."""
        return self.errno in (errno.EHOSTUNREACH, errno.ENETDOWN)


@contextmanager
def naming_unreachable(where: object) -> Iterator[None]:
    """Turn library errors about network or permissions into `UnreachableError`."""
    try:
        yield
    except (UnreachableError, DeconError):
        raise
    except _access_errors() as error:  # called after an error: a library may be imported late
        number, remedy = _number_and_remedy(error)
        if type(error).__name__ == "GatedRepoError" and (match := _DATA_SET.match(str(where))):
            page = hub_page(match[1])
            remedy = f"accept its terms at {page}, then log in: `hf auth login`, or set HF_TOKEN"
        problem = Problem(str(where), cause_of(error), "an accessible location", remedy)
        raise UnreachableError(number, str(problem)) from error


def _access_errors() -> tuple[type[Exception], ...]:
    return (PermissionError, ConnectionError, TimeoutError, *library_errors())


def cause_of(error: BaseException) -> str:
    """Return the class and the first line of an error's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = lines[0][:_MAX_CAUSE_CHARS] if lines else "no reason given"
    return f"{type(error).__name__}: {message}"


def has_remedy(error: OSError) -> bool:
    """Return whether a system error is one of the machine: a full disk, missing permission."""
    return isinstance(error, UnreachableError) or error.errno in _SYSTEM_REMEDIES


def remedy_for(error: BaseException) -> str:
    """Return the remedy for a library or system error; empty if none is known."""
    if isinstance(error, UnreachableError):
        return ""  # its message contains the remedy
    if isinstance(error, OSError) and error.errno in _SYSTEM_REMEDIES:
        return _SYSTEM_REMEDIES[error.errno]
    is_network: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, *network_errors())
    return _number_and_remedy(error)[1] if isinstance(error, is_network) else ""


_DATA_SET = re.compile(r"hf://datasets/([^/@]+/[^/@]+)")


def hub_page(data_set: str) -> str:
    """Return the web page of a dataset on the hub, given as `ORG/NAME`.

    Importing `huggingface_hub` would take longer than to read the variable that it reads.
    """
    hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    return f"{hub}/datasets/{data_set}"


def require_access(path: Path) -> None:
    """Raise `UnreachableError` if a file was listed, but may not be read."""
    if not isinstance(path, RemotePath):
        return
    if not (match := _DATA_SET.match(str(path))):
        stamp_of(path)  # S3 asks for the right to read it, too
        return
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError

    files = path.file_system
    with naming_unreachable(path):
        try:
            HfApi(files.endpoint, token=files.token).auth_check(match[1], repo_type="dataset")
        except GatedRepoError:
            raise
        except HfHubHTTPError:
            pass  # a mirror of the hub that cannot tell; reading the file will


def why_absent(path: Path) -> str:
    """Return why there is no file at a path of the hub, if its dataset or revision is unknown."""
    if isinstance(path, RemotePath) and hasattr(path.file_system, "resolve_path"):
        try:
            path.file_system.resolve_path(path.key)
        except FileNotFoundError as error:
            return next(iter(re.findall(r"\((\w+ not found)\)", str(error))), "")
    return ""


_MAX_CAUSE_CHARS = 300
_REFUSED = re.compile(
    r"\b(401|403)\b|denied|forbidden|unauthori[sz]ed|credential|gated|log ?in", re.IGNORECASE
)
_ABSENT = re.compile(r"\b404\b|not ?found|no such", re.IGNORECASE)
_LOG_IN = (
    "log in or request access: for the Hugging Face hub, run `hf auth login` or set HF_TOKEN; S3 "
    "reads a profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_CONNECT = (
    "check the network, the address and the proxy, then run the command again; or download the "
    "files and use their local path"
)
_SYSTEM_REMEDIES = {
    errno.EACCES: "give this user read and write permission",
    errno.EPERM: "give this user read and write permission",
    errno.ENOSPC: "free some disk space and run the command again",
    errno.EDQUOT: "free some disk space and run the command again",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit on open files (fs.file-max)",
    errno.EROFS: "use a writable folder",
    errno.EIO: "check the disk and its free space, then run the command again",
}


def _number_and_remedy(error: BaseException) -> tuple[int, str]:
    text = f"{type(error).__name__}: {error}"
    if "OfflineMode" in text or "offline mode" in text:
        return errno.ENETDOWN, "unset HF_HUB_OFFLINE, or use a local copy of the files"
    if isinstance(error, PermissionError) or _REFUSED.search(text):
        return errno.EACCES, _LOG_IN
    is_no_answer = isinstance(error, ConnectionError | TimeoutError) or "Connect" in text
    if _ABSENT.search(text) and not is_no_answer:
        return errno.ENOENT, f"correct the address; if it is private, {_LOG_IN}"
    return errno.EHOSTUNREACH, _CONNECT


def parse_path(text: str | Path, *, base: Path | None = None) -> Path:
    """Parse a path or URL; a relative path is taken relative to `base`."""
    if isinstance(text, Path):
        return text
    if not is_url(text):
        return base / text if base is not None else Path(text)
    scheme = scheme_of(text)
    if scheme in ("file", "local"):
        return Path("/" + text.partition(":")[2].lstrip("/"))
    return RemotePath(text.replace(text[: len(scheme)], scheme, 1))


def is_url(text: str) -> bool:
    """Return whether a text starts with a scheme such as `s3://`."""
    return "://" in text and bool(_SCHEME.match(text))


def scheme_of(text: str) -> str:
    match = _SCHEME.match(text)
    return match[1].lower() if match else ""


def is_same_system(scheme: str, other: str) -> bool:
    """Return whether two schemes name the same fsspec file system, as `gs` and `gcs` do."""
    return scheme == other or any({scheme, other} <= names for names in _ALIASES)


@lru_cache(maxsize=64)
def _try_options(files: Any) -> None:
    """Let a file system validate its options, which some do only at the first request."""
    if hasattr(files, "connect"):
        files.connect()


_used: dict[str, Mapping[str, Any]] = {}


def options_in_use() -> dict[str, Mapping[str, Any]]:
    """Return the options that this process has set, for processes of other machines."""
    return dict(_used)


def use_options(options: Mapping[str, Mapping[str, Any]]) -> None:
    """Set fsspec options by scheme, for this process and its workers, which receive only paths."""
    if not options:
        return
    import fsspec

    for scheme, values in options.items():
        _used[scheme] = values
        if fsspec.config.conf.get(scheme) != dict(values):
            text = json.dumps(dict(values), sort_keys=True)
            os.environ[f"FSSPEC_{scheme.upper()}"] = text  # fsspec reads it when it is imported
            fsspec.config.conf[scheme] = json.loads(text)


def stamp_of(path: Path) -> Stamp:
    """Return size, date and tag of a file, which change with its content."""
    if isinstance(path, RemotePath):
        # The file system of the hub keeps listings, and leaves out the blob id unless asked.
        options = {"refresh": True, "expand_info": True} if scheme_of(str(path)) == "hf" else {}
        with naming_unreachable(path):
            return _stamp(path.file_system.info(path.key, **options))
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns, "")


def stamp_or_none(path: Path) -> Stamp | None:
    """Return the stamp of a file; None without the file."""
    try:
        return stamp_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def local_stamp(status: os.stat_result) -> Stamp:
    """Like `stamp_of`, with a tag that tells a file that was written again with its old date."""
    tag = f"{status.st_ino:x}-{status.st_ctime_ns:x}"
    return Stamp(status.st_size, status.st_mtime_ns, tag)


# Keys of content ids in the `info` of fsspec file systems; the hub uses the last key.
_TAGS = ("ETag", "etag", "md5", "content_md5", "blob_id")
_DATES = ("LastModified", "last_modified", "mtime", "updated", "created")


def _stamp(info: Mapping[str, Any]) -> Stamp:
    tag = next((info[key] for key in _TAGS if info.get(key)), "")
    modified = next((info[key] for key in _DATES if info.get(key)), 0)
    if isinstance(modified, datetime):
        modified = modified.timestamp()
    if isinstance(modified, int | float):
        modified_ns = int(modified * 1_000_000) * 1_000
    else:  # another type: any number that changes with it
        modified_ns = int.from_bytes(sha256(str(modified).encode()).digest()[:7])
    return Stamp(int(info["size"]), modified_ns, str(tag).strip('"'))


def expand_glob(pattern: str) -> list[tuple[RemotePath, Stamp]]:
    """Return the files that match a URL glob, sorted by name, with one listing."""
    path = RemotePath(pattern)
    prefix = f"{scheme_of(pattern)}://"
    with naming_unreachable(pattern):
        infos = path.file_system.glob(path.key, detail=True)
    depth = len(fixed_part(path).parts)
    files = []
    for key, info in infos.items():
        file = RemotePath(prefix + key.lstrip("/"))
        # Like in a shell, `*` does not match names that begin with a dot.
        is_dotted = any(part.startswith(".") for part in file.parts[depth:])
        if info.get("type") == "file" and not is_dotted:
            files.append((file, _stamp(info)))
    return sorted(files)


def list_files(folder: RemotePath) -> dict[str, Stamp]:
    """Return all files below a folder by relative name, with one listing."""
    key = folder.key.rstrip("/")
    try:
        with naming_unreachable(folder):
            infos = folder.file_system.find(key, detail=True)
    except FileNotFoundError:
        return {}
    return {name[len(key) :].lstrip("/"): _stamp(info) for name, info in infos.items()}


def fixed_part(path: Path) -> Path:
    """Return the part of a pattern before its first wildcard, or a plain path's folder."""
    parts = path.parts
    wild = next((at for at, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts) - 1)
    return type(path)(*parts[:wild])


def is_hidden(parts: Sequence[str], pattern: Sequence[str] = ()) -> bool:
    """Return whether a file is bookkeeping: one part of its path begins with `_` or `.`.

    Spark, Hive and Arrow use such names for their own files (`_SUCCESS`, `_metadata`, `.crc`).
    `parts`: names below the folder, or from a pattern's first wildcard on. `pattern`: the parts of
    that pattern; a part that itself begins with `_` or `.` includes the names it matches.
    """
    prefixes = ("_", ".")
    included = [part for part in pattern if part.startswith(prefixes)]
    hidden = (part for part in parts if part.startswith(prefixes))
    return any(not any(fnmatchcase(name, part) for part in included) for name in hidden)
