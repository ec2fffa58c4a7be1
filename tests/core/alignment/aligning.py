"""What the tests of the alignment share: texts as units, and the questions of a benchmark."""

from hypothesis import strategies as st

from decon_core.alignment.comparison import Question, compare
from decon_core.alignment.siblings import items_with_runs, own_of
from decon_core.alignment.units import units_of
from decon_core.config.policy import Policy

FORM = Policy().form

_WORDS = st.sampled_from(
    [
        "the",
        "of",
        "a",
        "is",
        "muffins",
        "baker",
        "theatre",
        "Anna",
        "Bob",
        "Toulouse",
        "3",
        "12",
        "1,200",
        "three",
        "puppet",
        "drake",
    ]
)
_OTHERS = st.sampled_from(
    ["zeppelin", "the", "Carl", "quorum", "5", "19", "river", "of", "two", "stone"]
)
QUESTIONS = st.lists(_WORDS, min_size=4, max_size=16).map(" ".join)


@st.composite
def documents(draw, question):
    """Draw a document with pieces of a question, edited copies of it, and other words."""
    words = question.split()

    @st.composite
    def edited(draw):
        kept = [one for one in words if draw(st.integers(0, 5))]
        at = draw(st.integers(0, len(kept)))
        return kept[:at] + draw(st.lists(_OTHERS, max_size=2)) + kept[at:]

    pieces = st.one_of(
        edited(),
        st.just(words),
        st.lists(_OTHERS, min_size=1, max_size=9),
        st.lists(_WORDS, min_size=1, max_size=5),
    )
    drawn = draw(st.lists(pieces, min_size=1, max_size=5))
    return " ".join(word for piece in drawn for word in piece) or "river"


def read(text):
    return units_of(text, FORM)


def questions_of(*texts, n_items=None):
    """Return the questions of one benchmark."""
    units = [read(text) for text in texts]
    shared = items_with_runs(units, n_items or [1] * len(units))
    return [
        Question(one, one.weights, own_of(counts), len(text))
        for one, counts, text in zip(units, shared, texts, strict=True)
    ]


def compared(question, document, *others):
    """Compare a question of a benchmark, which has others as well, with a document."""
    return compare(questions_of(question, *others)[0], read(document), (0, len(document)))
