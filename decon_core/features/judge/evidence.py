"""What [judge] brings to decisions: its annotations and the candidates of its files."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from decon_core.config.load import Config
from decon_core.decisions.annotations import read_annotations
from decon_core.decisions.candidates import Candidate, Evidence, read_candidates
from decon_core.features.judge.settings import annotations_path, judge_settings
from decon_core.storage.paths import Stamp, stamp_or_none


def evidence_of(config: Config) -> Evidence:
    """Read annotations and candidates of a configuration; the files may be missing.

    Candidates are without their texts, which only the judge reads.
    """
    files = (config.folder / name for name in judge_settings(config).candidates)
    stamps = {path: stamp for path in files if (stamp := stamp_or_none(path))}
    candidates = chain.from_iterable(_candidates_at(*item) for item in stamps.items())
    return Evidence(read_annotations(annotations_path(config)), tuple(candidates))


@lru_cache(maxsize=100)
def _candidates_at(path: Path, stamp: Stamp) -> tuple[Candidate, ...]:  # noqa: ARG001 - cache key
    return tuple(replace(candidate, item_text="", text=None) for candidate in read_candidates(path))
