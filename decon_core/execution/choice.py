"""Opens the engine that decon.toml or the environment names: this machine, or one of a feature."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name

from decon_core.config.feature_table import FeatureTable
from decon_core.config.validation import SettingsReader, did_you_mean
from decon_core.errors import ConfigError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.local import LocalEngine
from decon_core.feature import LOCAL_ENGINE, engine_names, feature_entries, feature_objects
from decon_core.storage.paths import RemotePath
from decon_core.storage.store import Store

ENGINE_VARIABLE = "DECON_ENGINE"  # overrides the settings

Tables = Mapping[str, FeatureTable]


class EngineTable(FeatureTable, ABC):
    """A table of decon.toml with the chosen engine, and settings of the engines of a feature."""

    engine: str

    @abstractmethod
    def open(self, name: str, store: Store, store_url: RemotePath | None) -> Engine:
        """Return the engine of this name; it starts nothing yet.

        `store_url`: where nodes that see no folder read and write the store; None: the work is one
        that needs the folder.
        """

    @abstractmethod
    def require(self, name: str) -> None:
        """Raise an error if the engine of this name cannot be used from this machine."""


def open_engine(tables: Tables, store: Store, *, store_url: RemotePath | None = None) -> Engine:
    """Return the engine named by $DECON_ENGINE, or else by the settings; it starts nothing yet.

    On a cluster, all nodes must see the folder of the store, or get files from `store_url`.
    """
    name = engine_name(tables)
    if name == LOCAL_ENGINE:
        return LocalEngine()
    return _settings(tables, name).open(name, store, store_url)


def require_engine(tables: Tables) -> None:
    """Raise an error if the engine has an unknown name, or cannot be used from this machine."""
    name = engine_name(tables)
    if name != LOCAL_ENGINE:
        _settings(tables, name).require(name)


def engine_name(tables: Tables) -> str:
    """Return the name of the engine to use."""
    name = os.environ.get(ENGINE_VARIABLE)
    if not name:
        chosen = (table.engine for table in tables.values() if isinstance(table, EngineTable))
        return next(chosen, LOCAL_ENGINE)
    if name not in engine_names():
        raise ConfigError(unknown_engine(f"${ENGINE_VARIABLE}", name))
    return name


def unknown_engine(where: str, name: str) -> Problem:
    names = engine_names()
    return Problem(where, repr(name), f"one of {', '.join(names)}", did_you_mean(name, names))


def _settings(tables: Tables, name: str) -> EngineTable:
    """Return the table with the settings of an engine, or the defaults if decon.toml has none."""
    model: type[EngineTable] = resolve_name(feature_entries("engines")[name])
    matching = (table for table in tables.values() if isinstance(table, model))
    return next(matching, None) or model()


def load_engine_tables(path: Path) -> Tables:
    """Read the tables of engines from a TOML file. Raises one `ConfigError` with all problems."""
    from decon_core.config.load import SECTIONS, read_toml

    known = feature_objects("tables")
    models = {name: model for name, model in known.items() if issubclass(model, EngineTable)}
    if not models:
        failure = "the file configures an engine, but no feature provides one"
        remedy = "Leave out --execution to run the jobs on this machine"
        raise ConfigError(Problem(str(path), failure, remedy=remedy))
    expected = f"the table {' or '.join(f'[{name}]' for name in models)}"
    values = read_toml(path, f"a TOML file with {expected}")
    reader = SettingsReader(str(path), folder=path.resolve().parent)
    names = {*SECTIONS, *known}  # a whole decon.toml is fine, too
    for name in sorted(values.keys() - names):
        reader.wrong(name, f"unknown key {name!r}", "a known key", did_you_mean(name, names))
    present = [name for name in models if name in values]
    if not present and not reader.problems:
        found = f"only {', '.join(sorted(values))}" if values else "nothing in it"
        raise ConfigError(Problem(str(path), found, expected))
    tables = {name: reader.table(models[name], name, values[name]) for name in present}
    checked = {name: table.checked(reader) for name, table in tables.items() if table}
    ConfigError.raise_for(reader.problems)
    return checked
