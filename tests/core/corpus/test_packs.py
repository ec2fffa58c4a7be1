"""Shards found and packed: packs never change their members."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.sources import PackLimits, Source
from decon_core.corpus.packs import Pack, Shard, find_shards, plan_packs
from decon_core.errors import CorpusError
from decon_core.storage.paths import Stamp, parse_path

TEXT = Source(name="web", path="*", text="text", id="id")


def write(folder, name, text):
    (folder / name).write_text(text)


def test_a_source_comes_back_from_json_as_it_was():
    pairs = Source(name="pairs", path="*", text=("prompt", "chosen", "rejected"))
    sources = [pairs, Source(name="chat", path="*", messages="m", roles=("user",)), TEXT]
    for source in sources:
        pack = Pack(name="p-0000", source=source, shards=())
        assert Pack.from_json(json.loads(json.dumps(pack.to_json()))) == pack
        assert hash(pack.source) == hash(source)


def test_the_shard_s_fingerprint_depends_on_roles_and_on_all_fields(tmp_path):
    write(tmp_path, "a.jsonl", '{"messages": [], "a": "", "b": ""}\n')
    sources = [
        Source(name="web", path="a.jsonl", messages="messages"),
        Source(name="web", path="a.jsonl", messages="messages", roles=("user",)),
        Source(name="web", path="a.jsonl", text="a"),
        Source(name="web", path="a.jsonl", text=("a", "b")),
        Source(name="web", path="a.jsonl", text=("b", "a")),
        Source(name="web", path="a.jsonl"),
        Source(name="web", path="a.jsonl", layout="openai_chat"),
        Source(name="web", path="a.jsonl", text="a", ignore=("*",)),
    ]
    found = [find_shards(source, folder=tmp_path, known={})[0].fingerprint for source in sources]
    assert len(set(found)) == len(found)


def test_text_that_is_ignored_needs_no_other_scan(tmp_path):
    write(tmp_path, "a.jsonl", '{"a": "", "b": ""}\n')
    sources = [
        Source(name="web", path="a.jsonl", text="a"),
        Source(name="web", path="a.jsonl", text=("a",), ignore=("b",)),
    ]
    found = [find_shards(source, folder=tmp_path, known={})[0].fingerprint for source in sources]
    assert found[0] == found[1]


def test_the_same_bytes_under_a_compressed_name_are_another_shard(tmp_path):
    for name in ("a.jsonl", "b.jsonl.gz"):
        (tmp_path / name).write_bytes(b'{"text": "not packed"}\n')
    source = Source(name="web", path="*.jsonl*", text="text")
    plain, misnamed = find_shards(source, folder=tmp_path, known={})
    assert plain.content == misnamed.content
    assert plain.fingerprint != misnamed.fingerprint


def test_a_glob_that_finds_nothing_or_a_strange_format_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match=r"no shard that matches.*delete its \[\[corpus.source"):
        find_shards(TEXT, folder=tmp_path / "nowhere", known={})
    write(tmp_path, "a.docx", "x")
    with pytest.raises(CorpusError, match=r"only .*a\.docx \(no format of shards\)"):
        find_shards(TEXT, folder=tmp_path, known={})


def test_the_same_text_read_in_another_way_is_another_shard(tmp_path):
    write(tmp_path, "a.jsonl", '{"text": "a", "body": "b"}\n')
    (one,) = find_shards(TEXT, folder=tmp_path, known={})
    (two,) = find_shards(Source(name="web", path="*", text="body"), folder=tmp_path, known={})
    assert one.content == two.content
    assert one.fingerprint != two.fingerprint


ONE = PackLimits(pack_shards=1)
TWO = PackLimits(pack_shards=2)


def shards(tmp_path, *names):
    for name in names:
        write(tmp_path, f"{name}.jsonl", json.dumps({"text": name}) + "\n")
    return find_shards(TEXT, folder=tmp_path, known={})


def members(packs: list[Pack]) -> dict[str, list[str]]:
    return {pack.name: [shard.name for shard in pack.shards] for pack in packs}


def test_packs_never_change_their_members(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "b", "c", "d"), existing=[], packing=TWO)
    assert members(first) == {"web-0000": ["b.jsonl", "c.jsonl"], "web-0001": ["d.jsonl"]}
    # "a" sorts first, and still does not move the others
    second, gone = plan_packs(TEXT, shards(tmp_path, "a", "e", "f"), existing=first, packing=TWO)
    assert not gone
    assert members(second[:2]) == members(first)
    assert members(second[2:]) == {"web-0002": ["a.jsonl", "e.jsonl"], "web-0003": ["f.jsonl"]}


def test_a_pack_that_lost_a_member_goes_and_its_number_is_not_used_again(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "a", "b", "c", "d"), existing=[], packing=TWO)
    (tmp_path / "d.jsonl").unlink()
    second, gone = plan_packs(TEXT, shards(tmp_path), existing=first, packing=TWO)
    assert [pack.name for pack in gone] == ["web-0001"]
    assert members(second) == {"web-0000": ["a.jsonl", "b.jsonl"], "web-0002": ["c.jsonl"]}
    assert Pack.from_json(json.loads(json.dumps(second[0].to_json()))) == second[0]


def test_a_renamed_shard_keeps_its_place_in_its_pack_and_its_scan_results(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "a", "b", "c"), existing=[], packing=TWO)
    (tmp_path / "a.jsonl").rename(tmp_path / "z.jsonl")
    second, gone = plan_packs(TEXT, shards(tmp_path, "d"), existing=first, packing=TWO)
    assert not gone
    assert members(second) == {
        "web-0000": ["z.jsonl", "b.jsonl"],
        "web-0001": ["c.jsonl"],
        "web-0002": ["d.jsonl"],
    }
    assert contents(second[:2]) == contents(first)
    assert second[0].shards[0].path == str(tmp_path / "z.jsonl")


def test_a_name_taken_over_by_another_content_is_no_rename(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "a", "b"), existing=[], packing=ONE)
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    second, gone = plan_packs(TEXT, shards(tmp_path), existing=first, packing=ONE)
    assert [pack.name for pack in gone] == ["web-0001"]
    assert members(second) == {"web-0000": ["b.jsonl"]}


def test_of_files_with_one_content_each_pack_keeps_the_one_it_had(tmp_path):
    for name in ("a", "b"):
        write(tmp_path, f"{name}.jsonl", '{"text": "twice"}\n')
    first, _ = plan_packs(TEXT, shards(tmp_path), existing=[], packing=ONE)
    write(tmp_path, "0.jsonl", '{"text": "twice"}\n')
    (tmp_path / "a.jsonl").rename(tmp_path / "c.jsonl")
    second, gone = plan_packs(TEXT, shards(tmp_path), existing=first, packing=ONE)
    assert not gone
    assert members(second) == {
        "web-0000": ["0.jsonl"],
        "web-0001": ["b.jsonl"],
        "web-0002": ["c.jsonl"],
    }


def test_packs_stay_when_their_source_is_found_by_another_pattern(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "a"), existing=[], packing=TWO)
    wider = replace(TEXT, path="*.json*")
    found = find_shards(wider, folder=tmp_path, known={})
    second, gone = plan_packs(wider, found, existing=first, packing=TWO)
    assert not gone
    assert [pack.source for pack in second] == [wider]


@pytest.mark.parametrize(
    ("sizes", "packing", "expected"),
    [
        ([4, 4, 4], PackLimits(pack_bytes=8), [2, 1]),
        ([9, 1, 1], PackLimits(pack_bytes=8), [1, 2]),
        ([1, 9, 1], PackLimits(pack_bytes=8), [1, 1, 1]),
        ([1, 1, 1, 7], PackLimits(pack_bytes=8, pack_shards=2), [2, 2]),
        ([1, 1, 8], PackLimits(pack_shards=5), [3]),
        ([], PackLimits(pack_bytes=8), []),
    ],
)
def test_a_pack_is_closed_before_it_would_pass_a_limit(sizes, packing, expected):
    packs, _ = plan_packs(TEXT, made_up(sizes), existing=[], packing=packing)
    assert [len(pack.shards) for pack in packs] == expected


def made_up(sizes: list[int], names: list[str] | None = None, kinds: list[str] | None = None):
    """Shards that are nowhere, of so many bytes each."""
    return [
        Shard(
            source="web",
            name=names[at] if names else f"{at:03}",
            path=f"/{names[at] if names else at}",
            n_bytes=size,
            modified_ns=0,
            content=kinds[at] if kinds else str(at),
            fingerprint=kinds[at] if kinds else str(at),
        )
        for at, size in enumerate(sizes)
    ]


def contents(packs: list[Pack]) -> list[list[str]]:
    return [[shard.fingerprint for shard in pack.shards] for pack in packs]


corpora = st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from("123"), min_size=1)
packings = st.builds(
    PackLimits,
    pack_shards=st.none() | st.integers(1, 4),
    pack_bytes=st.none() | st.integers(1, 12),
)


def corpus_of(named: dict[str, str], order: random.Random) -> list[Shard]:
    names = sorted(named)
    order.shuffle(names)
    return made_up([ord(n) % 5 + 1 for n in names], names, [named[n] for n in names])


@given(corpora, corpora, packings, st.randoms(), st.randoms())
def test_prop_additions_and_the_order_of_listing_change_no_pack(named, more, packing, one, other):
    first, _ = plan_packs(TEXT, corpus_of(named, one), existing=[], packing=packing)
    grown = corpus_of(more | named, other)
    second, gone = plan_packs(TEXT, grown, existing=reversed(first), packing=packing)
    assert not gone
    assert second[: len(first)] == first
    again, _ = plan_packs(TEXT, corpus_of(more | named, one), existing=first, packing=packing)
    assert again == second
    assert sorted(s.name for pack in second for s in pack.shards) == sorted(more | named)


@given(corpora, corpora, packings, st.randoms())
def test_prop_packs_go_only_when_content_is_lost_and_hold_every_shard_once(
    before, after, packing, order
):
    first, _ = plan_packs(TEXT, corpus_of(before, order), existing=[], packing=packing)
    today = corpus_of(after, order)
    second, gone = plan_packs(TEXT, today, existing=first, packing=packing)
    assert sorted(s.name for pack in second for s in pack.shards) == sorted(after)
    kept = {pack.name: pack for pack in second}
    for old in first:
        assert (old.name in kept) != (old in gone)
        if old.name in kept:
            assert contents([kept[old.name]]) == contents([old])
    for old in gone:
        wanted = Counter(s.fingerprint for s in old.shards)
        used = [s for pack in second if pack.name in contents_by_name(first) for s in pack.shards]
        free = Counter(after.values()) - Counter(s.fingerprint for s in used)
        assert wanted - free, f"{old.name} could have stayed"


def contents_by_name(packs: list[Pack]) -> dict[str, list[str]]:
    return {pack.name: [shard.fingerprint for shard in pack.shards] for pack in packs}


@given(corpora, packings, st.permutations("abcdefghij"), st.randoms())
def test_prop_when_all_names_change_every_pack_stays(named, packing, names, order):
    first, _ = plan_packs(TEXT, corpus_of(named, order), existing=[], packing=packing)
    moved = dict(zip(names, named.values(), strict=False))
    second, gone = plan_packs(TEXT, corpus_of(moved, order), existing=first, packing=packing)
    assert not gone
    assert contents(second) == contents(first)


def test_only_a_strong_tag_stands_for_the_content_of_a_remote_file():
    web, hub = parse_path("https://a.org/s.jsonl"), parse_path("hf://datasets/a/b/s.jsonl")
    strong = Stamp(3, 0, "abc")
    assert strong.content_at(web) == Stamp(3, 9, "abc").content_at(web)
    others = (Stamp(4, 0, "abc"), web), (Stamp(3, 0, "abd"), web), (strong, hub)
    others += ((strong, parse_path("https://a.org/t.jsonl")),)
    contents = {stamp.content_at(path) for stamp, path in others}
    assert len(contents - {"", strong.content_at(web)}) == len(others)
    assert strong.content_at(hub) == strong.content_at(parse_path("hf://datasets/a/b/t.jsonl"))
    assert not strong.content_at(Path("s.jsonl"))
    assert not Stamp(3, 0, "").content_at(web)
    assert not Stamp(3, 0, 'W/"abc').content_at(web)
