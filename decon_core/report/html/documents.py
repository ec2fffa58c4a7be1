"""Pack the documents for the page: one row for each, with the numbers of its pairs in the list.

The browser inflates them when the table of documents is opened.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from decon_core.report.html.gather import MOST_PAIRS_OF_DOCUMENT, MOST_PAIRS_OF_DOCUMENTS, Facts
from decon_core.report.html.pairs import dictionary, rounded

_COUNTS = ("n_leaked_items", "n_question_only_items", "n_candidate_items", "n_found_items")
_KINDS = {"is_contaminated": "leak", "is_question_only": "question", "is_candidate": "candidate"}


def documents(facts: Facts) -> dict[str, Any]:
    """Return the columns of the table of documents.

    `pairs` has the pairs of all documents one after the other; those of a document lie between its
    start and the start of the next one. A document may have more pairs (`n_pairs`) than the page.
    """
    rows = facts.documents
    numbers = {pair: at for at, pair in enumerate(facts.pairs["pair"].to_pylist())}
    pairs: list[list[int]] = []
    left = MOST_PAIRS_OF_DOCUMENTS
    for found in rows["pairs"].to_pylist():
        known = sorted(numbers[pair] for pair in found or () if pair in numbers)
        pairs.append(known[: min(MOST_PAIRS_OF_DOCUMENT, left)])
        left -= len(pairs[-1])
    flags = [rows[name].to_pylist() for name in _KINDS]
    kinds = [
        next((kind for kind, flag in zip(_KINDS.values(), row, strict=True) if flag), "near")
        for row in zip(*flags, strict=True)
    ]
    benchmarks = [tuple(names or ()) for names in rows["benchmarks"].to_pylist()]
    names = {name: rows[name].to_pylist() for name in ("source", "shard_name", "shard")}
    return {
        "n": rows.num_rows,
        "n_all": facts.totals["n_found_documents"],
        "names": {
            name: dictionary(values)
            for name, values in {**names, "benchmarks": benchmarks, "kind": kinds}.items()
        },
        "plain": {name: rows[name].to_pylist() for name in ("row", "doc_id", "n_pairs", *_COUNTS)},
        "best_score": rounded(rows["best_score"].to_pylist()),
        "starts": [0, *accumulate(map(len, pairs))],
        "pairs": [number for some in pairs for number in some],
    }
