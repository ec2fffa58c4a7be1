"""The base of the tables of decon.toml that belong to features.

`config/__init__.py` says what follows from a new key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from decon_core.config.validation import SettingsReader
from decon_core.errors import Problem

if TYPE_CHECKING:
    from decon_core.config.load import ConfigReader


class FeatureTable:
    """A table of decon.toml that belongs to a feature."""

    @classmethod
    def read(cls, reader: ConfigReader, name: str, value: object) -> Self | None:
        """Return the model of a table of the file, or None after adding its problems."""
        table = reader.table(cls, name, value)
        return table.checked(reader) if table else None

    @classmethod
    def in_file(cls) -> Any:
        """Return the type of the table in the file."""
        return cls

    @classmethod
    def amend_schema(cls, definitions: dict[str, Any]) -> None:
        """Change the JSON schemas of models, by class name, where pydantic's are not enough."""

    def checked(self, reader: SettingsReader) -> Self:
        """Return the table with paths beside the file; report what contradicts other tables."""
        del reader
        return self

    @property
    def named_benchmarks(self) -> Sequence[str]:
        """The benchmarks of key `benchmarks`, each of which must be configured."""
        return ()

    def problems_with(self, recipes: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield what contradicts the configured benchmarks."""
        del recipes
        return ()
