"""The fingerprint of records is a hash of their content."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from decon_core.benchmarks.records import fingerprint_of_records
from decon_core.schemas import RECORDS

# Of one to four bytes, among them those that JSON escapes.
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


@given(st.lists(_ROWS, min_size=1, max_size=4), st.data())
def test_every_value_counts(rows, data):
    row, name = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(RECORDS.names))
    before = pa.Table.from_pylist(rows, schema=RECORDS)
    row[name] = data.draw(_ROWS.map(lambda other: other[name]))
    after = pa.Table.from_pylist(rows, schema=RECORDS)
    is_equal = fingerprint_of_records(before) == fingerprint_of_records(after)
    assert is_equal == before.equals(after)


@given(st.lists(_ROWS, max_size=8), st.integers(0, 3), st.integers(1, 4))
def test_a_fingerprint_does_not_depend_on_slices_and_batches(rows, start, size):
    table = pa.Table.from_pylist(rows, schema=RECORDS).slice(start)
    batches = table.to_batches(max_chunksize=size)
    copy = pa.Table.from_pylist(rows[start:], schema=RECORDS)
    expected = fingerprint_of_records(copy)
    assert fingerprint_of_records(table) == expected
    assert fingerprint_of_records(pa.Table.from_batches(batches, RECORDS)) == expected


def test_a_fingerprint_stays_the_same_in_all_versions():
    row = {"benchmark": "a", "split": "test", "instance_index": 1, "question": "Wie spät?"}
    row |= {"answer": None, "fingerprint": "f", "is_correct": True}
    table = pa.Table.from_pylist([row], schema=RECORDS)
    assert fingerprint_of_records(table) == "0950522980c13043"
