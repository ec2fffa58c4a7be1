"""The compiled engine says what the oracle says, to the last bit."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.detectors.decon import ClusterSearch
from decon_core.index.entries import count_entries, joined
from decon_core.index.joined_index import join, search_from_arrays
from decon_core.index.parts import weigh
from decon_core.index.term_weights import count_members
from decon_core.kernels import gram_runs
from tests.core.detectors import engine
from tests.oracle.decon import Entry, Frequencies, Tokens, build_index, count, detect
from tests.oracle.strategies import documents, entries, policies, worlds
from tests.oracle.worlds import STRANGER, entry, noise, run
from tests.uncompiled import fewer

SLOW = settings(derandomize=True, max_examples=fewer(60))
LESS = settings(derandomize=True, max_examples=fewer(30))
SAMPLINGS = st.sampled_from(["exhaustive", "reference"])


@SLOW
@given(st.data(), policies(), SAMPLINGS)
def test_the_engine_finds_what_the_oracle_finds(
    data: st.DataObject, policy: Policy, sampling: str
) -> None:
    policy = dataclasses.replace(policy, sampling=sampling)
    known = data.draw(entries())
    texts = data.draw(st.lists(documents(known), min_size=1, max_size=3))
    index = build_index(known, policy)
    search = engine.search_for(known, policy)
    assert engine.detect_all(texts, search, policy) == [detect(text, index) for text in texts]


@settings(derandomize=True, max_examples=fewer(200))
@given(
    st.lists(st.integers(4, 16), min_size=1, max_size=3),
    st.integers(0, 36),
    st.integers(0, 60),
    st.integers(3, 5),
    SAMPLINGS,
)
def test_parts_of_answers_are_found_up_to_the_end_of_their_window(
    sizes: list[int], gap: int, before: int, n_again: int, sampling: str
) -> None:
    policy = Policy(sampling=sampling, min_long_answer_window=12)
    question, answers = run(100, 24), [run(100 * at, size) for at, size in enumerate(sizes, 2)]
    known = [entry(question, answer, instance=at) for at, answer in enumerate(answers)]
    again = (*noise(before % 12), *question[:n_again]) if before < 24 else ()
    texts = [
        (*question, *again, *noise(gap, 2_000_000), *answer[-3:], *noise(20, 3_000_000))
        for answer in answers
    ]
    index = build_index([*known, STRANGER], policy)
    search = engine.search_for([*known, STRANGER], policy)
    assert engine.detect_all(texts, search, policy) == [detect(text, index) for text in texts]


@LESS
@given(worlds(most=5), policies(), SAMPLINGS)
def test_several_benchmarks_in_one_pass_are_each_by_itself(
    world: tuple[list[Entry], Tokens], policy: Policy, sampling: str
) -> None:
    known, document = world
    policy = dataclasses.replace(policy, sampling=sampling)
    names = sorted({one.record.benchmark for one in known})
    groups = [[one for one in known if one.record.benchmark == name] for name in names]
    frequencies = count(known, policy)
    counts = count_entries(joined([engine.entries_of(group) for group in groups]), policy)
    parts = [weigh(engine.entries_of(group), counts, policy, is_counted=True) for group in groups]
    search = search_from_arrays(join(parts, policy), [], policy)
    (found,) = engine.detect_all([document], search, policy)
    first = 0
    for group in groups:
        alone = detect(document, build_index(group, policy, frequencies))
        numbers = range(first, first + len(group))
        together = [
            dataclasses.replace(match, number=match.number - first)
            for match in found
            if match.number in numbers
        ]
        assert together == alone
        first += len(group)


@LESS
@given(worlds(most=5), policies())
def test_frequencies_taken_from_numbers_are_those_that_are_looked_up(
    world: tuple[list[Entry], Tokens], policy: Policy
) -> None:
    known, _ = world
    names = sorted({one.record.benchmark for one in known})
    groups = {
        name: engine.entries_of([one for one in known if one.record.benchmark == name])
        for name in names
    }
    counts, df = count_members(groups, policy)
    for name, group in groups.items():
        looked_up = weigh(group, counts, policy, is_counted=True)
        taken = weigh(group, counts, policy, is_counted=True, df=df[name])
        assert taken.n_records == looked_up.n_records
        for kind, rows in looked_up.df.items():
            assert np.array_equal(taken.df[kind].values, rows.values)
            assert np.array_equal(taken.df[kind].offsets, rows.offsets)


def named(tokens: np.ndarray, ids: np.ndarray, df: np.ndarray, size: int) -> dict[Tokens, int]:
    grams = ids[tokens.astype(np.int64) - 1].reshape(-1, size).tolist()
    return dict(zip(map(tuple, grams), df.tolist(), strict=True))


@LESS
@given(entries(), policies())
def test_counts_are_those_of_the_oracle(known: list[Entry], policy: Policy) -> None:
    cut = len(known) // 2
    halves = [engine.entries_of(half) for half in (known[:cut], known[cut:])]
    counts = count_entries(joined(halves), policy)
    expected: Frequencies = count(known, policy)
    assert counts.n_records == expected.n_records
    assert dict(zip(counts.ids.tolist(), counts.token_df.tolist(), strict=True)) == expected.token
    for kind, counted in counts.kinds.items():
        # A question shorter than an n-gram counts as one for the oracle; no document can hold it.
        whole = {g: n for g, n in getattr(expected, kind).items() if len(g) == counted.grams.size}
        grams = counted.grams
        assert named(grams.tokens, counts.ids, counted.df, grams.size) == whole


@LESS
@given(worlds(), policies(), SAMPLINGS)
def test_what_stands_beside_a_document_in_a_batch_changes_nothing(
    world: tuple[list[Entry], Tokens], policy: Policy, sampling: str
) -> None:
    known, document = world
    policy = dataclasses.replace(policy, sampling=sampling)
    search = engine.search_for(known, policy)
    company = [document, (), known[0].question, document, noise(40), document]
    found = engine.detect_all(company, search, policy)
    (alone,) = engine.detect_all([document], search, policy)
    assert [found[0], found[3], found[5]] == [alone] * 3


@pytest.mark.parametrize("sampling", ["exhaustive", "reference"])
def test_arrays_that_are_too_small_grow(monkeypatch, sampling):
    monkeypatch.setattr("decon_core.detectors.decon._INITIAL_RUNS", 1)
    monkeypatch.setattr("decon_core.detectors.decon._INITIAL_MATCHES", 1)
    policy = Policy(sampling=sampling)
    known = [entry(run(100 * n, 40), instance=n) for n in range(6)]
    document: Tokens = ()
    for number in range(6):
        document += noise(30, 10_000 + 100 * number) + known[number].question
    (found,) = engine.detect_all([document], engine.search_for(known, policy), policy)
    assert found == detect(document, build_index(known, policy))
    assert [match.number for match in found] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [2, 5, 70])
def test_a_question_is_found_wherever_it_begins_in_the_groups_of_tokens(size):
    policy = Policy(ngram_size=size)
    known = [entry(run(0, 150)), entry(run(500, 40))]
    starts = [0, *range(58, 67), *range(gram_runs._STRETCH - 4, gram_runs._STRETCH + 2, 2)]
    texts = [noise(start) + known[0].question + noise(9, 2_000_000) for start in starts]
    index = build_index(known, policy)
    found = engine.detect_all(texts, engine.search_for(known, policy), policy)
    assert found == [detect(text, index) for text in texts]
    assert all(found)


def test_a_question_behind_many_records_is_searched_once_and_said_of_all():
    policy = Policy()
    question = run(0, 60)
    known = [entry(question, run(1000 * n, 6), instance=1) for n in range(1, 30)]
    known.append(entry(run(50_000, 40)))
    search = engine.search_for(known, policy)
    assert search.n_questions == 2
    document = noise(20) + question + known[7].answer + noise(20, 2_000_000)
    (found,) = engine.detect_all([document], search, policy)
    assert found == detect(document, build_index(known, policy))
    assert Counter(match.score for match in found)[1.0] == 1


def test_a_detector_can_be_used_again_and_again():
    policy = Policy()
    known = [entry(run(0, 40)), entry(run(500, 40))]
    search = engine.search_for(known, policy)
    detector = ClusterSearch(search, policy)
    batch = engine.ragged([noise(10) + known[0].question], search.ids)
    first, second = (detector.detect(batch, search.hits(batch)) for _ in range(2))
    assert first.whole.tolist() == second.whole.tolist()
    assert len(first) == 1
