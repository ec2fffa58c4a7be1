"""[neighbours] in decon.toml: the sample of the corpus that benchmark items are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from pydantic.dataclasses import dataclass

from decon_core.config.feature_table import FeatureTable
from decon_core.config.validation import (
    TABLE,
    Name,
    Positive,
    PositiveShare,
    SettingsReader,
    Whole,
    did_you_mean,
)
from decon_core.features.endpoints.settings import KeyVariable

_DEFAULT_SIZE = 1000
_URLS = ("http://", "https://")
_NAMES = ("wordllama", "minilm")


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Sample:
    """How many documents of a source are sampled: a number, or a share of all."""

    size: Positive | None = None
    """Documents sampled from each source; default: 1000, unless `share` is set."""
    share: PositiveShare | None = None
    """Instead of `size`: the share of each source's documents to sample."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Neighbours(Sample, FeatureTable):
    """[neighbours]: the paragraphs in a sample of the corpus that are nearest to each item."""

    embedder: Name = "wordllama"
    """`wordllama`, `minilm`, a sentence-transformers folder, or the URL of an endpoint."""
    model: Name | None = None
    """For a URL: name of the model at the endpoint."""
    key_env: KeyVariable | None = None
    """For a URL: name of the environment variable with the endpoint's key."""
    source: Mapping[str, Sample] = field(default_factory=dict, hash=False)
    """Size or share for individual sources, by name."""
    seed: Whole = 0
    """Seed of the sample."""
    min_tokens: Positive = 50
    """Minimum length of a paragraph; shorter paragraphs are joined with the next."""
    max_tokens: Positive = 512
    """Maximum length of a paragraph; longer paragraphs are divided."""
    item: Literal["question", "answer", "both"] = "question"
    """The text of an item to embed: its question, its answer, or both joined."""
    top: Positive = 10
    """Number of neighbours kept for each item."""
    draw_from: PositiveShare | None = None
    """Draw `top` paragraphs at random from the nearest ones, which are this share of the sample,
    instead of keeping the `top` nearest."""
    review_from: PositiveShare | None = None
    """Neighbours with at least this cosine similarity need review until they are judged."""

    def of_source(self, name: str) -> Sample:
        own = self.source.get(name, Sample())
        if own.size or own.share:
            return own
        size = self.size or (None if self.share else _DEFAULT_SIZE)
        return Sample(size=size, share=self.share)

    def checked(self, reader: SettingsReader) -> Neighbours:
        sources = reader.names["sources"]
        of_sources = {f"neighbours.source.{name}": sample for name, sample in self.source.items()}
        for where, sample in {"neighbours": self, **of_sources}.items():
            if sample.size and sample.share:
                reader.wrong(where, "both 'size' and 'share'", "one of them")
        for name in self.source:
            if name not in sources:
                expected = f"one of {', '.join(sources)}"
                reader.wrong("neighbours.source", repr(name), expected, did_you_mean(name, sources))
        if self.max_tokens < 2 * self.min_tokens:
            expected = f"at least twice min_tokens ({self.min_tokens})"
            reader.wrong("neighbours.max_tokens", self.max_tokens, expected)
        is_url = self.embedder.startswith(_URLS)
        if is_url and not self.model:
            reader.wrong("neighbours.model", None, "the model's name at the endpoint")
        if not is_url and (self.model or self.key_env):
            which = "model" if self.model else "key_env"
            reader.wrong(f"neighbours.{which}", "no endpoint", "an embedder that is a URL")
        if is_url or self.embedder in _NAMES:
            return self
        return replace(self, embedder=str(reader.folder / self.embedder))
