"""Section 3: where clusters start, how they grow, and where the scan goes on."""

import pytest

from decon_core.config.policy import Policy
from tests.oracle.decon import Cluster, Entry, Index, Tokens, expand, sampled_clusters
from tests.oracle.worlds import SAMPLING, entry, five_grams, noise, run, world

ONE_GRAM = run(100, 5)
TWENTY_FOUR = run(100, 24)  # 20 n-grams


def clusters(document: Tokens, *entries: Entry, policy: Policy = SAMPLING) -> list[Cluster]:
    return list(sampled_clusters(five_grams(document), world(*entries, policy=policy)))


def grown(document: Tokens, seed: int, index: Index) -> dict[int, Cluster]:
    grams = five_grams(document)
    return {
        cluster.number: cluster
        for cluster in expand(grams, seed, index.postings[grams[seed]], index).clusters
    }


def test_after_a_miss_the_scan_looks_ten_positions_on() -> None:
    def is_met(at: int) -> bool:
        document = noise(at) + ONE_GRAM + noise(40 - at, 2_000_000)
        return bool(clusters(document, entry(ONE_GRAM)))

    # positions looked at, as long as nothing is met
    assert {*filter(is_met, range(31))} == {0, 10, 20, 30}


def test_the_step_is_the_policy_s() -> None:
    document = noise(6) + ONE_GRAM + noise(20, 2_000_000)
    stepping_by = {
        m: bool(
            clusters(
                document,
                entry(ONE_GRAM),
                policy=Policy(sampling="reference", sample_every_m_tokens=m),
            )
        )
        for m in (1, 2, 3, 4, 5, 6, 7)
    }
    assert stepping_by == {1: True, 2: True, 3: True, 4: False, 5: False, 6: True, 7: False}


def test_after_a_hit_the_scan_goes_on_behind_the_right_walk() -> None:
    """The hit at 0 has its 11th miss at 11, so the scan resumes at 12, then 22, 32, 42."""
    other = run(500, 5)
    for at in range(5, 45):
        document = ONE_GRAM + noise(at - 5) + other + noise(20, 2_000_000)
        numbers = [cluster.number for cluster in clusters(document, entry(ONE_GRAM), entry(other))]
        assert numbers == ([0, 1] if at in {12, 22, 32, 42} else [0]), at


def test_a_right_walk_that_reaches_the_end_ends_the_scan() -> None:
    document = TWENTY_FOUR
    assert [(c.start, c.end) for c in clusters(document, entry(TWENTY_FOUR))] == [(0, 19)]


def hot_world() -> tuple[list[Entry], Tokens, Policy]:
    """5 of 8 records begin with the same n-gram; the limit is max(1, 2 * floor(sqrt(8))) = 4."""
    hot = run(0, 5)
    holders = [entry(hot + run(100 * (i + 1), 10)) for i in range(5)]
    others = [entry(run(5000, 5)), entry(run(6000, 5))]  # and the stranger: N = 8
    return holders + others, hot, Policy(sampling="reference", hot_ngram_records=1)


def test_a_hot_ngram_starts_no_cluster() -> None:
    entries, hot, policy = hot_world()
    assert clusters(hot + noise(20), *entries, policy=policy) == []
    cool = Policy(sampling="reference", hot_ngram_records=5)
    assert len(clusters(hot + noise(20), *entries, policy=cool)) == 5


def test_after_a_hot_ngram_the_scan_looks_one_position_on() -> None:
    entries, hot, policy = hot_world()
    for at in range(5, 35):
        document = hot + noise(at - 5) + run(5000, 5) + noise(20, 2_000_000)
        # 0 is hot, 1 is a miss, then 11, 21, 31
        expected = [5] if at in {11, 21, 31} else []
        assert [c.number for c in clusters(document, *entries, policy=policy)] == expected, at


def test_a_hot_ngram_counts_during_expansion() -> None:
    entries, hot, policy = hot_world()
    document = entries[2].question + noise(20)  # 15 tokens, 11 n-grams: hot at 0, others 1 to 10
    (cluster,) = clusters(document, *entries, policy=policy)  # grown at position 1
    assert cluster == Cluster(2, frozenset(five_grams(entries[2].question)), 0, 10)
    assert hot in cluster.matched


def test_expansion_goes_left_to_the_very_first_position() -> None:
    index = world(entry(TWENTY_FOUR), policy=SAMPLING)
    document = TWENTY_FOUR + noise(30)
    for seed in range(20):
        cluster = grown(document, seed, index)[0]
        assert (cluster.start, cluster.end) == (0, 19)
        assert cluster.matched == frozenset(five_grams(TWENTY_FOUR))


def test_expansion_goes_right_to_the_very_last_position() -> None:
    index = world(entry(TWENTY_FOUR), policy=SAMPLING)
    document = noise(30) + TWENTY_FOUR
    cluster = grown(document, 35, index)[0]
    assert (cluster.start, cluster.end) == (30, 49)


def test_a_sampled_hit_in_the_middle_finds_the_whole_question() -> None:
    document = noise(3) + TWENTY_FOUR + noise(20, 2_000_000)
    # looked at: 0, then 10 = the question's n-gram 7
    (cluster,) = clusters(document, entry(TWENTY_FOUR))
    assert (cluster.start, cluster.end, len(cluster.matched)) == (3, 22, 20)


@pytest.mark.parametrize(("n_inserted", "end"), [(6, 21), (7, 5)])
def test_ten_misses_are_bridged_and_eleven_are_not(n_inserted: int, end: int) -> None:
    """10 tokens, an insert, 10 tokens: n-grams at 0..5 and 10+k..15+k, so 4 + k misses between."""
    question = run(100, 20)
    document = question[:10] + noise(n_inserted) + question[10:] + noise(20, 2_000_000)
    index = world(entry(question), policy=SAMPLING)
    cluster = grown(document, 0, index)[0]
    assert (cluster.start, cluster.end) == (0, end)
    # k = 6: 6 + 6 of 16 n-grams; k = 7: the 11th miss at position 16 comes first
    assert len(cluster.matched) == (12 if n_inserted == 6 else 6)


@pytest.mark.parametrize(("n_inserted", "start"), [(6, 0), (7, 17)])
def test_misses_count_the_same_to_the_left(n_inserted: int, start: int) -> None:
    question = run(100, 20)
    document = question[:10] + noise(n_inserted) + question[10:] + noise(20, 2_000_000)
    seed = len(question[:10]) + n_inserted  # the first n-gram of the second half
    cluster = grown(document, seed, world(entry(question), policy=SAMPLING))[0]
    assert cluster.start == start


def test_a_new_ngram_resets_the_misses() -> None:
    """n-gram 0 at 0, n-gram 1 at 7, n-gram 5 at 14: six misses, a new one, six misses."""
    q = run(100, 10)
    document = q[:5] + noise(2) + q[1:6] + noise(2, 2_000_000) + q[5:] + noise(20, 3_000_000)
    cluster = grown(document, 0, world(entry(q), policy=SAMPLING))[0]
    assert cluster == Cluster(0, frozenset({q[:5], q[1:6], q[5:]}), 0, 14)


def test_a_repeated_ngram_resets_nothing_but_moves_the_boundary() -> None:
    """n-gram 0 at 0 and again at 7, n-gram 5 at 14: misses 6 + 5 = 11 at position 12."""
    q = run(100, 10)
    document = q[:5] + noise(2) + q[:5] + noise(2, 2_000_000) + q[5:] + noise(20, 3_000_000)
    cluster = grown(document, 0, world(entry(q), policy=SAMPLING))[0]
    assert cluster == Cluster(0, frozenset({q[:5]}), 0, 7)


def test_a_repeated_ngram_moves_the_left_boundary_too() -> None:
    """The seed, n-gram 5, at 14; again at 7 after 6 misses; n-gram 0 at 0, out of reach."""
    q = run(100, 10)
    document = q[:5] + noise(2) + q[5:] + noise(2, 2_000_000) + q[5:] + noise(20, 3_000_000)
    cluster = grown(document, 14, world(entry(q), policy=SAMPLING))[0]
    assert cluster == Cluster(0, frozenset({q[5:]}), 7, 14)


def test_a_repeated_ngram_is_no_miss() -> None:
    """n-gram 0 at 0, 5 and 10 with 4 misses between neighbours, then n-gram 1: 8 misses in all."""
    q = run(100, 10)
    document = q[:5] * 3 + q[5:] + noise(20, 3_000_000)
    # 0, 5 and 10 hold n-gram 0; 11 to 15 hold n-grams 1 to 5; misses at 1-4 and 6-9: eight
    cluster = grown(document, 0, world(entry(q), policy=SAMPLING))[0]
    assert (cluster.start, cluster.end, len(cluster.matched)) == (0, 15, 6)
    # a fourth round makes it 12 misses, the 11th at 13, before the new n-gram at 16
    document = q[:5] * 4 + q[5:] + noise(20, 3_000_000)
    cluster = grown(document, 0, world(entry(q), policy=SAMPLING))[0]
    assert (cluster.start, cluster.end, len(cluster.matched)) == (0, 10, 1)


def test_the_right_walk_starts_with_a_clean_slate() -> None:
    """11 misses to the left cost the record nothing to the right; what was matched left stays."""
    q = run(100, 20)
    document = q[:5] + noise(5) + q[5:10] + noise(5, 2_000_000) + q[10:15] + noise(20, 3_000_000)
    # n-grams 0, 5, 10 at positions 0, 10, 20, with 9 misses between neighbours
    cluster = grown(document, 10, world(entry(q), policy=SAMPLING))[0]
    assert cluster == Cluster(0, frozenset({q[:5], q[5:10], q[10:15]}), 0, 20)
    # and where the left walk ends with 11 misses
    far = noise(12, 4_000_000) + q[5:10] + noise(5, 2_000_000) + q[10:15] + noise(20, 3_000_000)
    cluster = grown(far, 12, world(entry(q), policy=SAMPLING))[0]
    assert (cluster.start, cluster.end) == (12, 22)


def test_an_ngram_matched_on_the_left_is_a_repeat_on_the_right() -> None:
    q = run(100, 20)
    # n-gram 0 at 0, n-gram 5 (the seed) at 7, n-gram 0 again at 14, n-gram 10 at 21
    document = (
        q[:5] + noise(2) + q[5:10] + noise(2, 2_000_000)
        + q[:5] + noise(2, 3_000_000) + q[10:15] + noise(20, 4_000_000)
    )  # fmt: skip
    # right walk: 6 misses, a repeat at 14, 5 more misses: the 11th at 19, before 21
    cluster = grown(document, 7, world(entry(q), policy=SAMPLING))[0]
    assert cluster == Cluster(0, frozenset({q[:5], q[5:10]}), 0, 14)


def test_only_records_that_hold_the_seed_are_followed() -> None:
    shared, a, b = run(0, 5), run(100, 5), run(200, 5)
    index = world(entry(shared + a), entry(b + run(300, 5)), policy=SAMPLING)
    document = shared + a + b + run(300, 5) + noise(20)
    assert set(grown(document, 0, index)) == {0}


def test_every_record_keeps_its_own_matches_and_boundaries() -> None:
    shared, a, b = run(0, 5), run(100, 5), run(200, 5)
    index = world(entry(shared + a), entry(b + shared), policy=SAMPLING)
    document = b + shared + a + noise(20)  # b at 0, shared at 5, a at 10
    both = grown(document, 5, index)
    assert (both[0].start, both[0].end) == (5, 10)
    assert (both[1].start, both[1].end) == (0, 5)
    assert len(both[0].matched) == len(both[1].matched) == 6


def test_a_record_that_left_does_not_come_back() -> None:
    shared, a, b = run(0, 5), run(100, 30), run(200, 5)
    long_lived, short_lived = entry(shared + a), entry(shared + b)
    document = shared + a + b + noise(20)  # 30 n-grams of the first keep the walk alive
    both = grown(document, 0, world(long_lived, short_lived, policy=SAMPLING))
    assert both[0].end == 30
    assert both[1] == Cluster(1, frozenset({shared}), 0, 0)  # though b stands at 35


def test_an_indexed_ngram_of_other_records_is_a_miss() -> None:
    q, other = run(100, 20), run(500, 11)  # 10 + 11 tokens: misses 4 + 11 = 15 either way
    document = q[:10] + other[:7] + q[10:] + noise(20)
    cluster = grown(document, 0, world(entry(q), entry(other), policy=SAMPLING))[0]
    assert (cluster.start, cluster.end) == (0, 5)  # 4 + 7 = 11 misses, 3 of them indexed


def test_a_question_shorter_than_an_ngram_is_never_met() -> None:
    document = run(100, 4) * 5
    assert clusters(document, entry(run(100, 4))) == []
