"""A stand-in for the hub: data sets with configs, splits and rows, in place of its two clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha1
from types import SimpleNamespace
from typing import Any

import datasets
import httpx
import huggingface_hub
import pytest
from datasets.exceptions import DatasetNotFoundError
from huggingface_hub.errors import RepositoryNotFoundError

Rows = Sequence[Mapping[str, Any]]


class FakeHub:
    """Answers `HfApi().dataset_info` and `datasets.load_dataset` from what it holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sets: dict[str, dict[tuple[str | None, str], Rows]] = {}
        self.commits: dict[str, str] = {}
        self.gated: set[str] = set()
        self.is_down = False
        self.n_read = 0
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: self)
        monkeypatch.setattr(datasets, "load_dataset", self._load)
        monkeypatch.setattr(datasets, "get_dataset_config_names", self._config_names)

    def put(self, path: str, rows: Rows, *, split: str, config: str | None = None) -> None:
        """Publish rows; each call is a commit."""
        self.sets.setdefault(path, {})[config, split] = rows
        last = f"{self.commits.get(path)} {path}"
        self.commits[path] = sha1(last.encode(), usedforsecurity=False).hexdigest()

    def dataset_info(self, path: str, **_: object) -> SimpleNamespace:
        self._answer(path)
        return SimpleNamespace(sha=self.commits[path])

    def _answer(self, path: str) -> None:
        if self.is_down:
            raise ConnectionError("no route to the hub")
        if path not in self.sets:
            request = httpx.Request("GET", f"https://hub/{path}")
            raise RepositoryNotFoundError("404", response=httpx.Response(404, request=request))

    def _load(self, path: str, name: str | None, split: str, **_: object) -> Any:
        self._answer(path)
        if path in self.gated:
            raise DatasetNotFoundError(f"Dataset '{path}' is a gated dataset on the Hub.")
        if (name, split) not in self.sets[path]:
            raise ValueError(f"Unknown split {split!r} of config {name!r}")

        def rows() -> Iterator[Mapping[str, Any]]:
            self.n_read += 1
            yield from self.sets[path][name, split]

        return SimpleNamespace(decode=lambda enable: rows())

    def _config_names(self, path: str, **_: object) -> list[str]:
        self._answer(path)
        return sorted({str(config) for config, _ in self.sets[path]})
