"""Build the neighbours: draw the sample, embed it, find the nearest paragraphs of every item.

Sample and vectors are kept by what determines them, so a killed run goes on where it was, and other
settings reuse what stays the same. The results are in a folder named by all inputs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.corpus.packs import Pack
from decon_core.decisions.calibration import wilson
from decon_core.decisions.nominations import NominatedPlaces
from decon_core.execution.local import LOCAL
from decon_core.features.neighbours.items import ITEM, items_of, nominated, with_pairs
from decon_core.features.neighbours.nearest import (
    EDGES,
    Floats,
    Found,
    Integers,
    Nearest,
    drawn,
    n_by_bin,
)
from decon_core.features.neighbours.sample import SampledShard, Stratum, Workers, draw_sample
from decon_core.features.neighbours.schemas import NEIGHBOURS, SIMILARITY, STRATA
from decon_core.features.neighbours.settings import Neighbours
from decon_core.features.neighbours.vectors import (
    BLOCK,
    blocks,
    embed_sample,
    embedder_of,
    stored_vectors,
)
from decon_core.kernels.arrays import distinct
from decon_core.schemas import schema_of
from decon_core.storage.checksums import is_whole
from decon_core.storage.files import write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet, write_parquet
from decon_core.text.tokenizers import load_tokenizer

# Changes whenever the same inputs would give other results.
_VERSION = 3
_OF_PLACE = ("source", "shard_name", "shard", "row", "doc_id", "start", "stop", "text", "weight")
_TABLES = {"neighbours": NEIGHBOURS, "neighbour_similarity": SIMILARITY, "neighbour_sample": STRATA}
_ABOUT = "about.json"
NAME = "neighbours"  # stands for a detector

Row = dict[str, Any]


def neighbours_key(
    packs: Sequence[Pack], versions: Sequence[Version], settings: Neighbours, tokenizer: str
) -> str:
    """Return the name of the results: a digest of all their inputs.

    Raises InputError if the embedder cannot be found.
    """
    sources = sorted(pack.source.name for pack in packs)
    samples = {name: asdict(settings.of_source(name)) for name in sources}
    own = ("seed", "min_tokens", "max_tokens", "top", "draw_from", "item")
    shards = [
        [pack.source.name, shard.name, shard.fingerprint] for pack in packs for shard in pack.shards
    ]
    inputs = [
        _VERSION,
        samples,
        [getattr(settings, name) for name in own],
        sorted(shards),
        load_tokenizer(tokenizer).fingerprint,
        embedder_of(settings).fingerprint,
        sorted([version.benchmark, version.fingerprint] for version in versions),
    ]
    return sha256(json.dumps(inputs).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Results:
    """The neighbours in a store, by the name of their inputs."""

    store: Store
    key: str

    @property
    def folder(self) -> Path:
        return _folder(self.store) / self.key

    @property
    def is_complete(self) -> bool:
        return is_whole(self.folder / _ABOUT)

    def nominations(self, settings: Neighbours) -> NominatedPlaces:
        """Return the neighbours as places that may be an item."""
        return NominatedPlaces(NAME, self.key, self.folder / "nominations", settings.review_from)

    def tables(self) -> dict[str, pa.Table]:
        return {
            name: read_parquet(self.folder / f"{name}.parquet", schema=schema_of(columns))
            for name, columns in _TABLES.items()
        }


def _folder(store: Store) -> Path:
    return store.root / "neighbours"


@dataclass(frozen=True)
class _Items:
    """The items of a benchmark, and the paragraphs that are nearest to them."""

    version: Version
    table: pl.DataFrame
    nearest: Nearest


def build_neighbours(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    settings: Neighbours,
    *,
    tokenizer: str,
    workers: Workers,
) -> tuple[Results, list[Stratum], int]:
    """Build what is missing; return the results, the samples and the number of neighbours."""
    results = Results(store, neighbours_key(packs, versions, settings, tokenizer))
    sampled, strata = draw_sample(store, packs, settings, tokenizer=tokenizer, workers=workers)
    embedder = embedder_of(settings).fingerprint
    vectors = _folder(store) / "vectors" / embedder
    if settings.model is not None:  # an endpoint is asked many requests at once by one process
        workers = replace(workers, n=1, engine=LOCAL)
    embed_sample(vectors, sampled, settings, workers)
    n_paragraphs = sum(shard.n_paragraphs for shard in sampled)
    items = [_items(store, version, settings, embedder, n_paragraphs) for version in versions]
    similarity = [*_search(items, sampled, vectors, strata, workers.on_progress)]
    by_benchmark = [*_found(items, sampled, strata, settings)]
    rows = pa.concat_tables([schema_of(NEIGHBOURS).empty_table(), *by_benchmark])
    nominations = results.nominations(settings)
    for benchmark, neighbours in zip(items, by_benchmark, strict=True):
        path = nominations.path(benchmark.version.fingerprint)
        write_parquet(path, nominated(neighbours, benchmark.table, NAME, results.key))
    tables = {
        "neighbours": rows,
        "neighbour_similarity": pa.Table.from_pylist(similarity, schema=schema_of(SIMILARITY)),
        "neighbour_sample": pa.Table.from_pylist(
            [{**asdict(stratum), "weight": stratum.weight} for stratum in strata],
            schema=schema_of(STRATA),
        ),
    }
    for name, table in tables.items():
        write_parquet(results.folder / f"{name}.parquet", table)
    write_json(results.folder / _ABOUT, {"settings": asdict(settings), "embedder": embedder})
    return results, strata, rows.num_rows


def _items(
    store: Store, version: Version, settings: Neighbours, embedder: str, n_paragraphs: int
) -> _Items:
    table = items_of(store, version, settings.item)
    name = f"{version.benchmark}-{version.fingerprint}-{settings.item}.arrow"
    path = _folder(store) / "items" / embedder / name
    vectors = stored_vectors(path, table["embedded"].to_list(), settings)
    share = settings.draw_from
    n_near = math.ceil(share * n_paragraphs) if share else settings.top
    return _Items(version, table, Nearest(vectors, max(n_near, 1)))


def _search(
    items: Sequence[_Items],
    sampled: Sequence[SampledShard],
    vectors: Path,
    strata: Sequence[Stratum],
    on_progress: Callable[[str, int, int], None],
) -> Iterator[Row]:
    """Compare all items with all paragraphs; yield the similarities by source and benchmark."""
    total, first = sum(shard.n_paragraphs for shard in sampled), 0
    for stratum in strata:  # same order as `sampled`
        counts = np.zeros((len(items), len(EDGES)), np.int64)
        for benchmark in items:
            benchmark.nearest.start_source()
        for shard in sampled:
            if shard.source != stratum.source or not shard.n_paragraphs:
                continue
            best = np.empty((len(items), shard.n_paragraphs))
            for number, block in enumerate(blocks(vectors, shard)):
                part = slice(number * BLOCK, number * BLOCK + len(block))
                for at, benchmark in enumerate(items):
                    best[at, part] = benchmark.nearest.add(block, first + number * BLOCK)
                on_progress("paragraphs compared", first + part.stop, total)
            first += shard.n_paragraphs
            # The highest similarity of each document's paragraphs, a row for each benchmark.
            rows = shard.paragraphs(["row"])["row"].to_numpy()
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
            for at, by_document in enumerate(np.maximum.reduceat(best, starts, axis=1)):
                counts[at] += n_by_bin(by_document)
        for benchmark, n_documents in zip(items, counts, strict=True):
            name, n_items = benchmark.version.benchmark, n_by_bin(benchmark.nearest.best)
            yield from _at_edges(name, stratum, n_items, n_documents)


def _at_edges(
    benchmark: str, stratum: Stratum, n_items: Integers, n_documents: Integers
) -> Iterator[Row]:
    """Yield a row for each edge, with the documents at or above it.

    `n_items`, `n_documents`: by bin of their best similarity.
    """
    at_or_above = np.cumsum(n_documents[::-1])[::-1].tolist()
    for edge, n, n_in_bin in zip(EDGES, at_or_above, n_items.tolist(), strict=True):
        share = n / stratum.n_sampled if stratum.n_sampled else 0.0
        low, high = wilson(share, stratum.n_sampled)
        row = {"benchmark": benchmark, "source": stratum.source, "similarity": edge}
        row |= {"n_items": n_in_bin, "n_documents": n, "share": share, "low": low}
        yield row | {"high": high, "n_estimated": share * stratum.n_documents}


def _found(
    items: Sequence[_Items],
    sampled: Sequence[SampledShard],
    strata: Sequence[Stratum],
    settings: Neighbours,
) -> Iterator[pa.Table]:
    """Yield the neighbours of each benchmark's items: the nearest, or some of them at random."""
    chosen: list[tuple[Found, Floats]] = []
    for benchmark in items:
        found = benchmark.nearest.nearest()
        stand_for = np.ones(found.items.size)
        if settings.draw_from is not None:
            name = f"neighbours {benchmark.version.benchmark} {settings.seed}"
            found, stand_for = drawn(found, settings.top, name)
        chosen.append((found, stand_for))
    no_place = np.zeros(0, np.int64)
    places = distinct(np.concatenate([no_place, *(found.places for found, _ in chosen)]))
    paragraphs = _paragraphs_at(places, sampled, strata)
    wanted = schema_of(NEIGHBOURS)
    for benchmark, (found, stand_for) in zip(items, chosen, strict=True):
        of_item = benchmark.table.select(*ITEM, "question")[found.items].with_columns(
            pl.Series("rank", found.ranks),
            pl.Series("similarity", found.similarities),
            pl.Series("stands_for", stand_for),
        )
        of_place = paragraphs[np.searchsorted(places, found.places)]
        table = with_pairs(pl.concat([of_item, of_place], how="horizontal"))
        yield table.select(wanted.names).to_arrow().cast(wanted)


def _paragraphs_at(
    places: Integers, sampled: Sequence[SampledShard], strata: Sequence[Stratum]
) -> pl.DataFrame:
    """Return the paragraphs at ascending places of the sample."""
    schema = pl.Schema({name: pl.Schema(schema_of(NEIGHBOURS))[name] for name in _OF_PLACE})
    parts = [pl.DataFrame(schema=schema)]
    weights = {stratum.source: stratum.weight for stratum in strata}
    first = 0
    for shard in sampled:
        stop = first + shard.n_paragraphs
        within = places[(places >= first) & (places < stop)] - first
        first = stop
        if within.size:
            rows = pl.DataFrame(shard.paragraphs().take(within)).with_columns(
                source=pl.lit(shard.source),
                shard_name=pl.lit(shard.shard.name),
                shard=pl.lit(shard.shard.fingerprint),
                weight=pl.lit(weights[shard.source]),
            )
            parts.append(rows.select([*schema]).cast(schema))
    return pl.concat(parts)
