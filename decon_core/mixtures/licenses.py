"""The licenses that documents stand under, and those that a mixture does not take."""

from __future__ import annotations

from dataclasses import replace

from decon_core.batches import read_blocks
from decon_core.config import Source
from decon_core.corpus import Shard
from decon_core.variants import Licenses

UNKNOWN = "no license that is a text"


def refused(shard: Shard, source: Source, licenses: Licenses, rows: list[int]) -> dict[int, str]:
    """Which of these rows are not taken, and the license that each of them names.

    The field is read as a text would be: a list, a number or nothing at all is not known.
    """
    as_text = replace(source, text=licenses.field, messages=None, roles=())
    is_taken: dict[bytes, bool] = {}
    found: dict[int, str] = {}
    named: set[int] = set()
    for block in read_blocks(shard, as_text):
        batch = block.read()
        for row, start, stop in zip(
            batch.rows.tolist(), batch.starts.tolist(), batch.stops.tolist(), strict=True
        ):
            name = batch.text[start:stop].tobytes()
            if name not in is_taken:
                is_taken[name] = licenses.takes(name.decode())
            if not is_taken[name]:
                found[row] = name.decode().strip() or UNKNOWN
            named.add(row)
    wanted = {row: found[row] for row in rows if row in found}
    if licenses.unknown == "drop":
        wanted |= {row: UNKNOWN for row in rows if row not in named}
    return wanted
