"""What was found of many shards at once is what was found of each."""

from dataclasses import replace

import pytest

from decon_core.decisions import match_reader
from decon_core.decisions.match_reader import MatchReader
from decon_core.scan.scanner import scan_packs


@pytest.fixture
def seen(bench, make_words):
    """Two packs and a third of another source; one shard is clean, two hold the same bytes."""
    items = {
        name: [(make_words((name, n), 30), make_words((name, n, "a"), 8), None) for n in range(3)]
        for name in ("harbor", "ledger")
    }
    versions = bench.prepare(items)

    def leak(name, n):
        question, answer, _ = items[name][n]
        return {"text": f"{make_words((name, n, 'x'), 20)} {question} {answer}"}

    both = [leak("harbor", 0), leak("ledger", 2)]
    pack = bench.pack(
        {
            "a.jsonl": both,
            "b.jsonl": [make_words("clean", 40)],
            "c.jsonl": both,
            "d.jsonl": [make_words("y", 40), leak("harbor", 1), leak("harbor", 0)],
            "e.jsonl": [leak("ledger", 1)],
        }
    )
    shards = pack.shards
    assert shards[0].fingerprint == shards[2].fingerprint
    packs = [
        replace(pack, shards=shards[:2]),
        replace(pack, name="web-0001", shards=shards[2:4]),
        replace(pack, name="zoo-0000", source=replace(pack.source, name="zoo"), shards=shards[4:]),
    ]
    scan_packs(bench.store, packs, versions, bench.policy)
    return MatchReader(bench.store, tuple(versions), bench.policy, bench.scan), packs


@pytest.mark.parametrize("at_once", [1, 2, 3, 200])
@pytest.mark.parametrize("n_benchmarks", [1, 2])
def test_many_shards_at_once_tell_what_each_tells(seen, monkeypatch, at_once, n_benchmarks):
    monkeypatch.setattr(match_reader, "_SHARDS_AT_ONCE", at_once)
    monkeypatch.setattr(match_reader, "_ROWS_AT_ONCE", 1)
    reader, packs = seen
    versions = reader.versions[:n_benchmarks]
    one_by_one = [
        (pack.name, shard.name, entries)
        for pack in packs
        for shard in pack.shards
        if (entries := reader.entries(shard, versions, source=pack.source.name)).num_rows
    ]
    found = [
        (pack.name, shard.name, table)
        for pack, shard, table in reader.iter_entries(packs, versions)
    ]
    assert found == one_by_one
    with_any = ["a.jsonl", "c.jsonl", "d.jsonl"] + ["e.jsonl"] * (n_benchmarks == 2)
    assert [name for _, name, _ in found] == with_any


def test_nothing_is_found_where_nothing_is(seen):
    reader, packs = seen
    clean = replace(packs[0], shards=packs[0].shards[1:])
    assert list(reader.iter_entries([clean], reader.versions)) == []
    assert list(reader.iter_entries([], reader.versions)) == []
