"""Outputs appear whole or not at all."""

import pytest

from decon_core.store import aside, read_json, write_json


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_file_appears_only_when_its_block_ends_well(tmp_path):
    path = tmp_path / "deep" / "a.json"
    with pytest.raises(RuntimeError), aside(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert not path.exists()
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert leftovers(path.parent) == []


def test_a_failed_rewrite_keeps_what_was_there(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, "old")
    with pytest.raises(RuntimeError), aside(path) as draft:
        draft.write_text("new")
        raise RuntimeError
    assert read_json(path) == "old"


def test_a_folder_replaces_another_whole(tmp_path):
    path = tmp_path / "mixture"
    for content in ("old", "new"):
        with aside(path) as draft:
            draft.mkdir()
            (draft / content).write_text(content)
    assert [file.name for file in path.iterdir()] == ["new"]
    with pytest.raises(RuntimeError), aside(path) as draft:
        draft.mkdir()
        raise RuntimeError
    assert [file.name for file in path.iterdir()] == ["new"]
    assert leftovers(tmp_path) == []
