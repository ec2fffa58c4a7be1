"""Rows from the Hugging Face hub. The only module that knows the `datasets` package."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from decon_core.benchmarks.fields import Row
from decon_core.benchmarks.recipe import HubSource
from decon_core.errors import Problem, RecipeError
from decon_core.storage.paths import naming_unreachable


def read_hub_rows(
    source: HubSource, *, config: str | None, split: str, where: str
) -> Iterator[Row]:
    """Streamed, so that a look at ten rows does not download a data set."""
    try:
        import datasets
    except ImportError:
        raise RecipeError(
            Problem(
                f"{where}.hf_path",
                "no package 'datasets'",
                f"it to be installed, to read {source.path} from the hub",
                "pip install 'decon-assets[hub]', or download the files and use local_path.",
            )
        ) from None
    place = f"{where}.hf_path {source.path!r}"
    try:
        with _without_retries_told(), naming_unreachable(place):
            rows = datasets.load_dataset(
                source.path, name=config, split=split, revision=source.revision, streaming=True
            )
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        # `datasets` says this way that the data set, the config or the split does not exist.
        raise RecipeError(
            Problem(
                where,
                f"nothing to read on the hub ({type(error).__name__}: {error})",
                f"hf_path {source.path!r}, hf_config {config!r}, split {split!r}, "
                f"hf_revision {source.revision!r}",
                "Look the names up on the data set's page.",
            )
        ) from error
    # Pictures and sounds are never compared; decoding them would need more packages.
    with _without_retries_told(), naming_unreachable(place):
        yield from rows.decode(enable=False)


@contextmanager
def _without_retries_told() -> Iterator[None]:
    """Without two lines for each time that the hub is tried again: the error says all of it."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
