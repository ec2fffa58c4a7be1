"""Whatever lies at a path is read or named, and each folder is entered once."""

import os
import socket
from glob import glob
from uuid import uuid4

import pytest

from decon_core.storage.listing import list_path, list_pattern
from decon_core.storage.paths import parse_path


@pytest.fixture
def folder(tmp_path):
    """A folder of a corpus, beside which others may lie."""
    path = tmp_path / "corpus"
    path.mkdir()
    return path


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def names_of(listing):
    start = f"{listing.base}/"
    return [name.removeprefix(start) for name, _ in listing.files]


def skipped_in(listing):
    start = f"{listing.base}/"
    return {one.path.removeprefix(start): (one.why, one.is_on_purpose) for one in listing.skipped}


def test_a_folder_behind_a_link_is_read_under_the_name_of_the_link(folder):
    write(folder.parent, "outside/a.jsonl", "outside/deep/b.jsonl")
    (folder / "link").symlink_to(folder.parent / "outside")
    assert names_of(list_path(folder)) == ["link/a.jsonl", "link/deep/b.jsonl"]


def test_links_in_a_circle_end_and_a_folder_keeps_its_own_name(folder):
    write(folder, "b/x.jsonl")
    (folder / "a").symlink_to(folder / "b")
    (folder / "b" / "up").symlink_to(folder)
    (folder / "b" / "self").symlink_to("self")
    listing = list_path(folder)
    assert names_of(listing) == ["b/x.jsonl"]
    assert skipped_in(listing) == {
        "a/": (f"the same folder as {folder}/b", True),
        "b/up/": (f"the same folder as {folder}", True),
        "b/self": ("a broken link", False),
    }


def test_what_cannot_be_read_is_named_and_never_opened(folder):
    write(folder, "a.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "gone.jsonl").symlink_to("nowhere")
    (folder / "null.jsonl").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(folder / "s"))
        listing = list_path(folder)
    assert names_of(listing) == ["a.jsonl"]
    assert skipped_in(listing) == {
        "gone.jsonl": ("a broken link", False),
        "null.jsonl": ("a device", False),
        "pipe.jsonl": ("a fifo", False),
        "s": ("a socket", False),
    }


def test_names_that_are_set_aside(folder):
    write(folder, "_SUCCESS", ".git/config", "README.md", "state.json", "cache-1f.arrow", "a.arrow")
    listing = list_path(folder)
    assert names_of(listing) == ["a.arrow"]
    hidden, metadata = "its name begins with _ or .", "metadata of a dataset"
    assert skipped_in(listing) == {
        "_SUCCESS": (hidden, True),
        ".git/": (hidden, True),
        "README.md": (metadata, True),
        "state.json": (metadata, True),
        "cache-1f.arrow": ("a cache of the Hugging Face datasets library", True),
    }
    sizes = {skipped.path: skipped.n_bytes for skipped in listing.skipped}
    assert sizes == {path: 0 if path.endswith("/") else 1 for path in sizes}
    assert names_of(list_pattern(folder, ("_*",))) == ["_SUCCESS"]
    assert names_of(list_pattern(folder, ("state.json",))) == ["state.json"]
    assert names_of(list_pattern(folder, ("cache-*.arrow",))) == ["cache-1f.arrow"]


def test_beside_a_pattern_lies_what_it_does_not_match(folder):
    write(folder, "a.jsonl", "b.csv", "deep/c.jsonl")
    (folder / "x.jsonl").mkdir()
    (folder / "lost").symlink_to("nowhere")
    listing = list_pattern(folder, ("*.jsonl",))
    assert names_of(listing) == ["a.jsonl"]
    assert {skipped.path: skipped.n_bytes for skipped in listing.skipped}[f"{folder}/b.csv"] == 1
    assert skipped_in(listing) == {
        "b.csv": ("not matched by the pattern", True),
        "deep/": ("a folder that the pattern does not enter", True),
        "lost": ("a broken link", True),
        "x.jsonl/": ("a folder that the pattern does not enter", False),
    }
    listing = list_pattern(folder, ("**", "*.jsonl"))
    assert names_of(listing) == ["a.jsonl", "deep/c.jsonl"]
    assert skipped_in(listing) == {
        "b.csv": ("not matched by the pattern", True),
        "lost": ("a broken link", False),  # perhaps to a folder
    }


def test_a_file_is_listed_alone_whatever_its_name(folder):
    write(folder, "a[1].jsonl", "a1.jsonl", "b.jsonl")
    assert names_of(list_path(folder / "a[1].jsonl")) == ["a[1].jsonl"]
    assert list_path(folder / "a[1].jsonl").skipped == []
    assert names_of(list_path(folder / "a[[]1].jsonl")) == ["a[1].jsonl"]
    assert names_of(list_path(folder / "c.jsonl")) == []


def test_a_folder_that_is_left_out_is_not_named(folder):
    write(folder, "a.jsonl", "out/found.parquet")
    listing = list_path(folder, without=[folder / "out"])
    assert (names_of(listing), listing.skipped) == (["a.jsonl"], [])


def test_the_output_of_a_scan_is_set_aside(folder):
    write(folder, "a.jsonl", "found/ledger.jsonl", "found/.store/packs/corpus-0000.json")
    aside = {"found/": ("the output of a scan", True)}
    for pattern in (("**",), ("**", "*.jsonl")):
        listing = list_pattern(folder, pattern)
        assert (names_of(listing), skipped_in(listing)) == (["a.jsonl"], aside)
    assert names_of(list_path(folder / "found")) == ["ledger.jsonl"]  # asked for


def test_the_output_of_a_scan_behind_a_url_is_set_aside_unless_it_is_asked_for():
    base = parse_path(f"memory://{uuid4().hex}")
    written = ("ledger.jsonl", "skipped.jsonl", "matches.parquet", "visibility.parquet")
    for name in ("a.jsonl", "b/ledger.jsonl", *(f"found/{name}" for name in written)):
        file = parse_path(f"{base}/{name}")
        file.file_system.pipe_file(file.key, b"x")
    for path in (base, parse_path(f"{base}/**/*.jsonl")):
        listing = list_path(path)
        assert [name.removeprefix(f"{base}/") for name, _ in listing.files] == [
            "a.jsonl",
            "b/ledger.jsonl",
        ]
        reasons = {(skipped.why, skipped.is_on_purpose) for skipped in listing.skipped}
        assert reasons == {("the output of a scan", True)}
    assert len(list_path(parse_path(f"{base}/found")).files) == len(written)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every folder")
def test_a_folder_that_cannot_be_opened_is_named(folder):
    write(folder, "closed/a.jsonl")
    (folder / "closed").chmod(0)
    assert skipped_in(list_path(folder)) == {
        "closed/": ("cannot be opened (Permission denied)", False)
    }


@pytest.mark.parametrize(
    "pattern",
    ["*", "**", "**/*", "**/*.jsonl", "*/a.jsonl", "**/b/*.jsonl", "b/**/a.*", "?/[ab].jsonl",
     "**/**/a.jsonl", "[!a]/**/*.jsonl"],
)  # fmt: skip
def test_a_pattern_matches_what_it_matches_in_python(folder, pattern):
    write(
        folder, *(f"{d}{f}" for d in ("", "a/", "b/", "b/c/", "b/b/") for f in ("a.jsonl", "b.x"))
    )
    expected = glob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207 - the oracle
    files = sorted({name for name in expected if (folder / name).is_file()})
    assert sorted(names_of(list_pattern(folder, tuple(pattern.split("/"))))) == files
