"""[rewording] of decon.toml: the endpoint that rewords the items of blends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic.dataclasses import dataclass

from decon_core.config.load import Config
from decon_core.config.validation import AS_WRITTEN, TABLE, Name, Positive, SettingsReader, expects
from decon_core.features.endpoints.settings import Endpoint


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Rewording(Endpoint):
    """[rewording]: rewordings of items by an OpenAI-compatible endpoint."""

    table: ClassVar[str] = "rewording"

    file: Annotated[Name, expects("the path of a local file")] = "rewordings.jsonl"
    """File of rewordings, to which every answer is appended. It need not exist yet."""
    variants: Positive = 1
    """Rewordings per item. The copies of an item in a blend use them in turn."""
    parameters: Annotated[Mapping[str, Any], AS_WRITTEN] = field(
        default_factory=lambda: {"temperature": 1, "max_tokens": 4096}, hash=False
    )
    """Additional fields of a request, sent unchanged."""

    def checked(self, reader: SettingsReader) -> Self:
        reader.local_file("rewording.file", self.file)
        return self


def rewording_settings(config: Config) -> Rewording:
    return config.table(Rewording) or Rewording()


def rewordings_path(config: Config) -> Path:
    return config.folder / rewording_settings(config).file


def rewording_files(config: Config) -> list[Path]:
    return [rewordings_path(config)]
