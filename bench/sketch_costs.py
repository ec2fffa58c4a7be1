"""Costs of a sketch that are measured without a corpus: wide packs, and n-grams of text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch, Place
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sketch.pack_sketch import build_pack_sketch
from decon_core.corpus.sketch.shard_sketch import (
    LOG2_BITS,
    PartSketch,
    TwoNumberings,
    writing_sketch,
)
from decon_core.features.scorecard.corpora import texts_below
from decon_core.index.ngram_counts import grams_of
from decon_core.index.parts import index_fingerprint
from decon_core.kernels.arrays import Words64
from decon_core.scan.answers import answer
from decon_core.scan.coverage import scan_fingerprint
from decon_core.storage.files import write_json
from decon_core.storage.store import Store
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder

_WIDE = "wide-pack-of-random-rows"


# A wide pack --------------------------------------------------------------------------------------


def wide_pack(
    store: Store, pack: Pack, sketch: str, versions: Sequence[Version], policy: Policy, *, n: int
) -> list[dict[str, Any]]:
    """Look up each benchmark in a pack of `n` blocks whose filters are random, and as full as real
    ones of five bits.
    """
    shard = replace(pack.shards[0], fingerprint=_WIDE)
    wide = replace(pack, name=_WIDE, shards=(shard,))
    _write_random_filters(store, sketch, shard, n=n)
    build_pack_sketch(store, sketch, wide)
    names = {"index": index_fingerprint(store, policy), "scan": scan_fingerprint(store, policy)}
    rows = []
    for version in versions:
        seconds = []
        for _ in range(2):  # the first one also reads the file from the disk
            started = time.process_time()
            found = answer(store, sketch, wide, [version], policy, **names)
            seconds.append(time.process_time() - started)
        if found is None:
            raise RuntimeError("the wide pack has no sketch")
        rows.append(
            {
                "benchmark": version.benchmark,
                "blocks": n,
                "seconds": round(min(seconds), 2),
                "mb_of_sketch": found.sketch.path.stat().st_size // 1_000_000,
                "mb_of_rows": found.sketch.n_bytes_read // 1_000_000,
                "mb_of_pages": found.sketch.n_page_bytes_read // 1_000_000,
                "blocks_possible": int(found.is_possible.sum()),
                "questions_possible": int(
                    (found.by_detector["decon"].n_blocks_of_texts() > 0).sum()
                ),
            }
        )
    return rows


def _write_random_filters(store: Store, sketch: str, shard: Shard, *, n: int) -> None:
    rng = np.random.default_rng(0)
    with writing_sketch(store, sketch, shard.fingerprint, bits=5) as sketcher:
        for number in range(n):  # two together would be too full, so each is a block
            sketcher.add(PartSketch(Place(number, 1), bytes(16), _random_words(rng)))
    write_json(store.sketch_ledger(sketch, shard.fingerprint), {})
    store.sketch_documents(sketch, shard.fingerprint).touch()


def _random_words(rng: np.random.Generator) -> Words64:
    """Return a filter with 14 of 32 bits set: 44 %, where 45 % is the most of five bits."""

    def random() -> Words64:
        return np.frombuffer(rng.bytes((1 << LOG2_BITS) // 8), np.uint64)

    return random() & (random() | random() | random())


# N-grams of text ----------------------------------------------------------------------------------


def distinct_ngrams(texts: Path, policy: Policy) -> dict[str, Any]:
    """Count the distinct canonical n-grams of texts, each text once."""
    tokenizer = load_tokenizer(policy.tokenizer_str)
    encoder = partial(Encoder, tokenizer, form=policy.form, table_mb=policy.word_table_mb)
    numberings = TwoNumberings(tokenizer, np.empty(0, np.int64), encoder)
    every = [text for one in texts_below(texts) for text in one.texts]
    _, tokens = numberings.encode(Batch.of_texts(every))
    n_bytes = sum(len(text.encode()) for text in every)
    n = len(grams_of(tokens, policy.ngram_size))
    return {"mb_of_text": round(n_bytes / 1e6, 1), "ngrams_per_byte": round(n / n_bytes, 3)}
