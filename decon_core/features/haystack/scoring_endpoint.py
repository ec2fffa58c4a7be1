"""Score texts with an endpoint that takes and returns JSON.

It is sent `{"model": …, "input": [text, …]}`. Its answer is `{"scores": [number, …]}`, or what
vLLM's `/classify` returns: `{"data": [{"index": 0, "probs": [number, …]}, …]}`, of which the last
probability is the score.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from decon_core.features.endpoints.json_endpoint import MOST_SHOWN, JsonEndpoint

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ScoringEndpoint(JsonEndpoint):
    """An endpoint that scores texts."""

    what: ClassVar[str] = "scores"

    def score(self, texts: Sequence[str]) -> Floats:
        """Return the score of each text."""
        return np.array(self.in_batches(texts, self._scored), np.float64)

    def _scored(self, texts: Sequence[str]) -> list[float]:
        sent: dict[str, Any] = {"input": [*texts]}
        answer = self.post({"model": self.model, **sent} if self.model else sent)
        try:
            value = json.loads(answer)
            if "scores" in value:
                scores = [float(score) for score in value["scores"]]
            else:
                by_index = {int(row["index"]): float(row["probs"][-1]) for row in value["data"]}
                scores = [by_index[at] for at in range(len(texts))]
            is_good = len(scores) == len(texts) and bool(np.isfinite(scores).all())
        except (ValueError, TypeError, LookupError, AttributeError):
            is_good = False
        if not is_good:
            expected = f"JSON with `scores`: a number for each of {len(texts)} texts"
            raise self.wrong(repr(answer[:MOST_SHOWN].decode(errors="replace")), expected)
        return scores
