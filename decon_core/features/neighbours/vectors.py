"""Vectors of texts as whole numbers, embedded in blocks that are kept and found again.

Their products are sums of whole numbers below 2^53, which are exact in any order: similarities do
not depend on blocks, workers or libraries. Rounding changes a cosine by less than 0.0001.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from decon_core.execution.progress import advance
from decon_core.features.neighbours.sample import SampledShard, Workers
from decon_core.features.neighbours.settings import Neighbours
from decon_core.features.similarity.embedders import Embedder, load_embedder
from decon_core.storage.checksums import is_whole
from decon_core.storage.tables import map_arrays, write_arrays

Vectors = npt.NDArray[np.int16]

SCALE = (1 << 15) - 1  # the length of a vector
BLOCK = 512  # paragraphs: MiniLM takes some 15 s
_AT_ONCE = 64  # texts between two reports of progress


@dataclass(frozen=True)
class _Job:
    """A block of paragraphs, and the file for its vectors."""

    path: Path
    sampled: SampledShard
    first: int
    settings: Neighbours
    threads: int | None = None  # for matrix products; None: as many as there are cores


@lru_cache(maxsize=1)
def _embedder(name: str, model: str | None, key_env: str | None) -> Embedder:
    return load_embedder(name, model=model, key_env=key_env, place="neighbours.embedder")


def embedder_of(settings: Neighbours) -> Embedder:
    """Return the embedder of the settings; its weights are loaded when it is first used."""
    return _embedder(settings.embedder, settings.model, settings.key_env)


def rounded(vectors: npt.NDArray[np.float32]) -> Vectors:
    """Return vectors of length 1 as whole numbers."""
    return np.rint(vectors * SCALE).astype(np.int16)


def _path(folder: Path, sampled: SampledShard, first: int) -> Path:
    return folder / f"{sampled.path.stem}-{first // BLOCK}.arrow"


def blocks(folder: Path, sampled: SampledShard) -> Iterator[Vectors]:
    """Yield the vectors of a shard's paragraphs, in order."""
    for first in range(0, sampled.n_paragraphs, BLOCK):
        yield read_vectors(_path(folder, sampled, first))


def embed_sample(
    folder: Path, shards: Sequence[SampledShard], settings: Neighbours, workers: Workers
) -> None:
    """Embed what is missing of the paragraphs of these shards; `folder`: for the vectors."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs: dict[Path, _Job] = {}
    n_paragraphs = 0
    for sampled in shards:
        for first in range(0, sampled.n_paragraphs, BLOCK):
            path = _path(folder, sampled, first)
            if path not in jobs and not is_whole(path):
                jobs[path] = _Job(path, sampled, first, settings)
                n_paragraphs += min(BLOCK, sampled.n_paragraphs - first)
    if not jobs:
        return
    embedder_of(settings).load()  # says what is missing before anything is started
    is_alone = workers.at_most(len(jobs)) <= 1
    workers.run(
        _embed,
        [replace(job, threads=None if is_alone else 1) for job in jobs.values()],
        what="paragraphs embedded",
        total=n_paragraphs,
        name_of=lambda job: f"paragraphs of {job.sampled.shard.path}",
    )


def _embed(job: _Job) -> None:
    texts = job.sampled.paragraphs(["text"])["text"].slice(job.first, BLOCK).to_pylist()
    parts, embedder = [], embedder_of(job.settings)
    embedder.load()  # the limit holds for libraries that are loaded
    with threadpool_limits(job.threads):
        for start in range(0, len(texts), _AT_ONCE):
            batch = texts[start : start + _AT_ONCE]
            parts.append(rounded(embedder.embed(batch)))
            advance(len(batch))
    write_vectors(job.path, np.concatenate(parts))


def stored_vectors(path: Path, texts: Sequence[str], settings: Neighbours) -> Vectors:
    """Return the vectors of texts that the path is named after; embedded if there is no file."""
    if not is_whole(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_vectors(path, rounded(embedder_of(settings).embed(texts)))
    return read_vectors(path)


def write_vectors(path: Path, vectors: Vectors) -> None:
    write_arrays(path, {"vectors": vectors.ravel()}, about={"n_rows": str(len(vectors))})


def read_vectors(path: Path) -> Vectors:
    arrays, about = map_arrays(path)
    vectors: Vectors = arrays["vectors"]
    return vectors.reshape(int(about["n_rows"]), -1)
