"""The interface between the core and a feature, which is a folder of optional code.

`decon_core/features/NAME` has a value `FEATURE` of this class in a module that imports nothing
else. `decon_assets/features/NAME.py` has its assets, checks and commands. Only `FEATURES` of
`decon_core/features` knows its name, and features that require it: a feature is deleted with its
folder, its file and its line there.

What is a string here is `module:name`, imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pkgutil import resolve_name
from typing import Any

LOCAL_ENGINE = "local"  # processes of this machine, which need no feature


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of `decon-assets`: a function, or a Typer of subcommands."""

    # Name in the feature's file of `decon_assets/features`; if that is a folder, "module:name".
    function: str
    group: str  # the heading in `decon-assets --help`
    about: str
    examples: tuple[str, ...] = ()  # lines of `decon-assets --help`
    reads_store: bool = False  # whether it takes --config and reads what a run builds


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What the core asks of a feature."""

    name: str
    requires: tuple[str, ...] = ()  # other features, by name
    tables: Mapping[str, str] = field(default_factory=dict)
    """Tables of decon.toml, and for each its model: a `FeatureTable`."""
    products: Mapping[str, str] = field(default_factory=dict)
    """Assets that are made if decon.toml has a table with their name, and for each a function of
    the plan that tells whether it is missing or outdated."""
    jobs: tuple[str, ...] = ()
    """Jobs that make other assets, in the feature's file in `decon_assets/features`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of the `products` from which columns of the report are copied, for lineage."""
    partitions: Mapping[str, str] = field(default_factory=dict)
    """The `products` that have a folder `<store>/<product>s/<partition>` for each partition, and
    for each a function of the configuration that returns the names of the partitions."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Folders in the store, and for each the pattern of the manifests that list its files. One that
    begins with `manifests/` is below `<store>/manifests/<folder>`. Empty: not verified."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """Commands by name."""
    report: str = ""
    """(plan) -> a `ReportAddition`, or None."""
    report_tables: Mapping[str, str] = field(default_factory=dict)
    """Tables of the report, and the columns of each. In the feature's folder,
    report_tables.toml describes them, views.sql defines views of them, and overview.toml and
    gather.sql define sections of the page."""
    engines: Mapping[str, str] = field(default_factory=dict)
    """Engines that run jobs elsewhere, by name, and for each the model of the table with its
    settings: an `EngineTable`."""
    files: str = ""
    """(configuration) -> paths of files that it reads and the sensor watches; may be missing."""
    evidence: str = ""
    """(configuration) -> annotations and candidates of pairs: an `Evidence`."""
    nominations: Mapping[str, str] = field(default_factory=dict)
    """Functions that find places outside the scan that may be an item, by the name that stands for
    a detector and for its table of decon.toml. Each takes the plan and returns `NominatedPlaces`,
    or None."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Keys of the account of a document, and for each a function of the configuration, the mixture
    builder and the place that returns its value. why.txt.j2 in the feature's folder prints them."""
    shard_report: str = ""
    """(folder, shard, source, matches, records by benchmark, policy): writes the reports that
    `scan --compat` asks for."""
    registry: str = ""
    """(path, names of benchmarks, whether as JSON): prints the recipes that a registry of
    benchmarks at this path declares, for `catalog --from`; returns an exit code."""
    page: str = ""
    """(configuration, store) -> an `Addition` to the page of the report, or None."""

    @property
    def definitions(self) -> str:
        """The module with its assets, checks and jobs."""
        return f"decon_assets.features.{self.name}"

    @property
    def has_assets(self) -> bool:
        """Whether that module has more than commands."""
        return bool(self.products or self.jobs)

    def function(self, command: str) -> str:
        """Return the place of the function of a command, as `module:name`."""
        module, _, name = self.commands[command].function.rpartition(":")
        return f"{self.definitions}{'.' if module else ''}{module}:{name}"


@cache
def all_features() -> tuple[Feature, ...]:
    names: Sequence[str] = resolve_name("decon_core.features:FEATURES")
    return tuple(resolve_name(f"decon_core.features.{name}:FEATURE") for name in names)


@cache
def feature_entries(mapping: str) -> Mapping[str, str]:
    """Return the entries of a mapping of `Feature`, such as "products", of all features."""
    return {
        key: value for feature in all_features() for key, value in getattr(feature, mapping).items()
    }


def feature_objects(mapping: str) -> Mapping[str, Any]:
    """Return the same entries with what each names as `module:name`."""
    return {key: resolve_name(place) for key, place in feature_entries(mapping).items()}


def feature_files(name: str) -> Iterator[Traversable]:
    """Yield the files of this name in the folders of features."""
    for feature in all_features():
        file = files(f"decon_core.features.{feature.name}").joinpath(name)
        if file.is_file():
            yield file


def feature_hooks(name: str) -> Iterator[Any]:
    """Yield the function of each feature that has this hook."""
    for feature in all_features():
        if place := getattr(feature, name):
            yield resolve_name(place)


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines of jobs: that of this machine, and those of features."""
    return (LOCAL_ENGINE, *feature_entries("engines"))
