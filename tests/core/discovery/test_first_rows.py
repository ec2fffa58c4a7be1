"""Tables without a line of names are recognized, and nothing that has one."""

import csv
import errno

import pytest

from decon_core.discovery.first_rows import first_rows
from decon_core.errors import InputError

QUESTIONS = [f"Which lamp of the mill has the number {number}?" for number in range(8)]


def table(path, lines):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return path


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (
            [(one, "a", "b", "c", "d", "ABCD"[at % 4]) for at, one in enumerate(QUESTIONS)],
            ("question", "A", "B", "C", "D", "answer"),
        ),
        ([(one, at) for at, one in enumerate(QUESTIONS)], ("question", "answer")),
        (
            [(at, one, "a red lamp", "the mill") for at, one in enumerate(QUESTIONS)],
            ("column_1", "column_2", "column_3", "column_4"),
        ),
        ([("question", "A", "B", "answer"), (QUESTIONS[0], "a", "b", "A")], ()),
        ([("", "Question", "Answer"), (0, QUESTIONS[0], "a")], ()),
        ([("Human Accuracy", "Best Incorrect Answer"), ("0.5", "a lamp")], ()),
    ],
)
def test_a_first_line_with_values_gets_names_for_its_columns(tmp_path, lines, columns):
    first = first_rows(table(tmp_path / "x.csv", lines))
    assert first.columns == columns
    assert len(first.rows) == (len(lines) if columns else len(lines) - 1)


def test_a_file_without_a_row_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no row"):
        first_rows(table(tmp_path / "x.csv", [("question", "answer")]))


def test_a_benchmark_without_read_permission_is_named_with_the_remedy(tmp_path, monkeypatch):
    path = table(tmp_path / "x.csv", ["question,answer", "a,b"])

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("decon_core.discovery.first_rows.first_cells", refuse)
    with pytest.raises(InputError, match=r"x\.csv: .*Give this user read and write permission"):
        first_rows(path)
