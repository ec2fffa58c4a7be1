"""What a blend comes to: how much of each source, how often, which items; and text by text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.blends.items import Item, parts_of
from decon_core.blends.plan import Contaminated, Plan, PlannedPart
from decon_core.config.blends import is_for_training
from decon_core.schemas import BLEND_ITEMS, BLENDED, REPLACED

Integers = npt.NDArray[np.int64]


def planned_tokens(plan: Plan) -> Integers:
    """Tokens of every text; a copy of an item with its choices shuffled may have one more."""
    n_tokens: Integers = plan.stream.draws.n_tokens[plan.place]
    for number, contaminated in enumerate(plan.contaminated):
        own = plan.by == number
        insertion = plan.insertion[own]
        found = contaminated.insertions
        n_tokens[own] = contaminated.sizes[found.item[insertion], found.part[insertion]]
    return n_tokens


def account_of(plan: Plan, n_tokens: Integers | None = None) -> dict[str, Any]:
    """What the manifest says of a blend; of one that is not written yet as it is planned."""
    n_tokens = planned_tokens(plan) if n_tokens is None else n_tokens
    is_item = plan.by >= 0
    draws = plan.stream.draws
    replaced = [contaminated.insertions.replaced for contaminated in plan.contaminated]
    places = np.concatenate([np.empty(0, np.int64), *replaced])
    return {
        "phases": [_phase(plan, number, n_tokens) for number in range(len(plan.blend.phases))],
        "sources": [_source(plan, number) for number in range(len(plan.materials))],
        "contamination": [
            _contamination(plan, number, n_tokens) for number in range(len(plan.contaminated))
        ],
        "totals": {
            "n_documents": len(plan),
            "n_tokens": int(n_tokens.sum()),
            "n_test_texts": int(is_item.sum()),
            "n_test_tokens": int(n_tokens[is_item].sum()),
            "n_drawn": len(plan.stream),
            "n_drawn_tokens": int(draws.n_tokens.sum()),
            "n_replaced": int(places.size),
            "n_replaced_tokens": int(draws.n_tokens[places].sum()),
        },
    }


def _phase(plan: Plan, number: int, n_tokens: Integers) -> dict[str, Any]:
    """What a phase came to, source by source, and how much of each made room for items."""
    stream = plan.stream
    first, last = stream.phases[number : number + 2].tolist()
    sources = stream.draws.source[first:last]
    tokens = stream.draws.n_tokens[first:last]
    own = plan.phase == number
    is_item = plan.by[own] >= 0
    n_written = n_tokens[own]
    return {
        "phase": number + 1,
        "declared": asdict(plan.blend.phases[number]),
        "n_documents": int(own.sum()),
        "n_tokens": int(n_written.sum()),
        "n_test_texts": int(is_item.sum()),
        "n_test_tokens": int(n_written[is_item].sum()),
        "sources": [
            {
                "source": material.source.name,
                "n_drawn": int((sources == at).sum()),
                "n_drawn_tokens": int(tokens[sources == at].sum()),
                "share_of_tokens": round(
                    float(tokens[sources == at].sum()) / max(int(tokens.sum()), 1), 6
                ),
            }
            for at, material in enumerate(plan.materials)
        ],
    }


def _source(plan: Plan, number: int) -> dict[str, Any]:
    """How much there is of a source, and how often it was gone through."""
    material, draws = plan.materials[number], plan.stream.draws
    own = draws.source == number
    n_drawn_tokens = int(draws.n_tokens[own].sum())
    times = np.bincount(draws.at[own], minlength=len(material))
    return {
        "source": material.source.name,
        "n_documents": len(material),
        "n_tokens": material.all_tokens,
        "n_drawn": int(own.sum()),
        "n_drawn_tokens": n_drawn_tokens,
        "n_different": int(np.count_nonzero(times)),
        "passes": round(n_drawn_tokens / max(material.all_tokens, 1), 4),
        "most_times": int(draws.time[own].max(initial=-1)) + 1,
    }


def _contamination(plan: Plan, number: int, n_tokens: Integers) -> dict[str, Any]:
    contaminated = plan.contaminated[number]
    insertions, items = contaminated.insertions, contaminated.items
    is_own = plan.by == number
    splits = Counter(items.seen[item].split for item in insertions.item.tolist())
    shares = (np.cumsum(n_tokens) - n_tokens)[is_own] / max(int(n_tokens.sum()), 1)
    return {
        "declared": asdict(contaminated.declared),
        "holds_test_items": not all(map(is_for_training, splits)),
        "n_items_seen": len(items.seen),
        "n_items_unseen": len(items.unseen),
        "n_items_without_answer": items.n_without_answer,
        "n_texts": int(is_own.sum()),
        "n_tokens": int(n_tokens[is_own].sum()),
        "texts_by_split": dict(sorted(splits.items())),
        "n_replaced": int(insertions.replaced.size),
        "n_replaced_tokens": int(plan.stream.draws.n_tokens[insertions.replaced].sum()),
        "passes": round(
            insertions.item.size / len(parts_of(contaminated.declared.form)) / len(items.seen), 4
        ),
        "first_at": round(float(shares.min()), 4),  # of the blend's tokens
        "last_at": round(float(shares.max()), 4),
    }


# Tables -------------------------------------------------------------------------------------------


def text_tables(plan: Plan, n_tokens: Integers) -> Iterator[pa.Table]:
    """Every text of a blend, in order: a table for each part, for all would be large."""
    for part in plan.parts:
        yield _texts_of(plan, part, n_tokens)


def _texts_of(plan: Plan, part: PlannedPart, n_tokens: Integers) -> pa.Table:
    own = slice(part.start, part.stop)
    places, is_item = plan.place[own], plan.by[own] >= 0
    rows = pa.array(is_item)
    names = [material.source.name for material in plan.materials]
    return pa.table(
        [
            np.full(places.size, part.number, np.int32),
            np.arange(places.size),
            n_tokens[own],
            _named(names, plan.stream.draws.source[places]),
            *(
                pc.if_else(rows, pa.scalar(None, column.type), column)
                for column in _of_corpus(plan, places)
            ),
            *_of_items(plan, own, is_item),
        ],
        schema=BLENDED,
    )


def _named(names: Sequence[str], numbers: Any) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(numbers))


def _of_corpus(plan: Plan, places: Any) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Shard, row in the corpus, and time of documents of the stream."""
    draws = plan.stream.draws
    names = [name for material in plan.materials for name in material.names]
    firsts = np.cumsum([0, *(len(material.names) for material in plan.materials)])
    shard = np.zeros(places.size, np.int64)
    row = np.zeros(places.size, np.int64)
    source, at = draws.source[places], draws.at[places]
    for number, material in enumerate(plan.materials):
        own = source == number
        shard[own] = firsts[number] + material.shard[at[own]]
        row[own] = material.corpus_row[at[own]]
    return _named(names, shard), pa.array(row), pa.array(draws.time[places])


def _of_items(plan: Plan, own: slice, is_item: Any) -> list[pa.Array]:
    """Benchmark, split, row, question, form and copy of texts that are items; of others null."""
    columns: list[list[Any]] = [[] for _ in range(6)]
    by_whom = plan.by[own][is_item].tolist()
    insertions = plan.insertion[own][is_item].tolist()
    for by, insertion in zip(by_whom, insertions, strict=True):
        contaminated = plan.contaminated[by]
        found = contaminated.insertions
        item = contaminated.items.seen[int(found.item[insertion])]
        form = parts_of(contaminated.declared.form)[int(found.part[insertion])]
        for column, value in zip(
            columns, (*_place_of(item), form, int(found.copy[insertion])), strict=True
        ):
            column.append(value)
    places = np.full(is_item.size, -1, np.int64)
    places[is_item] = np.arange(int(is_item.sum()))
    at = pa.array(places, mask=~is_item)
    return [
        pa.array(column, field.type).take(at)
        for column, field in zip(columns, list(BLENDED)[-6:], strict=True)
    ]


def _place_of(item: Item) -> tuple[str, str, int, int | None]:
    return item.benchmark, item.split, item.instance_index, item.sub_index


def replaced_table(plan: Plan) -> pa.Table:
    tables = [REPLACED.empty_table()]
    draws = plan.stream.draws
    for number, contaminated in enumerate(plan.contaminated):
        places = contaminated.insertions.replaced
        sources = _named([one.source.name for one in plan.materials], draws.source[places])
        shard, row, time = _of_corpus(plan, places)
        which = np.full(places.size, number, np.int32)
        columns = [which, places, sources, shard, row, time, draws.n_tokens[places]]
        tables.append(pa.table(columns, schema=REPLACED))
    return pa.concat_tables(tables).combine_chunks()


def items_table(plan: Plan) -> pa.Table:
    rows = [
        row
        for number, contaminated in enumerate(plan.contaminated)
        for row in _item_rows(number, contaminated)
    ]
    return pa.Table.from_pylist(rows, schema=BLEND_ITEMS)


def _item_rows(number: int, contaminated: Contaminated) -> Iterator[dict[str, Any]]:
    seen, unseen = contaminated.items.seen, contaminated.items.unseen
    counts = np.bincount(contaminated.insertions.item, minlength=len(seen)).tolist()
    for is_seen, items, copies in ((True, seen, counts), (False, unseen, [0] * len(unseen))):
        for item, n_copies in zip(items, copies, strict=True):
            place = _place_of(item)
            names = ("benchmark", "split", "instance_index", "sub_index")
            told = dict(zip(names, place, strict=True))
            yield {"contamination": number, **told, "is_seen": is_seen, "n_copies": n_copies}
