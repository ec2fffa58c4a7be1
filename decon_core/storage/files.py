"""Write files and folders whole or not at all, and JSON files with checksums."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decon_core.errors import DamagedError, InputError, Problem, StaleError
from decon_core.storage.checksums import EMPTY, NAME, damaged, read_verified, sealed
from decon_core.storage.drafts import draft_name, remove

_SYNCED_AT_ONCE = 16
_DEVICES = {Path("/dev"), Path("/dev/fd")}


def names_in(folder: Path) -> frozenset[str]:
    """Return the names of what is in a folder; none if there is no folder."""
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - names only
    except FileNotFoundError:
        return frozenset()


def files_below(folder: Path) -> list[Path]:
    """Return all files below a folder, without hidden ones, which may be still being written."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def copy_file(source: Path, target: Path, *, is_synced: bool = True) -> None:
    """Copy a file that is complete."""
    with atomic_path(target, is_synced=is_synced) as draft:
        shutil.copyfile(source, draft)


@contextmanager
def draft_folder(folder: Path, name: str) -> Iterator[Path]:
    """Create a temporary folder in `folder` for the duration of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / draft_name(name)
    draft.mkdir()
    try:
        yield draft
    finally:
        remove(draft)


@contextmanager
def atomic_path(
    path: Path, *, drafts: Path | None = None, is_synced: bool = True
) -> Iterator[Path]:
    """Yield a draft path that is renamed to `path` if the block succeeds, and deleted otherwise.

    Works for files and folders; an existing folder is replaced. The draft is created beside `path`,
    or in `drafts` if other programs read everything beside it: a killed process leaves its draft.
    Not synced, a file that was written shortly before a power failure may be damaged after it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = drafts or path.parent
    draft = folder / draft_name(path.name)
    with _named_when_full(path):
        try:
            yield draft
            if is_synced and draft.is_dir():
                _flush_all({file: path for file in draft.rglob("*") if file.is_file()})
            elif is_synced and draft.is_file():
                _flush(draft)
            if draft.is_dir():
                _replace_folder(draft, path)
            else:
                draft.replace(path)
        finally:
            remove(draft)


@contextmanager
def atomic_files() -> Iterator[Callable[[Path], Path]]:
    """Yield a function that returns a draft for a path; all are renamed in order at the end."""
    drafts: dict[Path, Path] = {}

    def draft_of(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        drafts[path] = path.parent / draft_name(path.name)
        return drafts[path]

    try:
        yield draft_of
        _flush_all({draft: path for path, draft in drafts.items()})
        for path, draft in drafts.items():
            draft.replace(path)
    finally:
        for draft in drafts.values():
            remove(draft)


@contextmanager
def _named_when_full(path: Path) -> Iterator[None]:
    """Name the file in the error of a full disk, where the system does not."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:
            raise OSError(error.errno, "no space left to write", str(path)) from error
        raise


def _flush_all(drafts: Mapping[Path, Path]) -> None:
    """Sync drafts of these paths, side by side.

    A file system writes its journal once for all that wait for it.
    """
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        flushes = [(path, pool.submit(_flush, draft)) for draft, path in drafts.items()]
        for path, flush in flushes:
            with _named_when_full(path):
                flush.result()


def _flush(path: Path) -> None:
    """Sync a file before it is renamed: a power failure could otherwise leave an empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replace_folder(draft: Path, path: Path) -> None:
    if not path.exists():
        draft.replace(path)
        return
    old = draft.with_suffix(".old")
    path.replace(old)
    try:
        draft.replace(path)
    except OSError:
        old.replace(path)
        raise
    shutil.rmtree(old)


def require_folder(path: Path) -> None:
    """Raise `InputError` if a folder cannot be created at a path, as something else is there."""
    if path.exists() and not path.is_dir():
        raise InputError(Problem(str(path), "not a folder", "an output folder, new or existing"))


def make_folder(path: Path) -> None:
    """Create an output folder; raise `InputError` if that cannot be done."""
    require_folder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        expected = "a folder that can be created, or an existing one"
        raise InputError(Problem(str(path), error.strerror or str(error), expected)) from None


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. A device such as /dev/stdout is not replaced."""
    if path.parent in _DEVICES:
        path.write_text(text, encoding="utf-8")
        return
    with atomic_path(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Mapping[str, Any], *, is_synced: bool = True) -> None:
    """Write a JSON object with its checksum as the last key."""
    with atomic_path(path, is_synced=is_synced) as draft:
        draft.write_bytes(sealed_json(value))


def update_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object like `write_json`, unless the file already has this content."""
    if not path.is_file() or path.read_bytes() != sealed_json(value):
        write_json(path, value)


def sealed_json(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object with its checksum as the last key."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    rest = text.removesuffix("}").rstrip()
    between = "," if value else ""
    return sealed(f'{rest}{between}\n "{NAME}": "{EMPTY}"\n}}\n'.encode())


def write_plain_json(path: Path, value: object) -> None:
    """Write a JSON value without a checksum, for other programs."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_plain_json(path: Path) -> Any:
    """Read a JSON file without a checksum, which may have been edited by hand."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        problem = Problem(str(path), f"not valid JSON ({error})", remedy="write it again")
        raise StaleError(problem) from None


def read_json(path: Path) -> Any:  # the caller knows what it wrote
    """Read what `write_json` wrote, verify its checksum and drop it."""
    content = read_verified(path)
    try:
        value = json.loads(content)
    except ValueError as error:
        raise DamagedError(damaged(path, str(error))) from None
    if isinstance(value, dict):
        value.pop(NAME, None)
    return value
