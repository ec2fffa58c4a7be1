"""Where test items go: as many as asked for, where they may, of no batch more than allowed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.errors import ConfigError
from decon_core.features.blends.insert import insert, stream_room
from decon_core.features.blends.settings import Contamination

NAMED = {"benchmarks": ("a",)}


def room_of(n_tokens, free=None, replaced=()):
    sizes = np.array(n_tokens, np.int64)
    is_free = np.ones(sizes.size, np.bool_) if free is None else np.array(free, np.bool_)
    return stream_room(sizes, is_free, [np.array(replaced, np.int64)])


def inside(n_tokens, stretch):
    """Plain: the documents that begin in a part of the tokens."""
    low, high = (share * sum(n_tokens) for share in stretch)
    return [at for at in range(len(n_tokens)) if low <= sum(n_tokens[:at]) < high]


def capacities(n_tokens, free, contamination):
    """Plain: how many documents of each batch may go."""
    found = {}
    for start in range(0, len(n_tokens), contamination.batch_documents):
        own = range(start, min(start + contamination.batch_documents, len(n_tokens)))
        most = math.floor(contamination.most_per_batch * len(own))
        allowed = [
            at for at in inside(n_tokens, contamination.token_range) if at in own and free[at]
        ]
        found[start] = min(most, len(allowed))
    return found


CONTAMINATIONS = st.builds(
    Contamination,
    benchmarks=st.just(("a",)),
    form=st.sampled_from(["full", "source", "apart", "apart_in_batch"]),
    schedule=st.sampled_from(["early", "middle", "late", "uniform"]),
    window=st.sampled_from([None, (0.0, 1.0), (0.25, 0.5)]),
    copies=st.integers(1, 3),
    most_per_batch=st.sampled_from([0.05, 0.25, 0.5, 1.0]),
    batch_documents=st.integers(2, 12),
)
STREAMS = st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=80)


@given(STREAMS, CONTAMINATIONS, st.integers(1, 4))
def test_copies_are_placed_within_all_limits_or_refused_when_there_is_no_room(
    stream, contamination, n_items
):
    n_tokens, free = map(list, zip(*stream, strict=True))
    n_parts = 2 if contamination.form.startswith("apart") else 1
    sizes = np.arange(n_items * n_parts).reshape(n_items, n_parts) + 3
    room = capacities(n_tokens, free, contamination)
    n = n_items * contamination.copies
    if contamination.form == "apart_in_batch":
        has_room = sum(one // 2 for one in room.values()) >= n
    elif contamination.form == "apart":
        has_room = sum(min(one, n) for one in room.values()) >= 2 * n
    else:
        has_room = sum(room.values()) >= n
    if not has_room:
        with pytest.raises(ConfigError, match="must be replaced, but only"):
            insert(room_of(n_tokens, free), contamination, sizes, "name")
        return
    found = insert(room_of(n_tokens, free), contamination, sizes, "name")

    texts = sorted(zip(found.item.tolist(), found.part.tolist(), found.copy.tolist(), strict=True))
    assert texts == sorted(
        (item, part, copy)
        for item in range(n_items)
        for part in range(n_parts)
        for copy in range(contamination.copies)
    )
    places = found.place.tolist()
    assert places == sorted(set(places)) == found.replaced.tolist()
    assert all(free[place] for place in places)
    assert set(places) <= set(inside(n_tokens, contamination.token_range))
    batches = [
        place // contamination.batch_documents * contamination.batch_documents for place in places
    ]
    for start in set(batches):
        assert batches.count(start) <= room[start]
    where = {}
    for item, part, copy, batch in zip(
        found.item.tolist(), found.part.tolist(), found.copy.tolist(), batches, strict=True
    ):
        where.setdefault((item, copy), {})[part] = batch
    if contamination.form == "apart":
        assert all(one[0] != one[1] for one in where.values())
    if contamination.form == "apart_in_batch":
        assert all(one[0] == one[1] for one in where.values())
    if contamination.is_front_loaded:  # of no batch more than is needed, and none left out before
        unit = 2 if contamination.form == "apart_in_batch" else 1
        most = n if contamination.form == "apart" else len(n_tokens)
        needed, open_batches = len(places) // unit, []
        for start, one in room.items():
            if needed > 0:
                open_batches.append(start)
                needed -= min(one, most) // unit
        assert set(batches) <= set(open_batches)


@given(
    st.lists(st.integers(1, 40), min_size=30, max_size=120),
    st.sampled_from([0.01, 0.1, 0.3, 0.75]),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.sampled_from([(0.0, 1.0), (0.5, 1.0), (0.2, 0.6)]),
)
def test_a_ratio_is_a_share_of_the_tokens_of_its_stretch_and_the_total_stays(
    n_tokens, ratio, items, window
):
    contamination = Contamination(benchmarks=("a",), ratio=ratio, window=window, batch_documents=16)
    stretch = inside(n_tokens, window)
    wanted = ratio * sum(n_tokens[at] for at in stretch)
    largest = max(n_tokens)
    try:
        found = insert(room_of(n_tokens), contamination, np.array(items)[:, None], "name")
    except ConfigError:
        # A share that is less than half of whatever comes first, or of the smallest item.
        assert wanted < max(largest, max(items))
        return
    gone = sum(n_tokens[at] for at in found.replaced.tolist())
    come = sum(items[at] for at in found.item.tolist())
    assert abs(gone - wanted) <= largest / 2
    assert abs(come - gone) <= max(items) / 2
    assert set(found.place.tolist()) <= set(found.replaced.tolist()) <= set(stretch)
    counts = np.bincount(found.item, minlength=len(items))
    assert counts.max() - counts.min() <= 1  # one cycle after the other


def test_a_swap_goes_round_the_items_and_takes_one_document_for_each_text():
    contamination = Contamination(
        **NAMED, swap=500, window=(0.0, 1.0), most_per_batch=0.1, batch_documents=100
    )
    room = room_of([50] * 10_000)
    found = insert(room, contamination, np.full((125, 1), 40), "name")
    assert found.replaced.size == found.place.size == 500
    assert np.bincount(found.item).tolist() == [4] * 125
    assert np.bincount(found.place // 100, minlength=100).max() <= 10


def test_an_item_takes_the_place_of_the_document_of_its_batch_that_is_nearest_in_length():
    contamination = Contamination(
        **NAMED, copies=1, window=(0.0, 1.0), most_per_batch=0.5, batch_documents=8
    )
    n_tokens = [900, 41, 700, 10, 500, 300, 101, 800]
    found = insert(room_of(n_tokens), contamination, np.array([[40], [100]]), "name")
    assert {
        n_tokens[place]: item
        for place, item in zip(found.place.tolist(), found.item.tolist(), strict=True)
    } == {41: 0, 101: 1}


def test_two_contaminations_share_what_a_batch_may_lose():
    contamination = Contamination(
        **NAMED, copies=1, window=(0.0, 1.0), most_per_batch=0.1, batch_documents=100
    )
    n_tokens = [5] * 200
    first = insert(room_of(n_tokens), contamination, np.full((12, 1), 5), "first")
    room = room_of(n_tokens, replaced=first.replaced)
    second = insert(room, contamination, np.full((8, 1), 5), "second")
    assert not set(first.replaced.tolist()) & set(second.replaced.tolist())
    both = np.concatenate([first.replaced, second.replaced])
    assert np.bincount(both // 100).tolist() == [10, 10]
    room = room_of(n_tokens, replaced=both)
    with pytest.raises(ConfigError, match=r"1 documents must be replaced, but only 0 may be"):
        insert(room, contamination, np.full((1, 1), 5), "third")


def test_a_refusal_says_by_how_much_there_is_no_room():
    contamination = Contamination(**NAMED, copies=100, schedule="late", batch_documents=512)
    refusal = r"1,000 documents must be replaced, but only 508 may be: .* in each, 25 documents"
    with pytest.raises(ConfigError, match=refusal):
        insert(room_of([100] * 100_000), contamination, np.full((10, 1), 5), "name")


def test_documents_without_tokens_do_not_go_for_a_ratio():
    n_tokens = [0, 10] * 100
    contamination = Contamination(**NAMED, ratio=0.1, window=(0.0, 1.0))
    found = insert(room_of(n_tokens), contamination, np.array([[10]]), "name")
    assert {n_tokens[place] for place in found.replaced.tolist()} == {10}
    assert found.replaced.size == 10


def test_items_that_are_longer_than_all_that_goes_are_refused():
    contamination = Contamination(**NAMED, ratio=0.01, window=(0.0, 1.0))
    with pytest.raises(ConfigError, match=r"shortest item has 5,000"):
        insert(room_of([10] * 1000), contamination, np.array([[5000]]), "name")


def test_more_copies_than_anybody_has_room_for_are_refused_before_they_are_numbered():
    contamination = Contamination(**NAMED, copies=10**15, window=(0.0, 1.0))
    with pytest.raises(ConfigError, match="must be replaced, but only"):
        insert(room_of([10] * 1000), contamination, np.array([[5]]), "name")
