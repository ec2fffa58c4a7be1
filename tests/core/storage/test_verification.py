"""What was right is looked at again when it changed, and not before."""

import json

import pytest

from decon_core.errors import Problem, StaleError
from decon_core.storage.store import Store
from decon_core.storage.verification import inspect_changed, stamp_of_files


@pytest.fixture
def looked(tmp_path):
    """Look at numbers, of which odd ones are wrong; what was asked, and what was said."""
    store, asked = Store(tmp_path / "store"), []

    def faults(name):
        asked.append(name)
        number = int(name)
        if number < 0:
            raise StaleError(Problem(name, "damaged", "whole"))
        return [Problem(name, "odd", "even")] if number % 2 else []

    def ask(stamps):
        asked.clear()
        found = inspect_changed(store, "numbers", stamps, faults)
        return list(asked), [problem.found for problem in found.problems], found

    ask.path = store.verification_note("numbers")
    return ask


def test_only_what_changed_or_was_wrong_is_looked_at_again(looked):
    assert looked({"1": "a", "2": "a", "4": "a"})[:2] == (["1", "2", "4"], ["odd"])
    assert looked({"1": "a", "2": "b", "4": "a"})[:2] == (["1", "2"], ["odd"])
    asked, said, found = looked({"2": "b", "4": "a", "-1": "a"})
    assert (asked, said) == (["-1"], ["damaged"])
    assert (found.n_inspected, found.n_unchanged) == (1, 2)


def test_what_went_away_is_looked_at_when_it_is_back(looked):
    looked({"2": "a"})
    looked({})
    assert looked({"2": "a"})[0] == ["2"]


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"form": 0, "right": {"2": "a"}}', '{"form": 1}']
)
def test_a_memory_that_nobody_can_read_remembers_nothing(looked, content):
    looked({"2": "a"})
    looked.path.write_text(content)
    assert looked({"2": "a"})[0] == ["2"]
    assert json.loads(looked.path.read_text())["right"] == {"2": "a"}


def test_a_stamp_tells_other_bytes_other_names_and_another_account(tmp_path):
    for name in ("a", "below/b", "_manifest.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    stamps = [stamp_of_files(tmp_path, "_manifest.json")]
    assert stamp_of_files(tmp_path, "_manifest.json") == stamps[0]
    (tmp_path / "below/b").write_text("longer")
    stamps.append(stamp_of_files(tmp_path, "_manifest.json"))
    (tmp_path / "a").rename(tmp_path / "c")
    stamps.append(stamp_of_files(tmp_path, "_manifest.json"))
    (tmp_path / "_manifest.json").write_text("_manifest.JSON")
    stamps.append(stamp_of_files(tmp_path, "_manifest.json"))
    assert len({json.dumps(stamp) for stamp in stamps}) == 4
    assert json.loads(json.dumps(stamps[0])) == stamps[0]  # it is kept as JSON
