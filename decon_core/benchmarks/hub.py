"""Read rows from the Hugging Face hub. The only module that imports `datasets`."""

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
    """Stream the rows of a split, so that reading ten rows does not download the data set."""
    try:
        import datasets
    except ImportError:
        expected = f"'datasets' installed, to read {source.path} from the hub"
        remedy = "pip install 'decon-assets[hub]', or download the files and use local_path."
        problem = Problem(f"{where}.hf_path", "no package 'datasets'", expected, remedy)
        raise RecipeError(problem) from None
    place = f"{where}.hf_path {source.path!r}"
    try:
        with _without_retry_warnings(), naming_unreachable(place):
            rows = datasets.load_dataset(
                source.path, name=config, split=split, revision=source.revision, streaming=True
            )
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        # Raised by `datasets` if the data set, the config or the split does not exist.
        found = f"nothing to read on the hub ({type(error).__name__}: {error})"
        names = f"hf_path {source.path!r}, hf_config {config!r}, split {split!r}"
        expected = f"{names}, hf_revision {source.revision!r}"
        remedy = "Look the names up on the data set's page."
        raise RecipeError(Problem(where, found, expected, remedy)) from error
    # Images and audio are never compared; decoding them would need more packages.
    with _without_retry_warnings(), naming_unreachable(place):
        yield from rows.decode(enable=False)


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
