"""Small alphabets, so that n-grams collide, and documents made of pieces of what is looked for."""

from hypothesis import strategies as st

from decon_core.config.policy import Policy
from tests.oracle.decon import Entry, Tokens
from tests.oracle.worlds import entry

LETTERS = st.integers(0, 4)
NOISE = st.integers(50, 60)


def token_runs(
    least: int, most: int, letters: st.SearchStrategy[int] = LETTERS
) -> st.SearchStrategy[Tokens]:
    return st.lists(letters, min_size=least, max_size=most).map(tuple)


@st.composite
def entries(draw: st.DrawFn, *, most: int = 7) -> list[Entry]:
    """Records that share n-grams, some of them several choices of one row."""
    made: list[Entry] = []
    opening = draw(token_runs(5, 7))
    for _ in range(draw(st.integers(1, most))):
        question = draw(token_runs(3, 16))
        benchmark, instance = (
            draw(st.sampled_from(["one", "two", "three"])),
            draw(st.integers(0, 1)),
        )
        kinship = draw(st.sampled_from(["stranger", "same opening", "longer", "choice"]))
        if kinship == "same opening":
            question = opening + question
        elif made and kinship == "longer":
            question = (draw(st.sampled_from(made)).question + question)[:24]
        elif made and kinship == "choice":
            row = draw(st.sampled_from(made))
            question = row.question
            benchmark, instance = row.record.benchmark, row.record.instance
        made.append(
            entry(
                question,
                draw(st.one_of(st.just(()), token_runs(1, 3), token_runs(4, 9))),
                draw(st.one_of(st.just(()), token_runs(1, 9))),
                benchmark=benchmark,
                instance=instance,
                is_correct=draw(st.sampled_from([None, False, True])),
            )
        )
    # Records of another alphabet: they keep N above the document frequencies.
    made += [
        entry(tuple(range(100 + 10 * i, 109 + 10 * i))) for i in range(draw(st.integers(1, 3)))
    ]
    return made


@st.composite
def echoes(draw: st.DrawFn, one: Entry) -> Tokens:
    """A passage, echoes of the question's first n-gram, then the question and its answer."""
    noises = st.lists(NOISE, min_size=1, max_size=4).map(tuple)
    heard = [(*one.question[:5], *draw(noises)) for _ in range(draw(st.integers(0, 4)))]
    at = draw(st.integers(0, len(heard)))
    heard.insert(at, (*one.passage, *draw(noises)))
    return (*(token for piece in heard for token in piece), *one.question, *one.answer)


@st.composite
def documents(draw: st.DrawFn, known: list[Entry]) -> Tokens:
    """Passages, questions and answers of the records, whole, cut, repeated, with noise between."""
    fields = [f for one in known for f in (one.passage, one.question, one.answer) if f]
    kinds = [
        st.sampled_from(known).flatmap(echoes),
        st.sampled_from(fields),
        st.builds(
            lambda field, start, n: field[start : start + n],
            st.sampled_from(fields),
            st.integers(0, 8),
            st.integers(3, 12),
        ),
        token_runs(0, 12, NOISE),
        token_runs(0, 4),
    ]
    pieces = draw(st.lists(st.one_of(kinds), min_size=1, max_size=8))
    return tuple(token for piece in pieces for token in piece)


@st.composite
def worlds(draw: st.DrawFn, *, most: int = 7) -> tuple[list[Entry], Tokens]:
    known = draw(entries(most=most))
    return known, draw(documents(known))


@st.composite
def policies(draw: st.DrawFn, /, **fixed: object) -> Policy:
    """Small windows and a low threshold, so that their edges are met. No threshold is a ratio of
    small numbers: no overlap lies on a gate."""
    floor = draw(st.sampled_from([0.2137, 0.3571, 0.4691, 0.6173]))
    decay_start = draw(st.sampled_from([0, 6, 20]))
    settings: dict[str, object] = {
        "contamination_score_threshold": floor,
        "lowest_recorded_score": floor,
        "hot_ngram_records": draw(st.sampled_from([1, 3, 2000])),
        "sample_every_m_tokens": draw(st.sampled_from([1, 3, 10])),
        "question_max_consecutive_misses": draw(st.sampled_from([1, 2, 4, 11])),
        "short_answer_window_length": draw(st.sampled_from([1, 4, 50])),
        "min_long_answer_window": draw(st.sampled_from([1, 12, 100])),
        "min_passage_distance": draw(st.sampled_from([1, 12, 100])),
        "keep_no_answer": draw(st.booleans()),
        "eval_min_token_length": draw(st.sampled_from([0, 9, 20])),
        "perfect_match_decay_start": decay_start,
        "perfect_match_decay_end": decay_start + draw(st.sampled_from([1, 8, 30])),
    }
    return Policy(**{**settings, **fixed})  # type: ignore[arg-type] # a policy checks its own types
