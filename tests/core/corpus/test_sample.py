"""A sample of the documents of a shard: who is in it, and what it does not depend on."""

import gzip
import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Pack, shard_at
from decon_core.corpus.sample import Sample, sampled_packs
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.errors import InputError

SOURCE = Source(name="corpus", path="x", text="text", id="id")
SHARES = st.sampled_from(["0.01", "0.5", "0.333", "0.9", "0.0001"])


@pytest.mark.parametrize(("share", "n"), [("0.01", 300), ("0.025", 750), ("0.9999", 29_997)])
def test_every_run_of_rows_has_its_share(share, n):
    sample = Sample.of(Fraction(share))
    is_taken = sample.takes("c", np.arange(30_000))
    assert is_taken.sum() == n
    assert (is_taken.reshape(-1, sample.n_of).sum(axis=1) == sample.n_taken).all()


def test_every_row_is_as_likely_as_any_other():
    rows = np.arange(25)  # two runs of ten, and half of one
    samples = [Sample.of(Fraction("0.3"), seed=seed) for seed in range(2000)]
    n_taken = np.sum([one.takes("c", rows) for one in samples], axis=0)
    assert abs(n_taken / 2000 - 0.3).max() < 4 * (0.3 * 0.7 / 2000) ** 0.5


@settings(max_examples=50)
@given(SHARES, st.integers(0, 3), st.sets(st.integers(0, 5000), max_size=40))
def test_prop_a_row_is_taken_or_not_whichever_others_are_asked_for(share, seed, some):
    sample = Sample.of(Fraction(share), seed=seed)
    rows = np.array(sorted(some), np.int64)
    every = sample.takes("c", np.arange(5001))
    assert sample.takes("c", rows).tolist() == every[rows].tolist()


def test_seeds_shards_and_copies_have_samples_of_their_own():
    rows = np.arange(10_000)
    one = Sample.of(Fraction("0.1"))
    others = [
        Sample.of(Fraction("0.1"), seed=1).takes("c", rows),
        one.takes("d", rows),
        Sample(n_taken=1, n_of=10, copy=1).takes("c", rows),
    ]
    for other in others:
        assert 50 < (one.takes("c", rows) & other).sum() < 150


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "1.5", "0.0000001"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="more than 0 and less than 1"):
        Sample.of(Fraction(share))


def rows_of(n):
    return [{"id": str(row), "text": f"tëxt {row} " * (row % 7 + 1)} for row in range(n)]


@pytest.fixture(params=["s.jsonl", "s.jsonl.gz", "s.parquet"])
def shard(request, tmp_path):
    """A shard of 400 documents; lines also hold blank ones, no JSON, and what is not UTF-8."""
    path = tmp_path / request.param
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows_of(400)), path)
    else:
        lines = [json.dumps(row).encode() for row in rows_of(400)]
        for row in range(0, 400, 9):
            lines[row] = lines[row].replace(b" ", b"\xff ", 2)
        lines[7:7] = [b"", b"{no", b"  "]
        content = b"\n".join(lines)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    pack = Pack(name="p", source=SOURCE, shards=(shard_at(SOURCE, path, tmp_path),))
    (sampled,) = sampled_packs([pack], Sample.of(Fraction("0.2"), seed=5))
    return pack.shards[0], sampled.shards[0]


@pytest.mark.parametrize("block_bytes", [200, 5000, 1 << 22])
def test_a_shard_has_the_same_sample_whatever_the_size_of_its_blocks(shard, block_bytes):
    whole, sampled = shard
    every = [*read_shard(whole, SOURCE)]
    documents = [one for one in every if isinstance(one, Document)]
    taken = sampled.sample.takes(whole.content, np.array([one.row for one in documents]))
    expected = [one for one, is_taken in zip(documents, taken, strict=True) if is_taken]
    batches = [one.read() for one in read_blocks(sampled, SOURCE, block_bytes=block_bytes)]
    texts = [
        batch.text[start:stop].tobytes().decode()
        for batch in batches
        for start, stop in zip(batch.starts, batch.stops, strict=True)
    ]
    assert texts == [one.text for one in expected]
    assert sum(one.n_characters for one in batches) == sum(map(len, texts))
    assert sum(one.n_left_out for one in batches) == len(documents) - len(expected)
    invalid = [one for batch in batches for one in batch.invalid]
    assert invalid == [one.invalid for one in expected if one.invalid]
    unreadable = [one for batch in batches for one in batch.unreadable]
    assert unreadable == [one for one in every if not isinstance(one, Document)]
    assert [*read_shard(sampled, SOURCE)] == sorted(
        [*expected, *unreadable], key=lambda one: one.row
    )


def test_a_sampled_shard_is_another_one_and_copies_differ(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows_of(5)))
    shards = tuple(shard_at(SOURCE, tmp_path / name, tmp_path) for name in ("a.jsonl", "b.jsonl"))
    pack = Pack(name="p", source=SOURCE, shards=shards)
    seeds = [sampled_packs([pack], Sample.of(Fraction("0.2"), seed=seed))[0] for seed in (0, 1)]
    fingerprints = [shard.fingerprint for one in seeds for shard in one.shards]
    assert len({*fingerprints, shards[0].fingerprint}) == 5
    assert shards[0].fingerprint == shards[1].fingerprint
    assert "sample" not in pack.to_json()["shards"][0]
    for one in (pack, *seeds):
        assert Pack.from_json(json.loads(json.dumps(one.to_json()))) == one
