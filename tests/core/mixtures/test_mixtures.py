"""Mixtures of every kind: what is in them, what is not and why, and that nothing is lost."""

import gzip
import json
import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decon_core.config.detector_registry import BUILT_IN
from decon_core.config.mixtures import Leaks, Licenses, Mixture
from decon_core.config.policy import decision_fields
from decon_core.config.sources import Source
from decon_core.corpus.formats import lines as lines_module
from decon_core.corpus.packs import Pack, find_shards
from decon_core.corpus.shard_file import ShardFile
from decon_core.decisions.match_reader import require_scanned
from decon_core.decisions.not_read import UnreadRule
from decon_core.errors import CorpusError, IncompleteError, MissingError
from decon_core.execution import jobs as workers_module
from decon_core.mixtures import build as build_module
from decon_core.mixtures import builder as builder_module
from decon_core.mixtures.build import build_shares, draw_for
from decon_core.mixtures.control import draw_fingerprint
from decon_core.mixtures.verify import verify
from decon_core.storage.checksums import hash_file
from decon_core.storage.drafts import remove
from decon_core.storage.files import read_json, write_json
from tests.core.conftest import DECON
from tests.core.places import CLEAN, CONTROL, Place, build_mixture, faults_in, line_of, manifest_of
from tests.scan_result_files import scan_result_path
from tests.uncompiled import fewer


@pytest.fixture
def leaky(bench, make_words):
    """Three items of two benchmarks; a way to put any rows into shards, scanned."""
    bench.policy = DECON
    items = {
        "a": [(make_words(("a", n), 30), make_words(("a", n, "!"), 8), None) for n in range(2)],
        "b": [(make_words("b", 30), make_words(("b", "!"), 8), None)],
    }
    versions = bench.prepare(items)
    leaks = [f"{question} {answer}" for of_one in items.values() for question, answer, _ in of_one]
    return Place(bench, versions), leaks


def clean_text(make_words, seed, n=40):
    return make_words(("clean", seed), n)


# What goes as a whole -----------------------------------------------------------------------------


def test_only_the_leaks_that_a_mixture_asks_about_leave_it(leaky, make_words):
    place, leaks = leaky
    place.put({"s.jsonl": [clean_text(make_words, 0), *leaks]})
    place.scan()

    def left(**named):
        chosen = Mixture(name="chosen", leaks=Leaks(**named))
        return [row["id"] for row in place.rows(chosen)]

    assert left() == ["s.jsonl-0"]
    assert left(benchmarks=("b",)) == ["s.jsonl-0", "s.jsonl-1", "s.jsonl-2"]
    assert len(left(splits=("train",))) == len(left(detectors=("ratcliff",))) == 4
    assert len(left(least_score=1.0)) == 1


def test_the_leaks_alone_and_all_but_them_are_everything(leaky, make_words):
    place, leaks = leaky
    place.put(
        {"s.jsonl": [clean_text(make_words, 0), leaks[0], clean_text(make_words, 1), leaks[2]]}
    )
    place.scan()
    alone = place.rows(Mixture(name="leaks", take="leaks"))
    everything = place.rows(Mixture(name="everything", take="everything"))
    assert [row["id"] for row in alone] == ["s.jsonl-1", "s.jsonl-3"]
    assert sorted([*alone, *place.rows(CLEAN)], key=lambda row: row["id"]) == everything
    assert [row["why"] for row in place.removed(Mixture(name="leaks", take="leaks"))] == [
        "no leak",
        "no leak",
    ]


def test_licenses_are_looked_at_in_every_row_and_unknown_ones_are_told(leaky, make_words):
    place, leaks = leaky
    rows = [
        {"id": "mit", "text": clean_text(make_words, 0), "meta": {"license": "MIT"}},
        {"id": "gpl", "text": clean_text(make_words, 1), "meta": {"license": "GPL-3.0"}},
        {"id": "none", "text": clean_text(make_words, 2), "meta": {"license": "unknown"}},
        {"id": "odd", "text": clean_text(make_words, 3), "meta": {"license": 5}},
        {"id": "list", "text": clean_text(make_words, 6), "meta": {"license": ["MIT"]}},
        {"id": "leak", "text": leaks[0], "meta": {"license": "GPL-3.0"}},
        {"id": "or", "text": clean_text(make_words, 4), "meta": {"license": "(gpl-3.0 OR MIT)"}},
        {"id": "and", "text": clean_text(make_words, 5), "meta": {"license": "GPL-3.0 AND MIT"}},
    ]
    place.put({"s.jsonl": rows})
    place.scan()
    strict = Mixture(name="m", licenses=Licenses(fields=("meta.license",), allow=("mit",)))
    assert [row["id"] for row in place.rows(strict)] == ["mit", "list", "or"]
    either = replace(strict.licenses, fields=("id", "meta.license"), allow=("odd", "gpl-*"))
    assert [row["id"] for row in place.rows(replace(strict, licenses=either))] == ["odd"]
    other = replace(either, fields=("meta.x", "meta.license"), allow=("gpl-*",))
    assert [row["id"] for row in place.rows(replace(strict, licenses=other))] == ["gpl", "or"]
    kept = replace(strict, licenses=replace(strict.licenses, unknown="keep"))
    assert [row["id"] for row in place.rows(kept)] == ["mit", "none", "odd", "list", "or"]
    told = [(row["doc_id"], row["why"], row["detail"]) for row in place.removed(kept)]
    assert told == [
        ("gpl", "license", "GPL-3.0"),
        ("leak", "license", "GPL-3.0"),
        ("leak", "leak", None),  # every reason, the first of them counted
        ("and", "license", "GPL-3.0 AND MIT"),
    ]
    assert place.manifest(kept)["totals"]["removed"] == {"license": 3}


def test_of_several_fields_the_first_that_names_a_license_counts(leaky, make_words):
    place, _ = leaky
    texts = [clean_text(make_words, number) for number in range(4)]
    place.put(
        {
            "s.jsonl": [
                {"id": "second", "text": texts[0], "here": "unknown", "there": "MIT"},
                {"id": "first", "text": texts[1], "here": "MIT", "there": "GPL-3.0"},
                {"id": "neither", "text": texts[2], "here": "NOASSERTION", "there": None},
                {"id": "other", "text": texts[3], "there": "GPL-3.0"},
                {"id": "no document, so it has no id", "there": "MIT"},
                b"[1]\n",
            ]
        }
    )
    place.bench.policy = replace(place.bench.policy, unreadable="drop")
    place.scan()
    mixture = Mixture(name="m", licenses=Licenses(fields=("here", "there"), allow=("MIT",)))
    assert [row["id"] for row in place.rows(mixture)] == ["second", "first"]
    told = {row["doc_id"]: row["detail"] for row in place.removed(mixture) if row["doc_id"]}
    assert told == {"neither": "NOASSERTION", "other": "GPL-3.0"}


def test_a_source_that_a_mixture_does_not_take_has_an_empty_share(leaky, make_words):
    place, _ = leaky
    place.put({"s.jsonl": [clean_text(make_words, 0)]})
    other = place.put({"s.jsonl": [clean_text(make_words, 1)]}, name="books")
    place.scan()
    chosen = Mixture(name="m", sources=("books",))
    assert place.build(chosen).counts["n_documents_out"] == 0
    assert place.manifest(chosen)["shards"] == []
    assert place.build(chosen, other).counts["n_documents_out"] == 1


# Spans and turns ----------------------------------------------------------------------------------


def found_in(place, mixture, pack=None):
    """What a scan finds in a mixture."""
    folder = place.build(mixture, pack).folder
    source = replace((pack or place.packs[0]).source, name="again", path="*.jsonl")
    again = Pack(
        name="again-0000",
        source=source,
        shards=tuple(find_shards(source, folder=folder, known={})),
    )
    other = Place(place.bench, place.versions)
    other.packs = [again]
    return [row for row in other.scan().removed(CLEAN) if row["why"] == "leak"]


def test_a_mixture_of_which_something_is_gone_is_built_again(leaky, make_words):
    place, leaks = leaky
    place.put({"s.jsonl": [clean_text(make_words, 0), leaks[0]]})
    place.scan()
    folder = place.build(CLEAN).folder
    manifest = manifest_of(folder)
    paths = [*folder.iterdir(), *manifest.parent.iterdir()]
    files = {path: path.read_bytes() for path in paths}
    removed, shard = manifest.with_name("removed.parquet"), folder / "s.jsonl"
    for path, content in ((removed, None), (manifest, b"[]"), (shard, b""), (manifest, None)):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert not place.builder().is_current(CLEAN, place.packs[0])
        assert not place.build(CLEAN).was_there
        assert {path: path.read_bytes() for path in files} == files
    place.build(CONTROL)
    (drawn,) = (place.bench.store.root / "draws").iterdir()
    drawn.write_bytes(drawn.read_bytes()[:50])
    place.build(replace(CONTROL, name="other"))


@pytest.mark.parametrize("mask", ["", " [gone] "])
def test_spans_are_cut_out_and_all_else_of_the_row_stays(leaky, make_words, mask):
    place, leaks = leaky
    before, after = clean_text(make_words, 0), clean_text(make_words, 1)
    value = {"z": [1, 2.50, None], "text": f"{before} {leaks[0]} {after}", "id": "x", "é": "\u2028"}
    untouched = b'{"id":"kept",   "text":"spacing stays"}\n'
    place.put({"s.jsonl": [value, untouched]})
    place.scan()
    cut = Mixture(name="cut", cut="spans", mask=mask)
    row, other = place.rows(cut)
    assert row == {**value, "text": f"{before} {mask} {after}"}
    assert [*row] == [*value]
    assert untouched in (place.build(cut).folder / "s.jsonl").read_bytes()
    assert other["id"] == "kept"
    assert place.build(cut).counts["n_cut"] == 1
    assert found_in(place, cut) == []
    (reason,) = place.removed(cut)
    assert (reason["what"], reason["n_tokens"]) == ("spans", 38 - len(mask.strip(" []").split()))


def test_what_comes_together_once_a_span_is_gone_is_looked_at_again(leaky, make_words):
    place, leaks = leaky
    middle = len(leaks[1]) // 2
    middle = leaks[1].index(" ", middle)
    nested = f"{leaks[1][:middle]} {leaks[0]}{leaks[1][middle:]}"
    place.put({"s.jsonl": [f"{clean_text(make_words, 0)} {nested} {clean_text(make_words, 1)}"]})
    place.scan()
    cut = Mixture(name="cut", cut="spans")
    assert {reason["instance_index"] for reason in place.removed(cut)} >= {0}
    assert found_in(place, cut) == []


def test_a_document_of_which_nothing_is_left_goes_as_a_whole(leaky, make_words):
    place, leaks = leaky
    place.put({"s.jsonl": [leaks[0], clean_text(make_words, 0)]})
    place.scan()
    cut = Mixture(name="cut", cut="spans")
    assert [row["id"] for row in place.rows(cut)] == ["s.jsonl-1"]
    (reason,) = place.removed(cut)
    assert (reason["what"], reason["detail"]) == ("document", "nothing was left of it")


def chat(*turns, **more):
    return {"messages": [{"role": "user", "content": turn} for turn in turns], **more}


CHAT = Source(name="chat", path="chat/*.jsonl", messages="messages", id="id")


def test_a_turn_goes_and_the_others_of_its_conversation_stay(leaky, make_words):
    place, leaks = leaky
    quiet = [clean_text(make_words, n) for n in range(3)]
    rows = [
        chat(quiet[0], leaks[0], quiet[1], id="mixed"),
        chat(leaks[0], id="only"),
        chat(quiet[2], id="clean"),
    ]
    place.put({"s.jsonl": rows}, source=CHAT, name="chat")
    place.scan()
    turns = Mixture(name="turns", cut="turns")
    first, last = place.rows(turns)
    assert first == chat(quiet[0], quiet[1], id="mixed")
    assert last == rows[2]
    assert found_in(place, turns) == []
    told = [(row["doc_id"], row["what"]) for row in place.removed(turns)]
    assert told == [("mixed", "turns"), ("only", "document")]
    spans = Mixture(name="spans", cut="spans", mask="-")
    first, *_ = place.rows(spans)
    assert [turn["content"] for turn in first["messages"]] == quiet[:2]  # nothing is left of a turn


def test_what_is_no_text_of_a_turn_stays_where_it_is(leaky, make_words):
    place, leaks = leaky
    quiet, image = clean_text(make_words, 0), {"type": "image_url", "image_url": {"url": "x"}}
    content = [
        image,
        {"type": "text", "text": quiet, "cache": 1},
        image,
        {"type": "text", "text": f"{leaks[0]} {quiet}", "x": 2},
    ]
    for part in content:
        if part["type"] != "text":
            part = part.setdefault("text", "")  # a reader asks every part for a text
    row = {"id": "parts", "messages": [{"role": "user", "content": content}]}
    place.put({"s.jsonl": [row]}, source=CHAT, name="chat")
    place.scan()
    (left,) = place.rows(Mixture(name="spans", cut="spans", mask="-"))
    (turn,) = left["messages"]
    assert turn["content"] == [*content[:3], {**content[3], "text": f"- {quiet}"}]


def test_a_cut_line_keeps_its_long_numbers_and_its_end(leaky, make_words):
    place, leaks = leaky
    quiet = clean_text(make_words, 0)
    line = (
        f'{{"n": 123456789012345678901234567890, "id": "x", "text": "{quiet} {leaks[0]}"}}\r\n'
    ).encode()
    place.put({"s.jsonl": [b"\xef\xbb\xbf" + line, line.rstrip()]})
    place.scan()
    folder = place.build(Mixture(name="cut", cut="spans")).folder
    kept = line.replace(f"{leaks[0]}".encode(), b"")
    assert (folder / "s.jsonl").read_bytes() == b"\xef\xbb\xbf" + kept + kept.rstrip()


def test_a_field_of_a_pair_is_no_turn_so_the_pair_goes(leaky, make_words):
    place, leaks = leaky
    source = Source(name="pairs", path="pairs/*.jsonl", text=("prompt", "chosen"), id="id")
    row = {"id": "p", "prompt": clean_text(make_words, 0), "chosen": leaks[0]}
    place.put({"s.jsonl": [row]}, source=source, name="pairs")
    place.scan()
    assert place.rows(Mixture(name="turns", cut="turns")) == []
    # A prompt without an answer is no pair.
    assert place.rows(Mixture(name="spans", cut="spans", mask="-")) == []


def test_tables_are_cut_as_lines_are(leaky, make_words):
    place, leaks = leaky
    texts = [clean_text(make_words, 0), f"{clean_text(make_words, 1)} {leaks[0]}", leaks[1]]
    table = pa.table(
        {
            "id": [10, 11, 12],
            "text": texts,
            "meta": [{"n": 1}, {"n": None}, None],
            # Python has neither nanoseconds nor the year 300,000.
            "at": pa.array([1, 1_000_000_001, 3], pa.time64("ns")),
            "on": pa.array([1, 2**62, 3], pa.timestamp("ms")),
            "view": pa.array(["a", "b", None], pa.string_view()),
        },
    )
    source = Source(name="tab", path="tab/*.parquet", text="text", id="id")
    (place.bench.folder / "tab").mkdir()
    pq.write_table(table, place.bench.folder / "tab" / "s.parquet", row_group_size=2)
    place.put({}, source=source, name="tab")
    place.scan()
    cut = Mixture(name="cut", cut="spans", mask="-")
    out = pq.ParquetFile(place.build(cut).folder / "s.parquet")
    left = [texts[0], f"{clean_text(make_words, 1)} -"]
    assert out.read().equals(table[:2].set_column(1, "text", pa.array(left)))
    assert out.schema_arrow == table.schema
    assert [(row["doc_id"], row["what"]) for row in place.removed(cut)] == [
        ("11", "spans"),
        ("12", "document"),
    ]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_texts_in_bytes_are_cut_and_other_bytes_stay(leaky, make_words, kind):
    """Many writers of parquet store strings as bytes."""
    place, leaks = leaky
    texts = [clean_text(make_words, 0), f"{clean_text(make_words, 1)} {leaks[0]}"]
    content = [text.encode() for text in texts]
    inner = [{"body": body, "image": b"\xff\0"} for body in reversed(content)]
    table = pa.table({"text": pa.array(content, kind), "inner": pa.array(inner)})
    (place.bench.folder / "tab").mkdir()
    pq.write_table(table, place.bench.folder / "tab" / "s.parquet")
    place.put({}, source=Source(name="tab", path="tab/*.parquet"), name="tab")
    place.scan()
    cut = Mixture(name="cut", cut="spans", mask="-")
    out = pq.read_table(place.build(cut).folder / "s.parquet")
    assert out.schema == table.schema
    left = [content[0], f"{clean_text(make_words, 1)} -".encode()]
    assert out["text"].to_pylist() == left
    assert out["inner"].to_pylist() == [
        {**inner[0], "body": left[1]},
        {**inner[1], "body": left[0]},
    ]


# One reading --------------------------------------------------------------------------------------


OPEN = Licenses(fields=("meta.license", "license"), allow=("MIT", "CC-*"), unknown="keep")
LOOKED_INTO = [
    Mixture(name="spans", cut="spans", mask="-", licenses=OPEN),
    Mixture(name="turns", cut="turns"),
    Mixture(name="licensed", licenses=OPEN),
    Mixture(name="open-leaks", take="leaks", licenses=OPEN),
    CONTROL,
]


def mixed_lines(make_words, leaks, rng):
    """Lines of every kind: with licenses and without, with leaks and without, and odd ones."""
    first = {"id": "first", "text": f"{clean_text(make_words, 'first')} {leaks[0]}"}
    lines = [b"\xef\xbb\xbf" + line_of({**first, **chat(leaks[1], first["text"])}, "first")]
    middle = leaks[1].index(" ", len(leaks[1]) // 2)
    nested = f"{leaks[1][:middle]} {leaks[0]}{leaks[1][middle:]}"  # takes two rounds
    for number in range(80):
        text = clean_text(make_words, number, rng.randrange(20, 60))
        leaked = [f"{text} {nested}", f"{leaks[2]} {text}", leaks[2], f"{text} {leaks[0]} {text}"]
        value = {"id": f"{number}", "text": rng.choice([text, text, text, *leaked])}
        value |= chat(text, value["text"])
        for name in rng.choice([(), ("meta",), ("license",), ("license", "meta")]):
            license_ = rng.choice(["MIT", "cc-by-4.0", "GPL-3.0", "unknown", None, ["MIT"]])
            value[name] = {"license": license_} if name == "meta" else license_
        lines.append(json.dumps(value).encode() + rng.choice([b"\n", b"\r\n", b"\n\n"]))
    lines += [b"[1]\n", b'{"id": "again", "license": "MIT", "license": "GPL-3.0", "text": "a"}\n']
    return [*lines, line_of({**first, "id": "last", **chat(leaks[1], text)}, "last").rstrip()]


def built_anew(place, mixture):
    """All files of a mixture that is built now, whatever was there."""
    remove(place.bench.store.mixture(mixture.name, place.packs[0].name))
    folder = place.build(mixture).folder
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("source", [None, replace(CHAT, path="chat/*")], ids=["texts", "chats"])
def test_shards_are_opened_once_and_the_size_of_blocks_leaves_no_trace(
    leaky, make_words, monkeypatch, source
):
    place, leaks = leaky
    place.unread = UnreadRule(is_blocking=False)  # the rows have texts and conversations
    place.bench.policy = replace(place.bench.policy, unreadable="drop")
    rng = random.Random(5)
    shards = {name: mixed_lines(make_words, leaks, rng) for name in ("s.jsonl", "t.jsonl.zst")}
    place.put(shards, source=source, name="chat")
    place.scan()
    draw_for(place.builder(), CONTROL, place.packs[0])  # read before anything is written
    head = ShardFile.head
    for mixture in [mixture for mixture in LOOKED_INTO if (mixture.cut == "turns") == bool(source)]:
        opened = []
        with monkeypatch.context() as patched:
            patched.setattr(ShardFile, "head", lambda file: opened.append(file) or head(file))  # noqa: B023 - used in this turn
            at_once = built_anew(place, mixture)
        assert len(opened) == 2
        totals = place.manifest(mixture)["totals"]
        assert totals["n_unreadable_left_out"] >= 2
        assert totals["n_cut"] > 5 or mixture.cut == "documents"
        assert totals["removed"].get("license", 0) > 5 or not mixture.licenses
        for block_bytes in (1, 700, 5000):
            with monkeypatch.context() as patched:
                patched.setattr(lines_module, "PART_BYTES", block_bytes)
                assert built_anew(place, mixture) == at_once


def test_nothing_is_cut_of_a_row_that_goes_for_its_license(leaky, make_words):
    place, leaks = leaky
    rows = [
        {"id": name, "text": f"{clean_text(make_words, name)} {leaks[0]}", "license": name}
        for name in ("MIT", "GPL-3.0")
    ]
    place.put({"s.jsonl": rows})
    place.scan()
    mixture = Mixture(name="m", cut="spans", licenses=Licenses(fields=("license",), deny=("GPL*",)))
    assert [row["id"] for row in place.rows(mixture)] == ["MIT"]
    told = [(row["doc_id"], row["what"], row["why"]) for row in place.removed(mixture)]
    assert told == [
        ("MIT", "spans", "leak"),
        ("GPL-3.0", "document", "license"),
        ("GPL-3.0", "document", "leak"),
    ]
    totals = place.manifest(mixture)["totals"]
    assert (totals["removed"], totals["n_cut"]) == ({"license": 1}, 1)


def test_a_shard_that_changed_since_it_was_scanned_is_not_cut(leaky, make_words):
    place, leaks = leaky
    place.put({"s.jsonl": [clean_text(make_words, 0), f"{clean_text(make_words, 1)} {leaks[0]}"]})
    place.scan()
    path = place.bench.folder / "web" / "s.jsonl"
    for line, found in (
        (b'{"id": "x", "text": "no end', "a line that cannot be parsed"),
        (b'{"id": "x", "other": "field"}', "field missing (text)"),
        (b'{"id": "x", "text": "another one"}', "the file changed since it was registered"),
    ):
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + line + b"\n")
        with pytest.raises(CorpusError) as error:
            place.build(Mixture(name="cut", cut="spans"))
        (problem,) = error.value.problems
        assert found in problem.found
        assert "run the command again" in problem.remedy
        assert not [*place.bench.store.drafts.iterdir()]


def test_a_row_is_cut_however_deeply_its_other_fields_are_nested(leaky, make_words):
    place, leaks = leaky
    text = f"{clean_text(make_words, 0)} {leaks[0]}"
    deep = f'{{"text": "{text}", "n": {"[" * 190 + "]" * 190}}}\n'.encode()
    place.put({"s.jsonl": [deep]})
    place.scan()
    assert place.build(Mixture(name="cut", cut="spans")).counts["n_cut"] == 1


# Attributes for Dolma -----------------------------------------------------------------------------


def dolma_filtered(documents, attributes, name):
    """What Dolma's mixer keeps: rows side by side, by a filter on an attribute."""
    for line, of_line in zip(documents, attributes, strict=True):
        row, told = json.loads(line), json.loads(of_line)
        assert str(row["id"]) == told["id"]
        if not told["attributes"].get(name):
            yield row


def test_attributes_lead_a_mixer_that_reads_them_to_the_same_rows(leaky, make_words):
    place, leaks = leaky
    before = clean_text(make_words, 0)
    rows = [
        {"id": "leak", "text": f"{before} {leaks[0]}", "license": "MIT"},
        {"id": 7, "text": clean_text(make_words, 1), "license": "GPL-3.0"},
        {"id": "clean", "text": clean_text(make_words, 2), "license": "MIT"},
    ]
    place.put({"x/s.jsonl.zst": rows})
    place.scan()
    tags = Mixture(
        name="tags",
        write="attributes",
        licenses=Licenses(fields=("license",), allow=("MIT",)),
    )
    folder = place.build(tags).folder
    told = gzip.decompress((folder / "x" / "s.jsonl.gz").read_bytes()).splitlines()
    kept = [*dolma_filtered([json.dumps(row) for row in rows], told, "tags__leak")]
    assert [row["id"] for row in kept] == [7, "clean"]
    kept = [*dolma_filtered([json.dumps(row) for row in rows], told, "tags__license")]
    assert [row["id"] for row in kept] == ["leak", "clean"]
    (start, stop, score), *_ = json.loads(told[0])["attributes"]["tags__leak"]
    assert (rows[0]["text"][start:stop], score) == (leaks[0][: stop - start], 1.0)
    assert start == len(before) + 1
    assert json.loads(told[1])["attributes"]["tags__license"] == [[0, len(rows[1]["text"]), 1.0]]
    assert faults_in(folder) == []
    assert verify(place.builder(tags), tags).problems == []


def test_attributes_of_two_shards_never_share_a_name(leaky, make_words):
    place, _ = leaky
    rows = [clean_text(make_words, 0)]
    place.put({"s.jsonl": rows, "s.jsonl.zst": rows})
    place.scan()
    with pytest.raises(CorpusError, match="attributes would get the same file name"):
        place.build(Mixture(name="tags", write="attributes"))


def test_attributes_of_a_control_name_what_was_drawn_and_no_leak(leaky, make_words):
    place, leaks = leaky
    place.put({"s.jsonl": [*(clean_text(make_words, n) for n in range(9)), leaks[0]]})
    place.scan()
    tags = replace(CONTROL, name="tags", write="attributes")
    told = gzip.decompress((place.build(tags).folder / "s.jsonl.gz").read_bytes()).splitlines()
    named = [key for line in told for key in json.loads(line)["attributes"]]
    assert named == ["tags__control"]


# Controls -----------------------------------------------------------------------------------------


def test_a_control_loses_as_many_documents_and_tokens_and_keeps_the_leaks(leaky, make_words):
    place, leaks = leaky
    rng = random.Random(1)
    texts = [clean_text(make_words, n, rng.randrange(20, 160)) for n in range(400)]
    for n in range(30):
        texts[rng.randrange(400)] += " " + leaks[n % 3]
    for at in range(2):
        place.put({f"{at}/s.jsonl": texts[at::2]}, name=f"web{at}")
    for pack in place.packs:  # two packs of one source
        object.__setattr__(pack, "source", replace(pack.source, name="web"))
    place.scan()
    for seed in (0, 1):
        control = replace(CONTROL, seed=seed)
        lost = {CLEAN.name: [0, 0], CONTROL.name: [0, 0]}
        for mixture in (CLEAN, control):
            for pack in place.packs:
                totals = build_mixture(place.builder(CLEAN, control), mixture, pack).counts
                lost[mixture.name][0] += totals["n_documents_in"] - totals["n_documents_out"]
                lost[mixture.name][1] += totals["n_tokens_in"] - totals["n_tokens_out"]
        assert lost["control"][0] == lost["clean"][0] >= 25
        assert abs(lost["control"][1] - lost["clean"][1]) <= 0.005 * lost["clean"][1]
    removed = [set(), set()]
    for number, mixture in enumerate((CLEAN, CONTROL)):
        for pack in place.packs:
            removed[number] |= {(pack.name, row["row"]) for row in place.removed(mixture, pack)}
    assert not removed[0] & removed[1]
    (told,) = place.manifest(CONTROL)["control"]
    assert (told["source"], told["n_documents"]) == ("web", told["n_drawn"])


def test_a_control_waits_for_every_pack_of_its_source_and_a_treatment_for_its_own(
    leaky, make_words
):
    place, _ = leaky
    first = place.put({"s.jsonl": [clean_text(make_words, 0)]}, name="web")
    place.scan()
    second = place.put({"s.jsonl": [clean_text(make_words, 1)]}, name="more")
    object.__setattr__(second, "source", replace(second.source, name="web"))
    assert place.build(CLEAN, first).counts["n_documents_out"] == 1
    with pytest.raises(MissingError, match=r"more-0001.*no scan result for a, b"):
        place.build(CONTROL, first)
    with pytest.raises(MissingError, match="not scanned"):
        place.build(Mixture(name="everything", take="everything"), second)


def test_a_control_looks_at_all_of_its_source_once_however_many_packs_that_has(
    leaky, make_words, monkeypatch
):
    place, leaks = leaky
    for at in range(6):
        texts = [clean_text(make_words, (at, n), 20 + n) for n in range(9)]
        pack = place.put({f"{at}/s.jsonl": [*texts, leaks[at % 3]]}, name=f"web{at}")
        object.__setattr__(pack, "source", replace(pack.source, name="web"))
    place.scan()
    looked: list[str] = []
    drawn: list[object] = []

    def looking(sight, packs, versions):
        looked.extend(pack.name for pack in packs)
        require_scanned(sight, packs, versions)

    def drawing(*given):
        drawn.append(given)
        return draw_fingerprint(*given)

    monkeypatch.setattr(build_module, "require_scanned", looking)
    monkeypatch.setattr(builder_module, "draw_fingerprint", drawing)
    builder = place.builder()
    wanted = [(CONTROL, pack) for pack in place.packs]
    counts = [future.result().counts for _, _, future in build_shares(builder, wanted)]
    assert sum(one["n_documents_in"] - one["n_documents_out"] for one in counts) == 6
    assert Counter(looked) == dict.fromkeys((pack.name for pack in place.packs), 2)
    assert len(drawn) <= 2  # of the control as it was declared, and with what it has of another
    assert verify(place.builder(), CONTROL).problems == []
    # What was drawn before is no way round a shard that is to be scanned again.
    gone, asked = place.packs[0], place.packs[5]
    bench = place.bench
    of_gone = bench.scan, gone.shards[0].fingerprint, place.versions[0].fingerprint
    scan_result_path(bench.store, *of_gone).unlink()
    remove(bench.store.mixture(CONTROL.name, asked.name))
    with pytest.raises(MissingError, match=r"web0-0000.*no scan result for a"):
        place.build(CONTROL, asked)


def test_a_shard_that_joins_one_source_leaves_the_control_of_another_as_it_is(leaky, make_words):
    place, leaks = leaky
    texts = [clean_text(make_words, n, 20 + n % 30) for n in range(60)]
    books = place.put({"s.jsonl": [*texts, leaks[0]]}, name="books")
    web = place.put({"s.jsonl": [*texts[::-1], leaks[1]]}, name="web")
    place.scan()
    before = place.manifest(CONTROL, books), place.manifest(CONTROL, web)
    place.packs.remove(web)
    place.put({"t.jsonl": texts[:9]}, name="web")
    builder = place.builder()
    assert builder.is_current(CONTROL, books)
    assert build_mixture(builder, CONTROL, books).was_there  # though nobody has seen the new one
    with pytest.raises(MissingError, match="not scanned"):
        build_mixture(builder, CONTROL, place.packs[-1])
    place.scan()
    assert place.manifest(CONTROL, books) == before[0]
    assert place.manifest(CONTROL, place.packs[-1]) != before[1]
    assert verify(place.builder(), CONTROL).problems == []


def test_shards_of_the_same_bytes_do_not_share_what_is_drawn(leaky, make_words):
    place, leaks = leaky
    quiet = [clean_text(make_words, n, 30 + n % 50) for n in range(200)]
    rows = [text if n % 10 else f"{text} {leaks[n % 3]}" for n, text in enumerate(quiet)]
    rows += [clean_text(make_words, ("long", n), 60 + n % 80) for n in range(100)]
    place.put({"a.jsonl": rows, "b/a.jsonl": rows, "c.jsonl": rows[200:]})
    place.scan()
    totals = [place.manifest(mixture)["totals"] for mixture in (CLEAN, CONTROL)]
    lost = [one["n_tokens_in"] - one["n_tokens_out"] for one in totals]
    assert totals[0]["removed"]["leak"] == totals[1]["removed"]["control"] == 40
    assert abs(lost[0] - lost[1]) <= 0.005 * lost[0]
    assert verify(place.builder(), CONTROL).problems == []
    # An account that says something else of the draw is found out.
    folder = place.build(CONTROL).folder
    manifest = read_json(manifest_of(folder))
    manifest["control"][0]["n_drawn"] += 1
    write_json(manifest_of(folder), manifest)
    (problem,) = verify(place.builder(), CONTROL).problems
    assert "as drawn" in problem.expected


# What blocks, and what is accounted for -----------------------------------------------------------


def test_a_shard_that_is_gone_or_cut_off_blocks_what_needs_it_and_nothing_else(leaky, make_words):
    place, _ = leaky
    packs = [
        place.put({"s.jsonl.zst": [clean_text(make_words, n)]}, name=f"w{n}") for n in range(3)
    ]
    place.scan()
    (place.bench.folder / "w0" / "s.jsonl.zst").unlink()
    path = place.bench.folder / "w1" / "s.jsonl.zst"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises((CorpusError, FileNotFoundError)):
        place.build(CLEAN, packs[0])
    with pytest.raises(CorpusError):
        place.build(CLEAN, packs[1])
    assert place.build(CLEAN, packs[2]).counts["n_documents_out"] == 1
    assert not [*place.bench.store.drafts.iterdir()]


def test_whoever_moves_a_decision_is_not_told_that_all_is_today_s(leaky, make_words):
    place, _ = leaky
    pack = place.put({"s.jsonl": [clean_text(make_words, 0)]})
    policy = replace(place.bench.policy, detectors=BUILT_IN)
    place.bench.policy = policy
    before = place.builder().fingerprint(CLEAN, pack)
    moved = {
        "contamination_score_threshold": 0.7,
        "ratcliff_threshold": 0.6,
        "longest_match_threshold": 0.6,
        "exact_threshold": 0.6,
        "ngram_any_size": 20,
        "unreadable": "drop",
    }
    assert moved.keys() <= {*decision_fields()}
    for name, value in moved.items():
        place.bench.policy = replace(policy, **{name: value})
        assert place.builder().fingerprint(CLEAN, pack) != before


def test_shards_of_one_base_name_in_different_folders_do_not_mix_up(leaky, make_words):
    place, leaks = leaky
    place.put(
        {
            "x/s.jsonl": [clean_text(make_words, 0), leaks[0]],
            "y/s.jsonl": [leaks[1], clean_text(make_words, 1)],
        }
    )
    place.scan()
    assert [row["text"] for row in place.rows(CLEAN, "x/s.jsonl")] == [clean_text(make_words, 0)]
    assert [row["text"] for row in place.rows(CLEAN, "y/s.jsonl")] == [clean_text(make_words, 1)]
    told = [(row["shard"], row["row"]) for row in place.removed(CLEAN)]
    assert told == [("x/s.jsonl", 1), ("y/s.jsonl", 0)]


def test_a_mixture_is_held_to_its_account_by_scanning_it_again(leaky, make_words):
    place, leaks = leaky
    quiet = [clean_text(make_words, n) for n in range(40)]
    texts = [text if n % 9 else f"{text} {leaks[n % 3]}" for n, text in enumerate(quiet)]
    place.put({"s.jsonl": texts[:20], "t.jsonl": texts[20:]})
    place.scan()
    cut, everything = Mixture(name="cut", cut="spans"), Mixture(name="all", take="everything")
    leaky_ones = Mixture(name="leaks", take="leaks")
    builder = place.builder(CLEAN, CONTROL, cut, leaky_ones, everything)
    for mixture, n_leaks in ((CLEAN, 0), (cut, 0), (CONTROL, 5), (leaky_ones, 5), (everything, 5)):
        hold_to_account(place, builder, mixture, n_leaks, leak=leaks[0], clean=quiet[0])


def hold_to_account(place, builder, mixture, n_leaks, *, leak, clean):
    folder = build_mixture(builder, mixture, place.packs[0]).folder
    found = verify(builder, mixture)
    assert found.problems == []
    assert found.n_leaks == n_leaks
    # A row put in by hand, and its bytes entered into the account: only a scan can tell.
    path = folder / "s.jsonl"
    added = line_of(clean if mixture.take == "leaks" else leak, "x")
    path.write_bytes(path.read_bytes() + added)
    manifest = read_json(manifest_of(folder))
    account = manifest["shards"][0]
    account["output"], account["n_bytes"] = hash_file(path), path.stat().st_size
    write_json(manifest_of(folder), manifest)
    said = [problem.found for problem in verify(builder, mixture).problems]
    assert any("documents, " in one for one in said)
    if mixture.take in ("clean", "leaks"):
        assert any("a leak of a test 0" in one or "without a leak" in one for one in said)


def test_a_mixture_that_is_not_there_or_not_of_today_is_no_good_one(leaky, make_words):
    place, _ = leaky
    place.put({"s.jsonl": [clean_text(make_words, 0)]})
    place.scan()
    (problem,) = verify(place.builder(), CLEAN).problems
    assert problem.found == "not built"
    place.build(CLEAN)
    assert verify(place.builder(), CLEAN).problems == []
    place.bench.policy = replace(place.bench.policy, contamination_score_threshold=0.7)
    (problem,) = verify(place.builder(), CLEAN).problems
    assert "other shards, benchmarks or settings" in problem.found


def test_the_same_seed_gives_the_same_bytes_with_one_process_and_with_two(
    leaky, make_words, tmp_path, monkeypatch
):
    monkeypatch.setattr(workers_module, "_BYTES_PER_WORKER", 1)
    place, leaks = leaky
    rows = [
        clean_text(make_words, n) + (f" {leaks[n % 3]}" if n % 7 == 0 else "") for n in range(60)
    ]
    place.put({"s.jsonl": rows[:30], "t.jsonl": rows[30:]})
    place.scan()
    found = []
    for workers in (1, 2):
        for product in ("mixtures", "draws"):
            folder = place.bench.store.root / product
            if folder.exists():
                folder.rename(tmp_path / f"{product}-{workers}")
        files = []
        mixtures = [CLEAN, CONTROL, Mixture(name="cut", cut="spans")]
        wanted = [(mixture, place.packs[0]) for mixture in mixtures]
        for *_, future in build_shares(place.builder(*mixtures), wanted, workers=workers):
            future.result()
        for mixture in mixtures:
            folder = place.bench.store.mixture(mixture.name, place.packs[0].name)
            files.append({path.name: path.read_bytes() for path in folder.iterdir()})
        found.append(files)
    assert found[0] == found[1]


# Mixtures of other benchmarks, of no-answer matches, and by cuts, which read other entries.
SHARING = (
    CLEAN,
    CONTROL,
    Mixture(name="of_a", leaks=Leaks(benchmarks=("a",))),
    Mixture(name="of_b", leaks=Leaks(benchmarks=("b",)), take="leaks"),
    Mixture(name="cut", cut="spans"),
    Mixture(name="everything", take="everything"),
)


@settings(max_examples=fewer(6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(SHARING))
def test_prop_mixtures_that_share_a_builder_are_those_of_a_builder_each(
    leaky, make_words, mixtures
):
    place, leaks = leaky
    if not place.bench.store.mixtures("").exists():
        rows = [clean_text(make_words, n) + (f" {leaks[n % 3]}" * (n % 5 == 0)) for n in range(20)]
        place.put({"s.jsonl": rows[:9], "t.jsonl": rows[9:]})
        place.scan()
    pack, store = place.packs[0], place.bench.store
    found = []
    for at_once in (len(mixtures), 1):
        for start in range(0, len(mixtures), at_once):
            wanted = [(one, pack) for one in mixtures[start : start + at_once]]
            for *_, future in build_shares(place.builder(*SHARING), wanted):
                assert not future.result().was_there
        folders = [store.mixture(mixture.name, pack.name) for mixture in mixtures]
        found.append([{one.name: one.read_bytes() for one in of.iterdir()} for of in folders])
        for folder in folders:
            remove(folder)
    assert found[0] == found[1]


def test_a_shard_of_other_fields_blocks_and_names_them_and_the_setting_that_leaves_them_out(
    leaky, make_words
):
    place, _ = leaky
    turns = [{"role": "user", "content": clean_text(make_words, 0)}]
    lines = [json.dumps({"messages": turns, "n": 1}).encode() + b"\n"] * 2
    place.bench.policy = replace(place.bench.policy, unreadable="drop")
    place.put({"s.jsonl": [clean_text(make_words, 1)], "chat.jsonl": lines})
    place.scan()
    with pytest.raises(IncompleteError) as error:
        place.build(CLEAN)
    (problem,) = error.value.problems
    assert "chat.jsonl" in problem.where
    assert "2 rows, none readable with text = " in problem.found
    assert "messages (messages), n (number)" in problem.found
    assert problem.remedy.startswith('leave out text = "text"')
    assert "[[corpus.source]]" in problem.remedy


# Questions without their answers ------------------------------------------------------------------


@pytest.fixture
def questions(bench, make_words):
    """A question with its answer, one without, both in one document, and neither."""
    bench.policy = DECON
    items = [(make_words(("q", n), 30), make_words(("a", n), 8), None) for n in range(3)]
    place = Place(bench, bench.prepare({"gsm": items}))
    whole, (alone, *_) = f"{items[0][0]} {items[0][1]}", items[1]
    both = f"{items[2][0]} {items[2][1]} {make_words('between', 30)} {items[1][0]}"
    place.put({"s.jsonl": [whole, alone, both, clean_text(make_words, 0)]})
    place.scan()
    return place


QUESTIONS_STAY = Leaks(no_answer="keep")


def reasons(place, mixture):
    return [(row["row"], row["why"], row["instance_index"]) for row in place.removed(mixture)]


def test_a_question_without_its_answer_leaves_a_mixture_and_the_list_says_so(questions):
    assert [row["id"] for row in questions.rows(CLEAN)] == ["s.jsonl-3"]
    assert reasons(questions, CLEAN) == [
        (0, "leak", 0),
        (1, "no answer", 1),
        (2, "leak", 2),
        (2, "no answer", 1),
    ]
    manifest = questions.manifest(CLEAN)
    assert manifest["declared"]["leaks"]["no_answer"] == "remove"
    expected = {"leak": 2, "no answer": 1}
    assert (manifest["totals"]["removed"], manifest["totals"]["found"]) == (expected, expected)
    found = verify(questions.builder(CLEAN), CLEAN)
    assert (found.problems, found.n_leaks, found.n_no_answer) == ([], 0, 0)


def test_questions_without_their_answers_stay_where_a_mixture_asks_for_that(questions):
    kept = Mixture(name="kept", leaks=QUESTIONS_STAY)
    assert [row["id"] for row in questions.rows(kept)] == ["s.jsonl-1", "s.jsonl-3"]
    assert reasons(questions, kept) == [(0, "leak", 0), (2, "leak", 2)]
    found = verify(questions.builder(kept), kept)
    assert (found.problems, found.n_leaks, found.n_no_answer) == ([], 0, 1)


def test_the_two_are_different_mixtures(questions):
    """One that was built before is built again when the setting changes."""
    (pack,) = questions.packs
    removing, keeping = Mixture(name="one"), Mixture(name="one", leaks=QUESTIONS_STAY)
    questions.build(removing)
    builder = questions.builder(keeping)
    assert builder.fingerprint(removing, pack) != builder.fingerprint(keeping, pack)
    assert not builder.is_current(keeping, pack)


@pytest.mark.parametrize(("leaks", "expected"), [(Leaks(), [0, 1, 2]), (QUESTIONS_STAY, [0, 2])])
def test_the_leaks_alone_are_what_the_clean_one_leaves_out(questions, leaks, expected):
    alone = Mixture(name="leaks", take="leaks", leaks=leaks)
    assert [row["id"] for row in questions.rows(alone)] == [f"s.jsonl-{n}" for n in expected]
    found = verify(questions.builder(alone), alone)
    assert (found.problems, found.n_leaks, found.n_no_answer) == ([], 2, len(expected) - 2)
    told = questions.manifest(alone)["totals"]["found"]
    assert told == {"leak": 2} | ({"no answer": 1} if 1 in expected else {})


def test_questions_without_their_answers_are_cut_out_as_leaks_are(questions):
    spans = Mixture(name="spans", cut="spans")
    # Of 0 and 1 nothing is left; of 2 the words between stay.
    assert [row["id"] for row in questions.rows(spans)] == ["s.jsonl-2", "s.jsonl-3"]
    assert {why for _, why, _ in reasons(questions, spans)} == {"leak", "no answer"}
    found = verify(questions.builder(spans), spans)
    assert (found.problems, found.n_leaks, found.n_no_answer) == ([], 0, 0)


def test_a_control_takes_out_as_many_documents_as_leaks_and_questions(questions, make_words):
    del questions.packs[:]
    rows = [clean_text(make_words, n) for n in range(1, 9)]
    questions.put({"more.jsonl": rows})  # beside the shard that is there
    questions.scan()
    removed = questions.removed(CONTROL)
    assert [row["why"] for row in removed] == ["control"] * 3


def test_attributes_tell_questions_without_their_answers_apart(questions):
    told = Mixture(name="told", write="attributes")
    lines = questions.build(told).folder / "s.jsonl.gz"
    rows = map(json.loads, gzip.decompress(lines.read_bytes()).splitlines())
    found = [sorted(row["attributes"]) for row in rows]
    leak, question = "told__leak", "told__no_answer"
    assert found == [[leak], [question], [leak, question], []]


def test_a_card_counts_questions_without_their_answers_apart(questions):
    folder = questions.build(Mixture(name="hub", write="parquet")).folder.parent
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "| any leak | 2 |" in card
    assert "| no answer | 1 |" in card
    assert "| no answer of gsm | 1 |" in card
    assert "leak: 2; no answer: 1" in card
    assert "several detectors or benchmarks" in card


def test_what_a_person_confirmed_and_the_least_score_hold_for_questions_too(questions):
    confirmed = Mixture(name="confirmed", leaks=Leaks(verdicts=("leak",)))
    assert len(questions.rows(confirmed)) == 4
    sure = Mixture(name="sure", leaks=Leaks(least_score=0.9))
    assert reasons(questions, sure) == [(0, "leak", 0), (2, "leak", 2)]
