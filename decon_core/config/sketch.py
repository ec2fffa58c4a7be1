"""[sketch] in decon.toml: filters of all n-grams of the corpus."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from decon_core.config.policy import VERDICT_VERSION, Policy
from decon_core.config.validation import TABLE, Whole

# Increase when the content of a sketch changes; old ones are then not used.
_VERSION = 1


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Sketch:
    """[sketch]: filters of all n-grams of the corpus. With them, a scan of a benchmark that is
    added later reads only the blocks of documents that may contain a match."""

    bits: Annotated[Whole, Field(ge=2, le=16)] = 5
    """Bits per n-gram. With more, the sketch is larger and fewer blocks are read again."""

    def fingerprint(self, policy: Policy, *, tokenizer: str) -> str:
        """Return the fingerprint of what a sketch depends on besides its shard."""
        settings = {"form": asdict(policy.form), "ngram_size": policy.ngram_size, "bits": self.bits}
        content = json.dumps([settings, tokenizer, VERDICT_VERSION, _VERSION], sort_keys=True)
        return sha256(content.encode()).hexdigest()[:16]
