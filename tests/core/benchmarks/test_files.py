"""Which files a local path means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from decon_core.benchmarks.files import files_by_split
from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import RecipeError, RecordError
from tests.core.benchmarks.conftest import write_lines

RecipeOf = Callable[..., Recipe]


def questions(recipe: Recipe, base: Path) -> list[tuple[str, int, str]]:
    rows = normalize(recipe, base=base).to_pylist()
    return [(row["split"], row["instance_index"], row["question"]) for row in rows]


def file(base: Path, name: str) -> None:
    write_lines(base / name, [{"q": name}])


def test_a_single_file_is_the_only_split(tmp_path: Path, recipe_of: RecipeOf) -> None:
    file(tmp_path, "in/x.jsonl")
    recipe = recipe_of("prompt: q", source="local_path: in/x.jsonl")
    assert questions(recipe, tmp_path) == [("test", 0, "in/x.jsonl")]


def test_an_absolute_path_needs_no_base(tmp_path: Path, recipe_of: RecipeOf) -> None:
    file(tmp_path, "x.jsonl")
    recipe = recipe_of("prompt: q", source=f"local_path: {tmp_path}/x.jsonl")
    assert len(questions(recipe, tmp_path / "elsewhere")) == 1


def test_a_placeholder_stands_for_the_split(tmp_path: Path, recipe_of: RecipeOf) -> None:
    for split in ("train", "test"):
        file(tmp_path, f"x-{split}.jsonl")
    lines = "local_path: 'x-{split}.jsonl'"
    recipe = recipe_of("prompt: q", source=lines, splits="[test, train]")
    assert questions(recipe, tmp_path) == [
        ("test", 0, "x-test.jsonl"),
        ("train", 0, "x-train.jsonl"),
    ]


def test_every_split_may_name_its_files(tmp_path: Path, recipe_of: RecipeOf) -> None:
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        file(tmp_path, name)
    lines = "local_path: {train: [b.jsonl, a.jsonl], test: c.jsonl}"
    recipe = recipe_of("prompt: q", source=lines, splits="[train, test]")
    assert questions(recipe, tmp_path) == [
        ("train", 0, "b.jsonl"),
        ("train", 1, "a.jsonl"),
        ("test", 0, "c.jsonl"),
    ]


def test_a_pattern_takes_part_two_before_part_ten(tmp_path: Path, recipe_of: RecipeOf) -> None:
    for number in (10, 2, 1):
        file(tmp_path, f"in/x-{number}.jsonl")
    (tmp_path / "in/x-folder.jsonl").mkdir()
    recipe = recipe_of("prompt: q", source="local_path: in/x-*.jsonl")
    names = [question for _, _, question in questions(recipe, tmp_path)]
    assert names == ["in/x-1.jsonl", "in/x-2.jsonl", "in/x-10.jsonl"]


def test_a_prefix_takes_the_numbered_files_of_the_split_only(
    tmp_path: Path, recipe_of: RecipeOf
) -> None:
    names = ["m_test-1.jsonl", "m_test-2.jsonl.gz", "m_test-10.jsonl", "m_test.csv"]
    others = ["m_train-1.jsonl", "m_test_hard-1.jsonl", "m_tests.jsonl", "m_test-1.txt", "n.jsonl"]
    for name in names + others:
        file(tmp_path, f"bundled/{name}")
    recipe = recipe_of("prompt: q", source="local_path: bundled/m_")
    found = files_by_split(recipe, base=tmp_path)["test"]
    assert [path.name for path in found] == [
        "m_test-1.jsonl",
        "m_test-2.jsonl.gz",
        "m_test-10.jsonl",
        "m_test.csv",
    ]


def test_a_folder_holds_one_file_or_several_per_split(tmp_path: Path, recipe_of: RecipeOf) -> None:
    for name in ("train.jsonl", "test-00001-of-00002.jsonl", "test-00000-of-00002.jsonl"):
        file(tmp_path, f"in/{name}")
    for source in ("local_path: in", "local_path: in/"):
        recipe = recipe_of("prompt: q", source=source, splits="[test, train]")
        found = files_by_split(recipe, base=tmp_path)
        assert [path.name for path in found["test"]] == [
            "test-00000-of-00002.jsonl",
            "test-00001-of-00002.jsonl",
        ]
        assert [path.name for path in found["train"]] == ["train.jsonl"]


def test_a_data_set_on_the_hub_has_no_files(tmp_path: Path, recipe_of: RecipeOf) -> None:
    assert files_by_split(recipe_of("prompt: q"), base=tmp_path) == {}


@pytest.mark.parametrize(
    ("source", "splits", "message"),
    [
        ("local_path: no.jsonl", "[test]", "no file for the split 'test'; expected the file"),
        ("local_path: 'no-*.jsonl'", "[test]", "expected a file that matches"),
        ("local_path: 'x-{split}.jsonl'", "[test]", "expected the file .*x-test.jsonl"),
        ("local_path: in/no_", "[test]", r"expected a file like .*in/no_test.jsonl or ...-1.jsonl"),
        ("local_path: {test: no.jsonl}", "[test]", "no file for the split 'test'"),
        ("local_path: x.txt", "[test]", "found the file .*x.txt; expected a name that ends in .js"),
        ("local_path: x.jsonl", "[a, b]", "found 'x.jsonl' for 2 splits; expected different files"),
        ("local_path: x.jsonl", "[a, b]", "Put {split} into the path, or write `split: file`"),
    ],
)
def test_files_that_cannot_be_told_or_found_are_refused(
    tmp_path: Path, recipe_of: RecipeOf, source: str, splits: str, message: str
) -> None:
    for name in ("x.txt", "x.jsonl"):
        file(tmp_path, name)
    with pytest.raises(RecipeError, match=message) as error:
        normalize(recipe_of("prompt: q", source=source, splits=splits), base=tmp_path)
    assert str(error.value.problems[0]).startswith("bench.local_path: ")


def test_all_missing_splits_are_reported_together(tmp_path: Path, recipe_of: RecipeOf) -> None:
    recipe = recipe_of("prompt: q", source="local_path: '{split}.jsonl'", splits="[a, b]")
    with pytest.raises(RecipeError) as error:
        normalize(recipe, base=tmp_path)
    assert [problem.found for problem in error.value.problems] == [
        "no file for the split 'a'",
        "no file for the split 'b'",
    ]


def test_an_empty_split_is_refused(tmp_path: Path, recipe_of: RecipeOf) -> None:
    (tmp_path / "x.jsonl").touch()
    recipe = recipe_of("prompt: q", source="local_path: x.jsonl")
    with pytest.raises(RecordError, match="bench split 'test': no rows; expected at least"):
        normalize(recipe, base=tmp_path)
