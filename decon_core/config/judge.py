"""[judge] in decon.toml: the endpoint that judges pairs, and which pairs."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic.dataclasses import dataclass

from decon_core.config.endpoint import Endpoint
from decon_core.config.validation import TABLE, Name, Names, expects, known

DEFAULT_FILE = "annotations.jsonl"


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Judge(Endpoint):
    """[judge]: annotations of pairs by a person, a file or an OpenAI-compatible endpoint."""

    table: ClassVar[str] = "judge"

    annotations: Annotated[Name, expects("a local file, which need not exist")] = DEFAULT_FILE
    """File of annotations, which need not exist: every answer is appended to it."""
    detectors: Names[Annotated[Name, known("detectors")]] = ()
    """Judge matches of these detectors, and "neighbours"; default: all."""
    candidates: Names[Name] = ()
    """Files with further pairs to judge, one JSON object per line."""
