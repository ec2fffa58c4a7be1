"""Embeddings by an OpenAI-compatible endpoint: `POST {url}/embeddings`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from decon_core.features.endpoints.json_endpoint import MOST_SHOWN, JsonEndpoint

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class EmbeddingEndpoint(JsonEndpoint):
    """An endpoint for embeddings."""

    what: ClassVar[str] = "embeddings"

    @property
    def address(self) -> str:
        return f"{self.url.rstrip('/').removesuffix('/embeddings')}/embeddings"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, not normalized."""
        rows = self.in_batches(texts, self._embedded)
        if len({len(row) for row in rows}) > 1:
            raise self.wrong("vectors of different lengths", "vectors of one length")
        return np.array(rows, np.float32).reshape(len(rows), -1)

    def _embedded(self, texts: Sequence[str]) -> list[list[float]]:
        # An endpoint refuses empty texts; the caller ignores the vector of one.
        sent = {"model": self.model, "input": [text if text.strip() else "-" for text in texts]}
        answer = self.post(sent)
        try:
            data = {int(one["index"]): one["embedding"] for one in json.loads(answer)["data"]}
            rows = [[float(x) for x in data[at]] for at in range(len(texts))]
            is_good = len(data) == len(texts) and np.isfinite(rows).all()
        except (ValueError, TypeError, KeyError, AttributeError):
            is_good = False
        if not is_good:
            raise self.wrong(
                repr(answer[:MOST_SHOWN].decode(errors="replace")),
                f"JSON with `data`: {len(texts)} objects with `index` and `embedding`",
            )
        return rows
