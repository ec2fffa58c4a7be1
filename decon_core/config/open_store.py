"""The store that a configuration names, fetched from its remote copy and kept there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from decon_core.config.load import Config
from decon_core.storage.mirror import Mirror
from decon_core.storage.store import Store


def open_store(config: Config) -> Store:
    """The store of a configuration, to read; what other machines made is fetched first."""
    if config.kept is not None:
        Mirror(config.store, config.kept).pull()
    return Store(config.store)


@contextmanager
def writable_store(config: Config) -> Iterator[Store]:
    """The store of a configuration, to write; its remote copy is updated when the block ends."""
    store = open_store(config)
    try:
        yield store
    finally:
        if config.kept is not None:
            Mirror(config.store, config.kept).push()
