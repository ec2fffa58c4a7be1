"""What assets share: the configuration file, and the folder of products that it names.

The resource holds the path and nothing of what the file says, so the two cannot disagree.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import ConfigurableResource

from decon_core.config.load import CONFIG_VARIABLE, DEFAULT_CONFIG, Config, load_config
from decon_core.config.open_store import open_store, writable_store
from decon_core.errors import ConfigError, Problem
from decon_core.storage.store import Store


class Decon(ConfigurableResource):  # type: ignore[type-arg] # generic in its raw value only
    """The pipeline's configuration: a decon.toml."""

    config_path: str = ""

    def config(self) -> Config:
        """Read at every use: an edit counts from the next materialization on."""
        return load_config(self.path())

    def path(self) -> Path:
        path = Path(self.config_path or os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
        if not path.is_file():
            raise ConfigError(
                Problem(
                    str(path.resolve()),
                    "no such file",
                    "a decon.toml",
                    f"start Dagster where it lies, or set {CONFIG_VARIABLE} to its path",
                )
            )
        return path

    def open_store(self) -> tuple[Config, Store]:
        """The configuration, and its store to read."""
        config = self.config()
        return config, open_store(config)

    @contextmanager
    def writable_store(self) -> Iterator[tuple[Config, Store]]:
        """The configuration, and its store to write: kept when the block ends, well or not."""
        from decon_assets.instance.sqlite_history import write_quickly  # brings SQLAlchemy

        write_quickly()  # whoever works tells Dagster of it
        config = self.config()
        with writable_store(config) as store:
            yield config, store
