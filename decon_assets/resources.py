"""The Dagster resource of all assets: the configuration file, and the store that it names.

The resource holds only the path, so it cannot disagree with the content of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import ConfigurableResource

from decon_core.config import CONFIG_VARIABLE, DEFAULT_CONFIG
from decon_core.errors import ConfigError, Problem

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store


class Decon(ConfigurableResource):  # type: ignore[type-arg] # generic in its raw value only
    """The pipeline's configuration: a decon.toml."""

    config_path: str = ""

    def config(self) -> Config:
        """Load the file; it is read on every call, so edits apply to the next materialization."""
        from decon_core.config.load import load_config

        return load_config(self.path())

    def path(self) -> Path:
        path = Path(self.config_path or os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
        if not path.is_file():
            remedy = (
                f"Start Dagster in the folder of decon.toml, or set {CONFIG_VARIABLE} to its path"
            )
            raise ConfigError(Problem(str(path.resolve()), "no such file", remedy=remedy))
        return path

    def open_store(self) -> tuple[Config, Store]:
        """Load the configuration and open its store for reading."""
        from decon_core.config.open_store import open_store

        config = self.config()
        return config, open_store(config)

    @contextmanager
    def writable_store(self) -> Iterator[tuple[Config, Store]]:
        """Load the configuration and open its store for writing.

        A store at a URL is pushed when the block ends, also after an error.
        """
        from decon_assets.instance.sqlite_history import write_quickly  # imports SQLAlchemy
        from decon_core.config.open_store import writable_store

        write_quickly()  # speeds up the events that a step writes
        config = self.config()
        with writable_store(config) as store:
            yield config, store
