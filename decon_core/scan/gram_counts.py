"""Document counts of indexed n-grams in a shard, per benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.policy import Policy
from decon_core.index.joined_index import Search
from decon_core.kernels.question_index import places_in_parts

# Sorted n-gram ids of a union of index parts, and the number of documents that contain each.
GramCounts = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]


def gram_counts(counts: Sequence[GramCounts], search: Search, policy: Policy) -> list[pa.Table]:
    """Add the counts of several threads and split them into one table per benchmark.

    An n-gram is identified by its first place in the concatenated questions of the benchmark's
    index part, which does not depend on the other benchmarks of the scan.
    """
    grams, where = np.unique(np.concatenate([grams for grams, _ in counts]), return_inverse=True)
    n_documents = np.zeros(grams.size, np.int64)
    np.add.at(n_documents, where, np.concatenate([n for _, n in counts]))
    n_parts = len(search.versions)
    offsets = search.index.posting_offsets
    n_postings = offsets[grams + np.uint32(1)] - offsets[grams]
    rows, parts, places = np.empty((3, int(np.minimum(n_postings, n_parts).sum())), np.int64)
    n = places_in_parts(grams, search.index, policy.ngram_size, rows, parts, places)
    rows, parts, places = rows[:n], parts[:n], places[:n]
    order = np.lexsort((places, parts))
    columns = {"place": places[order], "n_documents": n_documents[rows[order]]}
    table = pa.table({name: pa.array(values, pa.uint32()) for name, values in columns.items()})
    edges = np.searchsorted(parts[order], np.arange(n_parts + 1)).tolist()
    return [table.slice(first, last - first) for first, last in pairwise(edges)]
