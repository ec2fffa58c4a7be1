"""Products behind a URL: both sides are the same after a pull and a push, and never half there."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.errors import InputError
from decon_core.storage.drafts import remove
from decon_core.storage.mirror import Mirror, files_in, is_kept, is_unchanging, rank
from decon_core.storage.paths import list_files, parse_path
from tests.uncompiled import fewer


@pytest.fixture
def kept():
    return parse_path(f"memory://{uuid4().hex}/products")


@pytest.fixture
def machine(tmp_path, kept):
    return Mirror(tmp_path / "here", kept)


@pytest.fixture
def other(tmp_path, kept):
    return Mirror(tmp_path / "elsewhere", kept)


def write(mirror, **contents):
    """Files by name; `__` stands for a slash, and `_json` for an ending."""
    for name, content in contents.items():
        put(mirror, name.replace("__", "/"), content)


def put(mirror, name, content):
    path = mirror.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(".draft")
    draft.write_text(content)
    draft.replace(path)


def here(mirror):
    return {name: (mirror.work / name).read_text() for name in files_in(mirror.work)}


def there(kept):
    return {name: (kept / name).read_text() for name in list_files(kept) if is_kept(name)}


def test_another_machine_gets_all_that_one_pushed(machine, other, kept):
    write(machine, packs__web="1", scan_results__s__a="2", report__page="3")
    machine.push()
    other.pull()
    assert here(other) == here(machine) == there(kept)
    assert here(other) == {"packs/web": "1", "scan_results/s/a": "2", "report/page": "3"}


def test_work_in_progress_and_what_is_made_again_stay_here(machine, kept):
    write(machine, drafts__x="1", search__s__x="2", scan_results__s__ledger="3")
    put(machine, "scan_results/s/.a.tmp", "4")
    machine.push()
    assert there(kept) == {"scan_results/s/ledger": "3"}


def test_what_one_machine_removed_or_changed_is_so_on_the_other(machine, other, kept):
    write(machine, packs__web="1", packs__chat="1", scan_results__s__a="2")
    machine.push()
    other.pull()
    write(machine, packs__web="one")
    remove(machine.work / "packs/chat")
    machine.push()
    write(other, packs__new="mine")
    other.pull()
    assert here(other) == {"packs/web": "one", "packs/new": "mine", "scan_results/s/a": "2"}
    other.push()
    assert there(kept) == here(other)


def test_machines_that_push_at_once_lose_nothing_that_either_made(machine, other, kept):
    machine.pull()
    other.pull()
    write(machine, scan_results__s__a="1")
    write(other, scan_results__s__b="2")
    machine.push()
    other.push()
    assert there(kept) == {"scan_results/s/a": "1", "scan_results/s/b": "2"}
    machine.pull()
    other.pull()
    assert here(machine) == here(other) == there(kept)


def test_of_a_pointer_that_two_wrote_the_last_one_stands(machine, other, kept):
    put(machine, "records/b/current.json", "old")
    machine.push()
    other.pull()
    put(machine, "records/b/current.json", "one")
    put(other, "records/b/current.json", "two")
    machine.push()
    other.push()
    machine.pull()
    assert here(machine) == {"records/b/current.json": "two"}


def test_a_url_that_is_empty_is_no_order_to_remove_everything(machine, kept):
    write(machine, scan_results__s__a="1")
    machine.push()
    kept.file_system.rm(kept.key, recursive=True)
    machine.pull()
    assert here(machine) == {"scan_results/s/a": "1"}
    machine.push()
    assert there(kept) == here(machine)


def empty(folder):
    """As `rm -rf folder/*` does: what begins with a dot stays."""
    for path in folder.glob("[!.]*"):
        remove(path)


def test_a_folder_that_was_emptied_but_for_its_note_takes_nothing_away_from_others(
    machine, other, kept
):
    world(machine, "1", ["p0", "p1"])
    machine.push()
    other.pull()
    before = here(other)
    empty(machine.work)
    write(machine, report__page="made before anything was fetched")
    machine.push()
    other.pull()
    assert here(other).items() >= before.items()
    machine.pull()
    assert here(machine) == here(other) == there(kept)


@pytest.mark.parametrize("name", ["scan_results", "records", "idf", "index", "common", "draws"])
def test_what_nothing_ever_removes_comes_back_where_it_lacks(machine, other, kept, name):
    world(machine, "1", ["p0", "p1"])
    put(machine, f"{name}/x/f.parquet", "made once")
    put(machine, f"{name}/x/current.json", "f")
    machine.push()
    before = here(machine)
    remove(machine.work / name)
    machine.push()
    assert there(kept) == before
    machine.pull()
    assert here(machine) == before


@pytest.mark.parametrize("is_emptied", [True, False], ids=["all", "most"])
def test_a_url_that_lost_most_is_refused_and_either_answer_settles_it(
    machine, other, kept, is_emptied
):
    world(machine, "1", ["p0", "p1"])
    machine.push()
    other.pull()
    before = here(machine)
    left = {"idf/1.arrow": "1"} if is_emptied else {"idf/1.arrow": "1", "packs/p0.json": "1"}
    for name in before.keys() - left.keys():
        kept.file_system.rm_file(f"{kept.key}/{name}")
    for mirror in (machine, other):
        with pytest.raises(InputError, match="after the last synchronization are missing"):
            mirror.pull()
        assert here(mirror) == before
    remove(other.work)
    other.pull()
    assert here(other) == left
    remove(machine.work / ".mirror.json")
    machine.pull()
    machine.push()
    assert there(kept) == here(machine) == before


def test_packs_that_were_retired_and_mixtures_that_were_rewritten_go_however_many_they_are(
    machine, other, kept
):
    packs = [f"p{number}" for number in range(20)]
    for pack in packs:
        put(machine, f"packs/{pack}.json", "1")
        put(machine, f"mixtures/clean/{pack}/a.jsonl", "1")
        put(machine, f"manifests/mixtures/clean/{pack}/manifest.json", "1")
    machine.push()
    other.pull()
    for pack in packs[:15]:
        put(machine, f"packs/retired/{pack}.json", "1")
        remove(machine.work / "packs" / f"{pack}.json")
        remove(machine.work / "mixtures/clean" / pack)
        remove(machine.work / "manifests/mixtures/clean" / pack)
    machine.push()
    other.pull()
    assert here(other) == here(machine) == there(kept)
    assert len(here(other)) == 15 + 3 * 5
    put(machine, "manifests/blends/b/manifest.json", "1")
    for number in range(50):
        put(machine, f"blends/b/{number}.jsonl", "1")
    machine.push()
    other.pull()
    remove(machine.work / "blends/b")
    put(machine, "manifests/blends/b/manifest.json", "2")
    put(machine, "blends/b/all.parquet", "2")
    machine.push()
    other.pull()
    assert here(other) == here(machine) == there(kept)
    assert "blends/b/0.jsonl" not in here(other)


def test_a_folder_that_was_kept_elsewhere_before_is_kept_here_as_a_whole(machine, tmp_path):
    write(machine, scan_results__s__a="1")
    machine.push()
    moved = Mirror(machine.work, parse_path(f"memory://{uuid4().hex}"))
    moved.pull()
    moved.push()
    assert there(moved.kept) == {"scan_results/s/a": "1"}


def test_without_its_note_a_machine_takes_what_is_there(machine, other, kept):
    put(machine, "packs/web-0.json", "same")
    put(machine, "packs/web-1.json", "here")
    machine.push()
    (machine.work / ".mirror.json").unlink()
    put(other, "packs/web-1.json", "over there")
    other.push()
    machine.pull()
    assert here(machine) == {"packs/web-0.json": "same", "packs/web-1.json": "over there"}


# What breaks off ----------------------------------------------------------------------------------


class CutError(OSError):
    """The network, when it goes away."""


@pytest.fixture
def cut_after(monkeypatch):
    """A store that takes so many orders and then no more; nothing arrives in part."""
    left = [10**9]

    def limited(order):
        def take(*arguments, **options):
            if left[0] <= 0:
                raise CutError("the network is away")
            left[0] -= 1
            return order(*arguments, **options)

        return take

    kind = fsspec.get_filesystem_class("memory")
    for name in ("put_file", "rm_file", "get_file"):
        monkeypatch.setattr(kind, name, limited(getattr(kind, name)))

    def set_left(n):
        left[0] = n

    return set_left


def world(mirror, version, packs):
    """A store as the pipeline leaves it: everything says which version it is of."""
    for pack in packs:
        put(mirror, f"packs/{pack}.json", version)
        put(mirror, f"scan_results/s{version}/{pack}/t.parquet", version)
        put(mirror, f"scan_results/s{version}/{pack}/ledger.json", version)
        for file in ("a.jsonl", "b.jsonl"):
            put(mirror, f"mixtures/clean/{pack}/{file}", version)
        put(mirror, f"manifests/mixtures/clean/{pack}/manifest.json", version)
    put(mirror, "mixtures/clean/README.md", json.dumps(sorted(packs)))
    put(mirror, f"idf/{version}.arrow", version)
    put(mirror, "idf/current.json", version)
    put(mirror, "report/contamination.duckdb", version)
    put(mirror, "report/report.html", version)


def require_consistent(files):
    """Nothing is there before what it needs."""
    for name in files:
        folder, _, file = name.rpartition("/")
        if file == "ledger.json":
            assert f"{folder}/t.parquet" in files
        if file == "manifest.json":
            for part in ("a.jsonl", "b.jsonl"):
                assert files[f"{folder.removeprefix('manifests/')}/{part}"] == files[name]
        if file == "README.md":
            for pack in json.loads(files[name]):
                assert f"manifests/{folder}/{pack}/manifest.json" in files
    if "idf/current.json" in files:
        assert f"idf/{files['idf/current.json']}.arrow" in files
    if "report/report.html" in files:
        assert files["report/report.html"] == files["report/contamination.duckdb"]


@pytest.mark.parametrize(
    ("is_whole", "first"), [(True, None), (False, "1")], ids=["object store", "file server"]
)
def test_wherever_a_push_breaks_off_the_url_is_sound_and_the_next_push_completes_it(
    tmp_path, monkeypatch, cut_after, first, is_whole
):
    schemes = {"memory"} if is_whole else set()
    monkeypatch.setattr("decon_core.storage.mirror.ATOMIC_UPLOADS", schemes)
    n = 0
    while True:
        fsspec.get_filesystem_class("memory").store.clear()  # it looks through all that it has
        mirror = Mirror(tmp_path / str(n), parse_path(f"memory://{uuid4().hex}"))
        if first:
            world(mirror, first, ["p0", "p1"])
            mirror.push()
            for name in ("packs/p0.json", "mixtures/clean/p0", "manifests/mixtures/clean/p0"):
                remove(mirror.work / name)
        world(mirror, "2", ["p1", "p2"])
        cut_after(n)
        is_through = False
        with suppress(CutError):
            mirror.push()
            is_through = True
        cut_after(10**9)
        require_consistent(there(mirror.kept))
        second = Mirror(tmp_path / f"{n} elsewhere", mirror.kept)
        second.pull()
        assert here(second) == there(mirror.kept)
        before = here(mirror)
        mirror.pull()
        assert here(mirror) == before
        mirror.push()
        assert there(mirror.kept) == before
        second.pull()
        assert here(second) == before
        if is_through:
            break
        n += 1
    assert n > 10


def test_wherever_a_pull_breaks_off_the_folder_is_sound_and_the_next_pull_completes_it(
    tmp_path, cut_after
):
    source = Mirror(tmp_path / "source", parse_path(f"memory://{uuid4().hex}"))
    world(source, "1", ["p0", "p1"])
    source.push()
    for n in range(10**9):
        mirror = Mirror(tmp_path / str(n), source.kept)
        cut_after(n)
        is_through = False
        with suppress(CutError):
            mirror.pull()
            is_through = True
        cut_after(10**9)
        require_consistent(here(mirror))
        mirror.pull()
        assert here(mirror) == here(source)
        if is_through:
            break
    assert n > 10


# Against the obvious ------------------------------------------------------------------------------

NAMES = (
    "scan_results/s/a",
    "scan_results/s/b",
    "idf/x.arrow",
    "packs/web.json",
    "records/b/current.json",
)
steps = st.lists(
    st.tuples(
        st.sampled_from((0, 1)),
        st.sampled_from(("write", "remove", "sync")),
        st.sampled_from(NAMES),
        st.integers(0, 2),
    ),
    max_size=14,
)


@settings(max_examples=fewer(25))
@given(steps)
def test_prop_two_machines_end_alike_and_keep_what_nobody_removed(orders):
    kept = parse_path(f"memory://{uuid4().hex}")
    made: set[str] = set()
    removed: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        machines = [Mirror(Path(folder) / name, kept) for name in ("one", "two")]
        for which, what, name, value in orders:
            mirror = machines[which]
            if what == "sync":
                mirror.pull()
                mirror.push()
                assert here(mirror) == there(kept)
            elif what == "write":
                put(mirror, name, name if is_unchanging(name) else f"{name} {value}")
                made.add(name)
            elif (mirror.work / name).exists():
                remove(mirror.work / name)
                removed.add(name)
        for mirror in (*machines, *machines):
            mirror.pull()
            mirror.push()
        assert here(machines[0]) == here(machines[1]) == there(kept)
        assert made - removed <= there(kept).keys() <= made


def test_things_appear_behind_what_they_need():
    order = (
        "scan_results/s/f/v.parquet",
        "scan_results/s/f/ledger.json",
        "records/b/current.json",
        "manifests/mixtures/m/p/manifest.json",
        "mixtures/m/README.md",
        "report/contamination.duckdb",
        "report/report.html",
    )
    assert [rank(name) for name in order] == sorted({rank(name) for name in order})
    assert rank("manifests/mixtures/m/p/removed.parquet") == rank("blends/b/part.jsonl") == 0
