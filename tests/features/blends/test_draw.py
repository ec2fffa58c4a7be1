"""The order of a blend's documents: fast equals plain, budgets kept, each once in a pass."""

from collections import Counter
from hashlib import sha256
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config import seeding as chance
from decon_core.config.sources import Source
from decon_core.corpus.packs import Shard
from decon_core.errors import ConfigError
from decon_core.features.blends import draw as draw_module
from decon_core.features.blends.draw import Material, draw_stream
from decon_core.features.blends.settings import Phase

_ALL_64 = (1 << 64) - 1


def material(name, shards):
    """A source of shards, each a list of its documents' tokens."""
    held = tuple(
        Shard(
            source=name,
            name=f"{n}.jsonl",
            path="",
            n_bytes=0,
            modified_ns=0,
            content="",
            fingerprint="",
        )
        for n in range(len(shards))
    )
    rows = np.array([row for shard in shards for row in range(len(shard))], np.int64)
    return Material(
        source=Source(name=name, path="*", text="text"),
        shards=held,
        names=tuple(shard.name for shard in held),
        shard=np.repeat(np.arange(len(shards), dtype=np.int32), [len(shard) for shard in shards]),
        row=rows,
        corpus_row=rows,
        n_tokens=np.array([n for shard in shards for n in shard], np.int64),
    )


# Once more, plain ---------------------------------------------------------------------------------


def splitmix(start, place):
    """SplitMix64 as its author wrote it, a number at a time."""
    z = (start + (place + 1) * 0x9E3779B97F4A7C15) & _ALL_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL_64
    return z ^ (z >> 31)


def plain_number(name, place):
    return splitmix(int(sha256(name.encode()).hexdigest()[:16], 16), place)


def plain_shuffled(name, n):
    return sorted(range(n), key=lambda at: plain_number(name, at))


def plain_pass(one, seed, number, share):
    """The documents of a source in one pass; of the last one a sample comes first."""
    name = f"{seed} source {one.source.name}"
    shards = plain_shuffled(f"{name} pass {number}", len(one.shards))
    order = [at for shard in shards for at in range(len(one)) if one.shard[at] == shard]
    if number != int(share) or share == int(share):
        return order
    most = int(min((share - int(share)) * 1.01, 1 - 1e-9) * 2**64)

    def is_sampled(at):
        return plain_number(f"{name} {one.names[one.shard[at]]}", int(one.corpus_row[at])) < most

    return [at for at in order if is_sampled(at)] + [at for at in order if not is_sampled(at)]


class PlainDocuments:
    """The documents of a source, pass after pass."""

    def __init__(self, one, seed, share):
        self.one, self.seed, self.share, self.number, self.left = one, seed, share, -1, []

    def begin(self):
        """The next one drawn is the first of a pass."""
        if len(self.left) < len(self.one):
            self.left = []

    def __next__(self):
        if not self.left:
            self.number += 1
            self.left = plain_pass(self.one, self.seed, self.number, self.share)
        return self.left.pop(0), self.number


def plain_stream(materials, phases, seed):
    """Document by document: source, document, pass."""
    chances = [draw_module._chances(materials, phase) for phase in phases]
    shares = sum(
        draw_module._expected(materials, phase, chance)
        for phase, chance in zip(phases, chances, strict=True)
    )
    left = [
        PlainDocuments(one, seed, float(share))
        for one, share in zip(materials, shares, strict=True)
    ]
    drawn = []
    for number, (phase, chance_of) in enumerate(zip(phases, chances, strict=True)):
        name = f"{seed} phase {number}"
        if phase.is_everything:
            for source in left:
                source.begin()
            labels = [at for at, one in enumerate(materials) for _ in range(len(one))]
            order = [labels[at] for at in plain_shuffled(name, len(labels))]
            drawn += [(at, *next(left[at])) for at in order]
            continue
        edges = [*accumulate(chance_of.tolist())]
        n_documents = n_tokens = 0
        while n_documents != phase.documents and n_tokens < (phase.tokens or 1 << 60):
            fraction = (plain_number(name, n_documents) >> 11) * 2.0**-53
            source = next(
                (at for at, edge in enumerate(edges) if fraction < edge and chance_of[at]),
                max(at for at, one in enumerate(chance_of) if one),
            )
            at, time = next(left[source])
            drawn.append((source, at, time))
            n_documents += 1
            n_tokens += int(materials[source].n_tokens[at])
    return drawn


SHARDS = st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=4)
PHASES = st.lists(
    st.one_of(
        st.just(Phase()),
        st.integers(1, 60).map(lambda n: Phase(tokens=n)),
        st.integers(1, 20).map(lambda n: Phase(documents=n)),
        st.tuples(st.integers(1, 90), st.integers(1, 5)).map(
            lambda pair: Phase(tokens=pair[0], weights=(("a", pair[1]), ("b", 2)))
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(st.tuples(SHARDS, SHARDS), PHASES, st.integers(0, 3), st.sampled_from([1, 3, 1 << 16]))
def test_streams_are_those_of_the_plain_version_however_many_are_drawn_at_once(
    shards, phases, seed, at_once
):
    materials = [material(name, rows) for name, rows in zip("ab", shards, strict=True)]
    is_drawable = {one.source.name for one in materials if len(one)}
    if not is_drawable or any({name for name, _ in one.weights} - is_drawable for one in phases):
        with pytest.raises(ConfigError):
            draw_stream(materials, phases, seed)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw_module, "_AT_ONCE", at_once)
        stream = draw_stream(materials, phases, seed)
    draws = stream.draws
    found = [*zip(draws.source.tolist(), draws.at.tolist(), draws.time.tolist(), strict=True)]
    assert found == plain_stream(materials, phases, seed)
    sizes = [int(materials[source].n_tokens[at]) for source, at, _ in found]
    assert draws.n_tokens.tolist() == sizes
    assert len(set(found)) == len(found)  # nobody twice in one pass
    for number, phase in enumerate(phases):
        first, last = stream.phases[number : number + 2].tolist()
        if phase.tokens:  # reached by the last document, and not before
            assert sum(sizes[first : last - 1]) < phase.tokens <= sum(sizes[first:last])
        elif phase.documents:
            assert last - first == phase.documents
        else:
            assert last - first == sum(map(len, materials))
    assert stream.phases[-1] == len(found)


@given(st.text(max_size=5), st.integers(0, 1 << 40), st.integers(0, 20))
def test_numbers_are_those_of_the_published_generator(name, first, n):
    found = chance.numbers(name, n, first=first).tolist()
    assert found == [plain_number(name, first + at) for at in range(n)]
    assert all(0 <= fraction < 1 for fraction in chance.fractions(name, n))
    assert sorted(chance.shuffled(name, n).tolist()) == [*range(n)]


def test_the_generator_is_the_one_that_others_have():
    # What its reference code prints for the start 1234567.
    numbers = [splitmix(1234567, place) for place in range(3)]
    assert numbers == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_every_document_once_means_once_whatever_was_drawn_before():
    one = material("a", [[1] * 50 for _ in range(4)])
    stream = draw_stream([one], [Phase(documents=70), Phase(), Phase(documents=10), Phase()], 0)
    for phase in (1, 3):
        first, last = stream.phases[phase : phase + 2].tolist()
        assert sorted(stream.draws.at[first:last].tolist()) == [*range(200)]


def test_tokens_come_in_the_declared_shares_though_documents_differ_in_length():
    long, short = material("long", [[400] * 500]), material("short", [[20] * 500])
    phase = Phase(tokens=2_000_000, weights=(("long", 3), ("short", 1)))
    draws = draw_stream([long, short], [phase], 0).draws
    tokens = [int(draws.n_tokens[draws.source == at].sum()) for at in range(2)]
    assert tokens[0] / sum(tokens) == pytest.approx(0.75, abs=0.01)
    times = Counter(draws.time[draws.source == 1].tolist())
    assert set(times) == {*range(max(times) + 1)}  # 50 times through the short ones
    assert max(times) in (49, 50)


def test_a_sample_is_taken_from_all_shards_not_from_the_first():
    one = material("a", [[1] * 100 for _ in range(10)])
    draws = draw_stream([one], [Phase(documents=200)], 0).draws
    by_shard = Counter(one.shard[draws.at].tolist())
    assert set(by_shard) == {*range(10)}
    assert draws.time.max() == 0
    assert np.unique(draws.at).size == 200


def test_another_seed_draws_others_and_the_same_seed_the_same():
    one = material("a", [[1] * 100 for _ in range(4)])
    first, again, other = (
        draw_stream([one], [Phase(documents=50)], seed).draws.at for seed in (0, 0, 1)
    )
    assert first.tolist() == again.tolist() != other.tolist()


def test_what_has_a_weight_and_no_document_is_told_by_name():
    with pytest.raises(ConfigError, match=r"source 'b'.*no token"):
        draw_stream(
            [material("a", [[1]]), material("b", [[]])], [Phase(tokens=5, weights=(("b", 1),))], 0
        )
