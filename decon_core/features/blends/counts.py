"""The counts of a blend for its manifest, and the tables that list every text of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.features.blends.draw import Flags, Integers
from decon_core.features.blends.items import Item, parts_of
from decon_core.features.blends.plan import Plan, PlannedPart
from decon_core.features.blends.schemas import BLEND_ITEMS, BLENDED, REPLACED
from decon_core.features.blends.settings import is_for_training
from decon_core.schemas import schema_of


def planned_tokens(plan: Plan) -> Integers:
    """Return the tokens of every text; other copies of an item may have some more or less."""
    n_tokens: Integers = plan.stream.draws.n_tokens[plan.place]
    for number, contaminated in enumerate(plan.contaminated):
        is_item = plan.by == number
        at = plan.insertion[is_item]
        insertions = contaminated.insertions
        n_tokens[is_item] = contaminated.sizes[insertions.item[at], insertions.part[at]]
    return n_tokens


def account_of(plan: Plan, n_tokens: Integers | None = None) -> dict[str, Any]:
    """Return the counts of a blend for its manifest, by default with the planned tokens."""
    n_tokens = planned_tokens(plan) if n_tokens is None else n_tokens
    drawn_tokens, n_phases = plan.stream.draws.n_tokens, len(plan.blend.phases)
    replaced = [contaminated.insertions.replaced for contaminated in plan.contaminated]
    places = np.concatenate([np.empty(0, np.int64), *replaced])
    totals = _written(n_tokens, plan.by >= 0) | _amount("drawn", drawn_tokens)
    return {
        "phases": [_phase(plan, number, n_tokens, places) for number in range(n_phases)],
        "sources": [_source(plan, number) for number in range(len(plan.materials))],
        "contamination": [_contamination(plan, at, n_tokens) for at in range(len(replaced))],
        "totals": totals | _amount("replaced", drawn_tokens[places]),
    }


def _amount(what: str, n_tokens: Integers) -> dict[str, int]:
    return {f"n_{what}": n_tokens.size, f"n_{what}_tokens": int(n_tokens.sum())}


def _written(n_tokens: Integers, is_item: Flags) -> dict[str, int]:
    return {
        "n_documents": n_tokens.size,
        "n_tokens": int(n_tokens.sum()),
        "n_test_texts": int(is_item.sum()),
        "n_test_tokens": int(n_tokens[is_item].sum()),
    }


def _phase(plan: Plan, number: int, n_tokens: Integers, replaced: Integers) -> dict[str, Any]:
    """Return the counts of a phase, in total and by source. `replaced`: numbers of documents."""
    stream, in_phase = plan.stream, plan.phase == number
    first, last = stream.phases[number : number + 2].tolist()
    sources, tokens = stream.draws.source[first:last], stream.draws.n_tokens[first:last]
    gone_in_phase = replaced[(replaced >= first) & (replaced < last)] - first
    by_source = []
    for at, material in enumerate(plan.materials):
        drawn = _amount("drawn", tokens[sources == at])
        share = round(drawn["n_drawn_tokens"] / max(int(tokens.sum()), 1), 6)
        gone = _amount("replaced", tokens[gone_in_phase[sources[gone_in_phase] == at]])
        named = {"source": material.source.name}
        by_source.append({**named, **drawn, "share_of_tokens": share, **gone})
    return {
        "phase": number + 1,
        "declared": asdict(plan.blend.phases[number]),
        **_written(n_tokens[in_phase], plan.by[in_phase] >= 0),
        "sources": by_source,
    }


def _source(plan: Plan, number: int) -> dict[str, Any]:
    """Return the counts of a source, and how many passes over it were drawn."""
    material, draws = plan.materials[number], plan.stream.draws
    in_source = draws.source == number
    drawn = _amount("drawn", draws.n_tokens[in_source])
    return {
        "source": material.source.name,
        "n_documents": len(material),
        "n_tokens": material.all_tokens,
        **drawn,
        "n_different": int(np.count_nonzero(np.bincount(draws.at[in_source]))),
        "passes": round(drawn["n_drawn_tokens"] / max(material.all_tokens, 1), 4),
        "most_times": int(draws.time[in_source].max(initial=-1)) + 1,
    }


def _contamination(plan: Plan, number: int, n_tokens: Integers) -> dict[str, Any]:
    contaminated = plan.contaminated[number]
    insertions, items = contaminated.insertions, contaminated.items
    is_item = plan.by == number
    splits = Counter(items.seen[item].split for item in insertions.item.tolist())
    shares = (np.cumsum(n_tokens) - n_tokens)[is_item] / max(int(n_tokens.sum()), 1)
    n_copies = insertions.item.size / len(parts_of(contaminated.declared.form))
    return {
        "declared": asdict(contaminated.declared),
        "holds_test_items": not all(map(is_for_training, splits)),
        "n_items_seen": len(items.seen),
        "n_items_unseen": len(items.unseen),
        "n_items_without_answer": items.n_without_answer,
        "n_items_not_rewritten": items.n_not_rewritten,
        "n_texts": int(is_item.sum()),
        "n_tokens": int(n_tokens[is_item].sum()),
        "texts_by_split": dict(sorted(splits.items())),
        **_amount("replaced", plan.stream.draws.n_tokens[insertions.replaced]),
        "passes": round(n_copies / len(items.seen), 4),
        "first_at": round(float(shares.min()), 4),  # share of the blend's tokens before it
        "last_at": round(float(shares.max()), 4),
    }


def texts_table(plan: Plan, part: PlannedPart, n_tokens: Integers) -> pa.Table:
    """Return every text of a part, in order."""
    texts = slice(part.start, part.stop)
    places, is_item = plan.place[texts], plan.by[texts] >= 0
    item_mask = pa.array(is_item)
    names = [material.source.name for material in plan.materials]
    columns = [
        np.full(places.size, part.number, np.int32),
        np.arange(places.size),
        n_tokens[texts],
        _take_names(names, plan.stream.draws.source[places]),
    ]
    for column in _corpus_columns(plan, places):
        columns += [pc.if_else(item_mask, pa.scalar(None, column.type), column)]
    # Benchmark, split, row, question, form and copy of items; null for documents.
    inserted = plan.inserted(part.start, part.stop)
    rows = [(*_item_key(text.item), text.part, text.copy) for text in inserted]
    row_of_text = np.full(is_item.size, -1, np.int64)
    row_of_text[is_item] = np.arange(len(rows))
    indices = pa.array(row_of_text, mask=~is_item)
    item_columns = zip(*rows, strict=True) if rows else [()] * 6
    schema = schema_of(BLENDED)
    for column, field in zip(item_columns, list(schema)[-6:], strict=True):
        columns += [pa.array(column, field.type).take(indices)]
    return pa.table(columns, schema=schema)


def _take_names(names: Sequence[str], numbers: Any) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(numbers))


def _corpus_columns(plan: Plan, places: Any) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return shard, corpus row and time of these documents of the stream."""
    draws = plan.stream.draws
    names = [name for material in plan.materials for name in material.names]
    firsts = np.cumsum([0, *(len(material.names) for material in plan.materials)])
    shard = np.zeros(places.size, np.int64)
    row = np.zeros(places.size, np.int64)
    source, at = draws.source[places], draws.at[places]
    for number, material in enumerate(plan.materials):
        in_source = source == number
        shard[in_source] = firsts[number] + material.shard[at[in_source]]
        row[in_source] = material.corpus_row[at[in_source]]
    return _take_names(names, shard), pa.array(row), pa.array(draws.time[places])


def _item_key(item: Item) -> tuple[str, str, int, int | None]:
    return item.benchmark, item.split, item.instance_index, item.sub_index


def replaced_table(plan: Plan) -> pa.Table:
    """Return the documents of the stream that items replaced."""
    tables = [schema_of(REPLACED).empty_table()]
    draws, names = plan.stream.draws, [material.source.name for material in plan.materials]
    for number, contaminated in enumerate(plan.contaminated):
        places = contaminated.insertions.replaced
        sources = _take_names(names, draws.source[places])
        shard, row, time = _corpus_columns(plan, places)
        numbers = np.full(places.size, number, np.int32)
        columns = [numbers, places, sources, shard, row, time, draws.n_tokens[places]]
        tables.append(pa.table(columns, schema=schema_of(REPLACED)))
    return pa.concat_tables(tables).combine_chunks()


def items_table(plan: Plan) -> pa.Table:
    """Return the items of each contamination: seen with their number of copies, or unseen."""
    rows = []
    for number, contaminated in enumerate(plan.contaminated):
        seen, unseen = contaminated.items.seen, contaminated.items.unseen
        counts = np.bincount(contaminated.insertions.item, minlength=len(seen)).tolist()
        rows += [(number, *_item_key(item), True, n) for item, n in zip(seen, counts, strict=True)]
        rows += [(number, *_item_key(item), False, 0) for item in unseen]
    columns = zip(*rows, strict=True) if rows else [()] * len(BLEND_ITEMS)
    return pa.table([*map(list, columns)], schema=schema_of(BLEND_ITEMS))
