"""[haystack] in decon.toml: test items planted among documents, and the scorers that rank them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from decon_core.config.feature_table import FeatureTable
from decon_core.config.validation import (
    TABLE,
    Name,
    Names,
    Positive,
    PositiveShare,
    SettingsReader,
    Whole,
    did_you_mean,
    expects,
    invalid,
    known,
)
from decon_core.features.endpoints.settings import KeyVariable

TRAINED = ("instruction_like", "educational")  # trained on the spot, from built-in texts
SHORT = "short"  # a control: the length of a text alone
BUILT_IN = (*TRAINED, SHORT)
_WITH_TARGET = {
    "fasttext": "fasttext:FILE:LABEL",
    "sklearn": "sklearn:FILE[:LABEL]",
    "onnx": "onnx:FILE[:LABEL]",
    "endpoint": "endpoint:URL",
    "column": "column:NAME=FILE",
}
SCORERS = (*BUILT_IN, *_WITH_TARGET.values())


class ScorerName(NamedTuple):
    """A scorer as written in the settings: its kind, and what follows the colon."""

    kind: str
    target: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}" if self.target else self.kind


def parse_scorer(text: str) -> ScorerName:
    """Split the name of a scorer; raise pydantic's error if there is no such kind."""
    kind, _, target = text.partition(":")
    expected = f"one of {', '.join(SCORERS)}"
    if kind not in (*BUILT_IN, *_WITH_TARGET):
        raise invalid(expected, did_you_mean(kind, (*BUILT_IN, *_WITH_TARGET)))
    if (kind in BUILT_IN) == bool(target):
        raise invalid(_WITH_TARGET.get(kind, kind))
    if kind == "endpoint" and not target.startswith(("http://", "https://")):
        raise invalid(_WITH_TARGET[kind])
    if kind == "column" and not all(target.partition("=")):
        remedy = "planted items are not rows of the corpus, so FILE must have their scores"
        raise invalid(_WITH_TARGET[kind], remedy)
    return ScorerName(kind, target)


Scorer = Annotated[Name, AfterValidator(lambda text: str(parse_scorer(text)))]


def _ascending(cuts: tuple[float, ...]) -> tuple[float, ...]:
    if not cuts or list(cuts) != sorted(set(cuts)):
        raise invalid("shares above 0 and up to 1, in ascending order")
    return cuts


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Haystack(FeatureTable):
    """[haystack]: how quality scorers rank test items planted among documents of the corpus."""

    benchmarks: Names[Name] = ()
    """Benchmarks whose items are planted; default: all."""
    subjects: Names[Name] = ()
    """Subjects of benchmarks (`config` of their items) whose items are planted; default: all."""
    sources: Names[Annotated[Name, known("sources")]] = ()
    """Sources whose documents are the haystack; default: all."""
    documents: Positive = 10_000
    """Number of documents drawn with `seed`, or all documents if the corpus has fewer."""
    items: Positive = 15
    """Number of items drawn with `seed` from each benchmark, except from training splits; if it has
    several subjects, from each subject in turn."""
    scorers: Names[Scorer] = field(default=BUILT_IN)
    """Quality scorers: built-in ones, model files, an endpoint, or a column of the corpus."""
    cuts: Annotated[
        tuple[PositiveShare, ...], AfterValidator(_ascending), expects("a list of shares")
    ] = (0.01, 0.05, 0.1, 0.25, 0.5)
    """Shares of the documents that a filter would keep."""
    seed: Whole = 0
    """Random seed for drawing documents and items."""
    model: Name | None = None
    """For an endpoint: name of the model at the endpoint."""
    key_env: KeyVariable | None = None
    """For an endpoint: name of the environment variable with its key."""

    @property
    def scorer_names(self) -> tuple[ScorerName, ...]:
        return tuple(map(parse_scorer, self.scorers))

    @property
    def named_benchmarks(self) -> Sequence[str]:
        return self.benchmarks

    def checked(self, reader: SettingsReader) -> Haystack:
        has_endpoint = any(name.kind == "endpoint" for name in self.scorer_names)
        if not has_endpoint and (self.model or self.key_env):
            which = "model" if self.model else "key_env"
            reader.wrong(f"haystack.{which}", "no endpoint", "a scorer endpoint:URL")
        files = (str(_beside(name, reader.folder)) for name in self.scorer_names)
        return replace(self, scorers=tuple(files))


def _beside(scorer: ScorerName, folder: Path) -> ScorerName:
    if scorer.kind in BUILT_IN or scorer.kind == "endpoint":
        return scorer
    if scorer.kind == "column":
        name, _, path = scorer.target.partition("=")
        return ScorerName(scorer.kind, f"{name}={folder / path}")
    return ScorerName(scorer.kind, str(folder / scorer.target))
