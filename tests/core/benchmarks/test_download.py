"""Benchmarks on the hub and at URLs: read once per revision, skipped by name, used offline."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.folder import saved_records
from decon_core.benchmarks.records import NotCovered, Version, load_records, recorded_revision
from decon_core.errors import RecipeError
from decon_core.storage.paths import UnreachableError
from decon_core.storage.store import Store
from tests.hub_server import NOWHERE, HubServer, hub_for, use_hub

ROWS = [{"q": f"Which gate is number {n}?", "a": f"the gate of {n} bars"} for n in range(3)]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with hub_for(monkeypatch, tmp_path / "hub") as server:
        yield server


def recipes(folder: Path, **sources: str) -> Path:
    """A recipe file with a benchmark for each of the sources, written as YAML."""
    fields = "splits: [test], prompt: q, answers: [a]"
    lines = [f"  {name}: {{{fields}, {source}}}" for name, source in sources.items()]
    path = folder / "evals.yaml"
    path.write_text("\n".join(["evals:", *lines, "refused: {secret: private}", ""]))
    return path


def test_a_revision_is_read_once_and_a_new_one_again(hub: HubServer, tmp_path: Path) -> None:
    hub.put_rows("mill/gates", ROWS, split="test")
    path = recipes(tmp_path, gates="hf_path: mill/gates")
    (first,) = saved_records(Store(tmp_path / "one"), path)
    n_sent = hub.n_bytes.total()
    (again,) = saved_records(Store(tmp_path / "two"), path)
    assert (again, hub.n_bytes.total()) == (first, n_sent)
    assert recorded_revision(Store(tmp_path / "two"), "gates") == hub.commit("mill/gates")
    hub.put_rows("mill/gates", ROWS[:2], split="test")
    (newer,) = saved_records(Store(tmp_path / "two"), path)
    assert (first.n_items, newer.n_items) == (3, 2)


def test_a_scan_says_which_benchmark_changed_unless_a_commit_is_pinned(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def scan(store: str, pin: str = "") -> Version:
        path = recipes(tmp_path, gates=f"hf_path: mill/gates{pin}")
        (version,) = saved_records(Store(tmp_path / store), path, on_step=said.append)
        return version

    commits = []
    for rows in (ROWS, ROWS, ROWS[:2]):
        hub.put_rows("mill/gates", rows, split="test")
        commits.append(hub.commit("mill/gates"))
        if len(commits) < 3:
            first = scan("one")
            assert "other items" not in said[-1]  # the second commit left the rows alone
    scan("two")
    change = f"gates (revision {commits[2][:12]}, before {commits[1][:12]})"
    assert said[-1] == f"different items than before: {change}"
    scan("one")
    assert said[-2:] == [f"gates: revision {commits[2]}, from the cache", said[-3]]
    use_hub(monkeypatch, NOWHERE)
    assert scan("three", f", hf_revision: {commits[0]}") == first
    assert said[-1] == f"gates: revision {commits[0]}, from the cache"


def test_without_a_network_the_cache_is_used_and_what_is_missing_is_named(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.put_rows("mill/gates", ROWS, split="test")
    hub.put_rows("mill/weirs", ROWS, split="test")
    gates = {"gates": "hf_path: mill/gates"}
    (first,) = saved_records(Store(tmp_path / "one"), recipes(tmp_path, **gates))
    use_hub(monkeypatch, NOWHERE)
    said: list[str] = []
    path = recipes(tmp_path, **gates)
    assert saved_records(Store(tmp_path / "two"), path, on_step=said.append) == (first,)
    assert said[-1] == "the network does not answer: 1 benchmark from the cache"
    path = recipes(tmp_path, **gates, weirs="hf_path: mill/weirs", ponds="hf_path: mill/ponds")
    with pytest.raises(UnreachableError, match="could not download 2 of 3 benchmarks"):
        saved_records(Store(tmp_path / "two"), path, not_covered=[], on_step=said.append)
    assert said[-1].endswith("benchmarks: weirs, ponds")


def test_what_cannot_be_downloaded_is_skipped_by_name_with_the_remedy(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.put_rows("mill/gates", ROWS, split="test")
    hub.put_rows("mill/guarded", ROWS, split="test")
    hub.put_rows("mill/renamed", [{"query": "Which?", "a": "this"}], split="test")
    hub.gated.add("mill/guarded")
    hub.put_rows("mill/changed", [{"query": "Which?", "a": "this"}], split="test")
    hub.put_rows("mill/mixed", ROWS, split="dev")
    hub.put_rows("mill/mixed", [{"query": "Which?", "a": "this"}], split="test")
    path = recipes(
        tmp_path,
        gates="hf_path: mill/gates, verified: false",
        guarded="hf_path: mill/guarded",
        gone="hf_path: mill/gone",
        renamed="hf_path: mill/renamed, verified: false",
        changed="hf_path: mill/changed",
        mixed="hf_path: mill/mixed",
    )
    skipped: list[NotCovered] = []
    said: list[str] = []
    store = Store(tmp_path / "store")
    (version,) = saved_records(store, path, not_covered=skipped, on_step=said.append)
    assert version.benchmark == "gates"
    at = f"gates: revision {hub.commit('mill/gates')}"
    assert said == [f"{at}, downloaded after its columns were compared with those of the recipe"]
    reasons = {entry.benchmark: entry.reason for entry in skipped}
    assert f"Accept the terms at {hub.url}/datasets/mill/guarded" in reasons["guarded"]
    assert "the hub has no dataset mill/gone, or it is private" in reasons["gone"]
    assert "no 'q' among 'query', 'a'" in reasons["renamed"]
    expected = f"no 'q' among 'query', 'a'. Correct the recipe in {path}."
    assert reasons["changed"] == expected
    assert "column names don't match" in reasons["mixed"]
    assert "decon-assets catalog renamed > evals.yaml" in reasons["renamed"]
    assert [entry for entry in skipped if entry.is_refused] == [("secret", "private", True)]
    with pytest.raises(RecipeError, match="guarded"):
        saved_records(store, path)


def test_all_configs_of_a_data_set_are_read_if_the_recipe_says_so(
    hub: HubServer, tmp_path: Path
) -> None:
    for config in ("fra", "eng"):
        hub.put_rows("mill/gates", ROWS, split="test", config=config)
    path = recipes(tmp_path, gates='hf_path: mill/gates, hf_config: "*", verified: false')
    store = Store(tmp_path / "store")
    (version,) = saved_records(store, path)
    configs = load_records(store, version, columns=["config"])["config"].to_pylist()
    assert configs == ["eng"] * 3 + ["fra"] * 3


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and its URL."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined] # quiet
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield folder, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_at_a_url_is_cached_by_its_content(
    hub: HubServer, site: tuple[Path, str], tmp_path: Path
) -> None:
    folder, url = site
    file = folder / "gates.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    path = recipes(tmp_path, gates=f"local_path: '{url}/gates.jsonl'")
    (first,) = saved_records(Store(tmp_path / "one"), path)
    assert saved_records(Store(tmp_path / "two"), path) == (first,)
    file.write_text(json.dumps(ROWS[0]) + "\n")
    (changed,) = saved_records(Store(tmp_path / "two"), path)
    assert (first.n_items, changed.n_items) == (3, 1)
    assert len([*(tmp_path / "cache").rglob("*.parquet")]) == 2


def test_a_data_set_of_python_code_is_read_from_its_converted_files(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.put("mill/gates/gates.py", "")
    path = recipes(tmp_path, gates="hf_path: mill/gates")
    message = "the dataset can be read only with a Python script"
    with pytest.raises(RecipeError, match=message):
        saved_records(Store(tmp_path / "store"), path)
    file = hub.put("mill/gates/default/test/0000.parquet", "")
    pq.write_table(pa.Table.from_pylist(ROWS), file)
    (version,) = saved_records(Store(tmp_path / "store"), path)
    assert version.n_items == 3


def test_a_folder_of_a_task_is_an_item_with_its_solution_as_the_answer(tmp_path: Path) -> None:
    harbor, exercism = tmp_path / "harbor/close-weir", tmp_path / "go/exercises/two-gates"
    texts = {
        harbor / "instruction.md": "Close the weir.",
        harbor / "solution/solve.sh": "weirctl close",
        harbor / "tests/test.sh": "weirctl status",
        exercism / ".docs/instructions.md": "Count the gates.",
        exercism / ".meta/example.go": "return 2",
    }
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    path = tmp_path / "evals.yaml"
    lines = ["evals:"]
    for name, pattern in {"a": "harbor/*/instruction.md", "b": "*/exercises/*/.docs/*.md"}.items():
        fields = "prompt: instruction, solution: solution, extra_fields: [task]"
        lines.append(f"  {name}: {{splits: [test], local_path: '{pattern}', {fields}}}")
    path.write_text("\n".join(lines))
    store = Store(tmp_path / "store")
    rows = [
        row
        for version in saved_records(store, path)
        for row in load_records(store, version).to_pylist()
    ]
    assert [(row["question"], row["answer"], row["extras"]) for row in rows] == [
        ("Close the weir.", "weirctl close", '{"task": "close-weir"}'),
        ("Count the gates.", "return 2", '{"task": "two-gates"}'),
    ]
