"""Every file format and compression; and files that are damaged, which are never read in part."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
import zstandard

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import RecordError

# Incompressible enough that a cut anywhere loses rows.
RANDOM = random.Random(7)
ROWS: list[dict[str, Any]] = [
    {"q": f"Frage {n} ü", "a": "".join(RANDOM.choices("abcdefgh ", k=60))} for n in range(400)
]
LINES = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def recipe_for(path: Path, splits: str = "[test]") -> Recipe:
    recipe_path = path.parent / "evals.yaml"
    recipe_path.write_text(
        f"evals:\n  bench: {{local_path: {path.name}, splits: {splits}, prompt: q, answers: [a]}}\n"
    )
    return load_recipes(recipe_path)["bench"]


def read(path: Path) -> list[tuple[object, object]]:
    table = normalize(recipe_for(path), base=path.parent)
    return [(row["question"], row["answer"]) for row in table.to_pylist()]


def expected(rows: list[dict[str, Any]]) -> list[tuple[object, object]]:
    return [(row["q"], row["a"]) for row in rows]


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.json"])
def test_json_lines_are_read_whatever_the_compression(
    tmp_path: Path, name: str, ending: str
) -> None:
    path = tmp_path / (name + ending)
    path.write_bytes(COMPRESSORS[ending](LINES))
    assert read(path) == expected(ROWS)


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_json_list_is_read_whatever_the_compression(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.json{ending}"
    path.write_bytes(COMPRESSORS[ending](json.dumps(ROWS, indent=1).encode()))
    assert read(path) == expected(ROWS)


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_csv_is_read_with_quotes_and_line_breaks(tmp_path: Path, ending: str) -> None:
    rows = [{"q": 'Was ist "das", bitte?\nUnd jenes?', "a": "x, y"}, {"q": "Q", "a": "5"}]
    text = 'q,a\r\n"Was ist ""das"", bitte?\nUnd jenes?","x, y"\r\nQ,5\r\n'
    path = tmp_path / f"x.csv{ending}"
    path.write_bytes(COMPRESSORS[ending](b"\xef\xbb\xbf" + text.encode()))
    assert read(path) == expected(rows)


def test_csv_with_semicolons_is_read_as_spreadsheets_of_many_countries_write_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.csv"
    path.write_text('q;a\n"Wie viel?; 3,5 oder 4";3,5\n')
    assert read(path) == [("Wie viel?; 3,5 oder 4", "3,5")]


def test_a_semicolon_within_quotes_separates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('"q","a"\n"Explain; briefly\nwhy",because\n')
    assert read(path) == [("Explain; briefly\nwhy", "because")]


def test_tsv_takes_quotes_as_they_stand(tmp_path: Path) -> None:
    """An unpaired quote must not swallow the lines that follow."""
    path = tmp_path / "x.tsv"
    path.write_text('q\ta\n"Go!" she said\tx\n"unpaired\ty\nQ\tz\n')
    assert read(path) == [('"Go!" she said', "x"), ('"unpaired', "y"), ("Q", "z")]


def test_csv_fields_may_be_longer_than_the_standard_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"q,a\n{'x' * 200_000},y\n")
    assert read(path) == [("x" * 200_000, "y")]


def test_parquet_is_read_with_nested_values(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"q": ["one", "two"], "a": [["x"], ["y", "z"]]}).write_parquet(path)
    assert read(path) == [("one", "x"), ("two", "y"), ("two", "z")]


def test_a_byte_order_mark_blank_lines_and_nan_are_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"q": "one", "a": NaN}\n\n  \n{"q": "two", "a": 1}')
    assert read(path) == [("one", None), ("two", "1")]


def test_several_zst_frames_in_one_file_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.zst"
    half = LINES.index(b"\n", len(LINES) // 2) + 1
    frames = [zstandard.compress(part) for part in (LINES[:half], b"", LINES[half:])]
    path.write_bytes(b"".join(frames))
    assert read(path) == expected(ROWS)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("kept", [0.999, 0.5, 0.1])
@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_a_file_that_was_cut_off_is_refused(
    tmp_path: Path, ending: str, kept: float, name: str
) -> None:
    path = tmp_path / (name + ending)
    whole = COMPRESSORS[ending](LINES)
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(RecordError, match=r"x\.json.* found a file that ends too early"):
        read(path)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2", ".xz"])
def test_a_second_part_that_was_cut_off_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.jsonl{ending}"
    whole = COMPRESSORS[ending](LINES)
    path.write_bytes(whole + whole[: len(whole) // 2])
    with pytest.raises(RecordError, match="found a file that ends too early"):
        read(path)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2", ".xz"])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.jsonl{ending}"
    path.write_bytes(LINES)
    with pytest.raises(RecordError, match="found a file that cannot be decompressed") as error:
        read(path)
    assert "Copy or download it again." in str(error.value)


def test_parquet_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame(ROWS).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordError, match="found a file that is not valid parquet"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"q": 1, "a": 1}\n{"q": 2\n', "x.jsonl line 2 (byte 17): found text that i"),
        ("x.jsonl", b'\n\n["q"]\n', "x.jsonl line 3 (byte 2): found a list of 1; expected one JS"),
        ("x.jsonl", b'{"q": "\xff", "a": 1}\n', "line 1 (byte 0): found text that is not JSON"),
        ("x.jsonl", b'{"q": "\\ud800", "a": 1}\n', "line 1 (byte 0): found text that is not JS"),
        ("x.json", b'[{"q": 1, "a": 1}, 5]', "x.json item 2: found the number 5; expected an ob"),
        ("x.json", b'[{"q": 1', "x.json: found text that is not JSON"),
        ("x.json", b'{"data": [\n', "x.json line 1 (byte 0): found text that is not JSON"),
        ("x.csv", b"q,a\n1,2,3\n", "x.csv line 2: found 3 cells; expected 2 cells (q, a)"),
        ("x.csv", b"q,a\n1\n", "x.csv line 2: found 1 cell; expected 2 cells (q, a)"),
        ("x.csv", b'q,a\n"1,2\n', "found a line that cannot be read (unexpected end of data)"),
        ("x.csv", b"q,a\n\xff,2\n", "found a line that cannot be read ('utf-8' codec"),
        ("x.tsv", b"q\ta\n1\t2\t3\n", "x.tsv line 2: found 3 cells; expected 2 cells (q, a)"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RecordError) as error:
        read(path)
    assert message in str(error.value)


def test_bad_lines_and_bad_rows_of_a_file_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"q": 1, "a": 1}\nnot json\n{"q": 2}\n{"a": 2}\n')
    with pytest.raises(RecordError) as error:
        read(path)
    places = [problem.where.removeprefix(f"{path} ") for problem in error.value.problems]
    assert places == [
        "line 2 (byte 17)",
        "row 3, field 'a'",
        "row 4, field 'q'",
    ]


def test_the_first_problems_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(b'{"q": 1, "k%d": 1}\n' % number for number in range(1_000)))
    with pytest.raises(RecordError) as error:
        read(path)
    assert len(error.value.problems) == 20
    assert "found 981 more problems" in str(error.value)


def test_what_is_wrong_in_the_same_way_in_every_row_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"q": 1}\n' * 1_000)
    with pytest.raises(RecordError) as error:
        read(path)
    (problem,) = error.value.problems
    assert problem.found == "no 'a' among 'q', also in 999 later rows"


def test_an_error_of_the_disk_is_left_to_whoever_may_try_again(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES)
    recipe = recipe_for(path)
    path.unlink()
    path.symlink_to(tmp_path / "loop")
    (tmp_path / "loop").symlink_to(path)
    from decon_core.benchmarks.readers import read_rows

    with pytest.raises(OSError, match="symbolic links"):
        list(read_rows(path))
    assert recipe.name == "bench"


@pytest.mark.parametrize(
    ("name", "separator"), [("x.csv", ","), ("x.tsv", "\t"), ("x.csv.gz", ",")]
)
def test_a_table_without_names_is_read_by_the_columns_of_the_recipe(
    tmp_path: Path, name: str, separator: str
) -> None:
    path = tmp_path / name
    lines = "".join(f"{row['q']}{separator}{row['a']}\n" for row in ROWS).encode()
    path.write_bytes(COMPRESSORS[".gz" if name.endswith(".gz") else ""](lines))
    recipe = recipe_for(path)
    named = replace(recipe, source=replace(recipe.source, columns=("q", "a")))
    records = normalize(named, base=tmp_path).to_pylist()
    assert [(one["question"], one["answer"]) for one in records] == expected(ROWS)


def test_columns_of_a_file_that_names_its_fields_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES)
    recipe = recipe_for(path)
    with pytest.raises(RecordError, match=r"found `columns` for a \.jsonl file"):
        normalize(replace(recipe, source=replace(recipe.source, columns=("q",))), base=tmp_path)


def test_the_only_list_of_an_object_has_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"about": "lamps", "examples": ROWS[:9]}, indent=2))
    assert read(path) == expected(ROWS[:9])


def test_an_object_with_a_conversation_is_a_row(tmp_path: Path) -> None:
    row = {"q": "Why?", "a": "So.", "messages": [{"role": "user", "content": "Why?"}]}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(row, indent=2))
    assert read(path) == [("Why?", "So.")]
