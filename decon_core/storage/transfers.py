"""Transfers files between a folder and a URL; each gets its name when it is complete."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from decon_core.storage.files import draft_folder
from decon_core.storage.paths import RemotePath, naming_unreachable, scheme_of, uploads_are_whole


def fetch(url: RemotePath, folder: Path, names: Collection[str]) -> None:
    """Fetch files, which replace those in the folder."""
    if not names:
        return
    with draft_folder(folder / "drafts", "fetched") as draft:
        parts = [draft / str(number) for number in range(len(names))]
        keys = [_key(url, name) for name in names]
        with naming_unreachable(url):
            url.file_system.get(keys, [str(part) for part in parts])
        for part, name in zip(parts, names, strict=True):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            part.replace(folder / name)


def send(folder: Path, url: RemotePath, names: Collection[str]) -> None:
    """Send files, which replace those at the URL."""
    if not names:
        return
    files = url.file_system
    paths = [str(folder / name) for name in names]
    keys = [_key(url, name) for name in names]
    with naming_unreachable(url):
        if uploads_are_whole(scheme_of(str(url))):
            files.put(paths, keys)
            return
        for path, key in zip(paths, keys, strict=True):
            parent, _, name = key.rpartition("/")
            files.makedirs(parent, exist_ok=True)
            files.put_file(path, f"{parent}/.{name}.tmp")
            files.mv(f"{parent}/.{name}.tmp", key)


def delete(url: RemotePath, name: str) -> None:
    """Delete a file at the URL, unless another machine was quicker."""
    with suppress(FileNotFoundError), naming_unreachable(url):
        url.file_system.rm_file(_key(url, name))


def _key(url: RemotePath, name: str) -> str:
    return f"{url.key.rstrip('/')}/{name}"
