"""The fingerprint of records is the hash of their rows as orjson writes them."""

from __future__ import annotations

from hashlib import sha256

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from decon_core.benchmarks.records import fingerprint_of_records
from decon_core.schemas import RECORDS

# Every character that JSON escapes, and some that it does not.
_CHARACTERS = st.sampled_from([*map(chr, range(128)), "é", "\u2028", "😀", "\\n", '\\"'])
_TEXTS = st.lists(_CHARACTERS, max_size=6).map("".join)
_VALUES = {
    pa.string(): _TEXTS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.bool_(): st.booleans(),
}
_ROWS = st.fixed_dictionaries(
    {
        column.name: st.none() | _VALUES[column.type] if column.nullable else _VALUES[column.type]
        for column in RECORDS
    }
)


def plain(table: pa.Table) -> str:
    return sha256(b"".join(map(orjson.dumps, table.to_pylist()))).hexdigest()[:16]


@given(st.lists(_ROWS, max_size=8), st.integers(0, 3))
def test_a_fingerprint_is_the_hash_of_the_rows_as_json(rows, start):
    table = pa.Table.from_pylist(rows, schema=RECORDS).slice(start)
    assert fingerprint_of_records(table) == plain(table)


def test_a_fingerprint_does_not_depend_on_batches():
    text, none = "a\\b", dict.fromkeys(("config", "sub_index", "passage", "extras"))
    row = {**dict.fromkeys(RECORDS.names, text), **none, "choice_index": 1, "is_correct": True}
    rows = [{**row, "instance_index": n, "question": f'{n} "'} for n in range(9_000)]
    table = pa.Table.from_pylist(rows, schema=RECORDS)
    assert fingerprint_of_records(table) == plain(table)
    assert fingerprint_of_records(table.slice(4_000)) == plain(table.slice(4_000))
