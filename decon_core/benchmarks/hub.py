"""Datasets of the Hugging Face hub: their configs, revisions and rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decon_core.benchmarks.fields import Row
from decon_core.benchmarks.readers import read_rows
from decon_core.benchmarks.recipe import HubSource
from decon_core.errors import Problem, RecipeError
from decon_core.storage.paths import expand_glob, hub_page, naming_unreachable

EVERY = "*"  # config of a recipe: all configs of the dataset
# The branch with the files that the hub has converted; datasets of Python code have no others.
_CONVERTED = "refs/convert/parquet"


def revision_of(source: HubSource, *, where: str) -> str:
    """Return the commit that a revision is today; empty for a local folder."""
    if Path(source.path).is_dir():
        return ""
    _require_package(source, where)
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    with naming_unreachable(_place(source, where)):
        try:
            return str(HfApi().dataset_info(source.path, revision=source.revision, timeout=30).sha)
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            raise _absent(source, where, error) from error


def configs_of(source: HubSource, *, where: str) -> Sequence[str | None]:
    """Return the configs to read; `*` in a recipe stands for all."""
    if source.configs != (EVERY,):
        return source.configs or (None,)
    with _answers_of(source, where, "names of configs") as datasets:
        names: list[str] = datasets.get_dataset_config_names(source.path, revision=source.revision)
    return names


def read_hub_rows(
    source: HubSource, *, config: str | None, split: str, where: str
) -> Iterator[Row | Problem]:
    """Stream the rows of a split, so that reading ten rows does not download the dataset."""
    names = f"hf_config {config!r}, split {split!r}"
    with _answers_of(source, where, names) as datasets:
        try:
            rows = datasets.load_dataset(
                source.path, name=config, split=split, revision=source.revision, streaming=True
            )
        except RuntimeError as error:
            if "scripts are no longer supported" not in str(error):
                raise
            rows = None
    if rows is None:
        yield from _converted_rows(source, config, split, where)
        return
    # Images and audio are never compared; decoding them would need more packages.
    with _answers_of(source, where, names):
        yield from rows.decode(enable=False)


def _converted_rows(
    source: HubSource, config: str | None, split: str, where: str
) -> Iterator[Row | Problem]:
    """Yield the rows of a dataset of Python code, from the files that the hub has converted."""
    branch = _CONVERTED.replace("/", "%2F")
    pattern = f"hf://datasets/{source.path}@{branch}/{config or 'default'}/{split}/*.parquet"
    files = expand_glob(pattern)
    if not files:
        found = (
            "the dataset can be read only with a Python script, which is not supported, and the "
            f"hub has no converted files ({pattern})"
        )
        raise RecipeError(Problem(where, found, remedy=_look_up(source)))
    for file, _ in files:
        yield from read_rows(file)


def _look_up(source: HubSource) -> str:
    return f"Look up the names on the dataset's page: {hub_page(source.path)}"


@contextmanager
def _answers_of(source: HubSource, where: str, names: str) -> Iterator[Any]:
    """Yield the package `datasets`; its errors become those of the recipe or of the network."""
    datasets = _require_package(source, where)
    try:
        with _without_retry_warnings(), naming_unreachable(_place(source, where)):
            try:
                yield datasets
            except datasets.exceptions.DatasetNotFoundError as error:
                raise _absent(source, where, error, names) from error
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        # Raised by `datasets` if the dataset, the config or the split does not exist, or if the
        # columns of its files are not those that it declares.
        raise _absent(source, where, error, names) from error


def _absent(source: HubSource, where: str, error: Exception, names: str = "dataset") -> RecipeError:
    """Return the error for a dataset, config or split that is gone, or that is gated."""
    kind = type(error).__name__
    if kind == "GatedRepoError" or "is a gated dataset" in str(error):
        found = f"{source.path} is a gated dataset to which you have no access"
        page = hub_page(source.path)
        remedy = f"Accept the terms at {page}, then run `hf auth login` or set HF_TOKEN."
        return RecipeError(Problem(where, found, remedy=remedy))
    if kind in ("RepositoryNotFoundError", "DatasetNotFoundError"):
        found = f"the hub has no dataset {source.path}, or it is private"
        remedy = f"{_look_up(source)}; if it is private, run `hf auth login` or set HF_TOKEN."
        return RecipeError(Problem(where, found, remedy=remedy))
    found = f"nothing to read on the hub ({kind}: {' '.join(str(error).split())})"
    expected = f"hf_path {source.path!r}, {names}, hf_revision {source.revision!r}"
    return RecipeError(Problem(where, found, expected, _look_up(source)))


def _require_package(source: HubSource, where: str) -> Any:
    try:
        import datasets
    except ImportError:
        found = f"reading {source.path} from the hub needs the package 'datasets'"
        remedy = "Run `pip install 'decon-assets[hub]'`, or download the files and use local_path."
        raise RecipeError(Problem(f"{where}.hf_path", found, remedy=remedy)) from None
    return datasets


def _place(source: HubSource, where: str) -> str:
    return f"{where}.hf_path {source.path!r}"


@contextmanager
def _without_retry_warnings() -> Iterator[None]:
    """Silence the two log lines of each retry; the final error contains the cause."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
