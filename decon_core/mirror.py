"""Where the products of a pipeline are kept, and the folder that they are made in.

All code reads and writes a local folder. Whoever starts work on it comes through here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from decon_core.config import Config
from decon_core.store import Store


def at_hand(config: Config) -> Store:
    """The store of a configuration, with all that was made elsewhere, to read."""
    return Store(config.store)


@contextmanager
def at_work(config: Config) -> Iterator[Store]:
    """The same, to write; what the block made is kept when it ends, well or not."""
    yield at_hand(config)
