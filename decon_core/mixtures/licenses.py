"""Check the licenses of documents against those that a mixture allows."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.config.mixtures import Licenses, names_license
from decon_core.mixtures.rows import RowReader

UNKNOWN = "no license that is a text"


def refused(row_reader: RowReader, licenses: Licenses, rows: Sequence[int]) -> dict[int, str]:
    """Return those of these rows whose license is not allowed, with the name of the license.

    Fields are tried in order. A value that is not a string, or that says "unknown", counts as no
    license.
    """
    names: dict[int, str] = {}
    for field in licenses.fields:
        # Checked by name, of which there are few, not by row.
        is_license = {name: names_license(name) for name in {*names.values(), ""}}
        if all(is_license[names.get(row, "")] for row in rows):
            break
        texts = dict(row_reader.texts(field))
        names = texts | {
            row: name for row, name in names.items() if is_license[name] or row not in texts
        }
    is_taken = {name: licenses.takes(name) for name in {*names.values(), ""}}
    return {
        row: names.get(row, "").strip() or UNKNOWN
        for row in rows
        if not is_taken[names.get(row, "")]
    }
