"""Open the store of a configuration, synchronized with its remote copy if there is any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from decon_core.config.load import Config
from decon_core.storage.mirror import Mirror
from decon_core.storage.store import Store


def open_store(config: Config) -> Store:
    """Open the store for reading, after fetching changes from its remote copy."""
    if config.kept is not None:
        Mirror(config.store, config.kept).pull()
    return Store(config.store)


@contextmanager
def writable_store(config: Config) -> Iterator[Store]:
    """Open the store for writing; its remote copy is updated at the end, even after an error."""
    store = open_store(config)
    try:
        yield store
    finally:
        if config.kept is not None:
            Mirror(config.store, config.kept).push()
