"""[judge] in decon.toml: the endpoint that judges pairs, and which pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic.dataclasses import dataclass

from decon_core.config.load import Config
from decon_core.config.validation import TABLE, Name, Names, SettingsReader, expects, known
from decon_core.decisions.annotations import ANNOTATIONS_FILE
from decon_core.features.endpoints.settings import Endpoint


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Judge(Endpoint):
    """[judge]: the language model that judges pairs of an item and a text, and which pairs."""

    table: ClassVar[str] = "judge"

    annotations: Annotated[Name, expects("a local file, which need not exist")] = ANNOTATIONS_FILE
    """Annotations file, which need not exist yet: every answer is appended to it."""
    detectors: Names[Annotated[Name, known("detectors")]] = ()
    """Judge only matches of these detectors; "neighbours" is allowed, too. Default: all."""
    candidates: Names[Name] = ()
    """Files with further pairs to judge, one JSON object per line."""

    def checked(self, reader: SettingsReader) -> Self:
        reader.local_file("judge.annotations", self.annotations)
        return self


def judge_settings(config: Config) -> Judge:
    return config.table(Judge) or Judge()


def annotations_path(config: Config) -> Path:
    return config.folder / judge_settings(config).annotations


def judge_files(config: Config) -> list[Path]:
    settings = judge_settings(config)
    return [config.folder / name for name in (settings.annotations, *settings.candidates)]
