"""Tables as CSV hold no formulas."""

import csv
import io

from decon_core.text_tables import as_csv


def test_a_text_that_begins_like_a_formula_is_none_in_a_spreadsheet():
    values = ["=1+1", "+1", "-1", "@A1", "\tx", -1.5, "1-1", "", None]
    rows = [*csv.DictReader(io.StringIO(as_csv([{"a": value} for value in values]), newline=""))]
    kept = ["'=1+1", "'+1", "'-1", "'@A1", "'\tx", "-1.5", "1-1", "", ""]
    assert [row["a"] for row in rows] == kept
