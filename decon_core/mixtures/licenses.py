"""The licenses that documents stand under, and those that a mixture does not take."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.config.mixtures import Licenses, names_license
from decon_core.mixtures.rows import Rows

UNKNOWN = "no license that is a text"


def refused(at_hand: Rows, licenses: Licenses, rows: Sequence[int]) -> dict[int, str]:
    """Which of these rows are not taken, and the license that each of them names.

    A field is read as a text would be: a list, a number or nothing at all is not known. One that
    says "unknown" leaves the word to the next field.
    """
    names: dict[int, str] = {}
    for field in licenses.fields:
        # Looked up by name, of which there are few, not by row.
        says = {name: names_license(name) for name in {*names.values(), ""}}
        if all(says[names.get(row, "")] for row in rows):
            break
        found = dict(at_hand.texts(field))
        names = found | {row: name for row, name in names.items() if says[name] or row not in found}
    is_taken = {name: licenses.takes(name) for name in {*names.values(), ""}}
    return {
        row: names.get(row, "").strip() or UNKNOWN
        for row in rows
        if not is_taken[names.get(row, "")]
    }
