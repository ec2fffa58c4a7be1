"""What the tests of the alignment share: texts as units, and the questions of a benchmark."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from decon_core.alignment.comparison import Questions
from decon_core.alignment.questions import COLUMNS, index_of
from decon_core.alignment.units import spelled_units, units_of
from decon_core.config.policy import Policy
from decon_core.kernels import word_alignment
from decon_core.schemas import RECORDS
from tests.oracle.alignment import Run

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


def read(*texts):
    return units_of(texts, FORM)


def spelled(text):
    """Return the units of a text as they are spelled."""
    units, spelled = spelled_units([text], FORM)
    return spelled(np.arange(len(units)))


def questions_of(*texts):
    """Return the questions of one benchmark."""
    rows = [
        {
            "question": text,
            "passage": None,
            "split": "test",
            "instance_index": number,
            "is_correct": None,
        }
        for number, text in enumerate(texts)
    ]
    return Questions(index_of([table_of(rows)], FORM))


def table_of(rows):
    """Return the records of a benchmark as they are read to be indexed."""
    return pa.Table.from_pylist(rows, pa.schema([RECORDS.field(name) for name in COLUMNS]))


def compared(question, document, *others, span=None):
    """Compare a question of a benchmark, which has others as well, with words of a document."""
    units = read(document)
    window = np.array([[0, len(units)]])
    nominated = window if span is None else np.array([span])
    questions = questions_of(question, *others)
    return questions.compare(np.array([0]), units, window, nominated)[0]


def blocks_of(question, document, span=None):
    """Return the equal words of a question and of a document around a span of its words."""
    questions, words = _columns_of(question), _words_of(document)
    n = words.keys.size
    place = word_alignment.Place(0, questions.keys.size, 0, n, *(span or (0, n)))
    blocks, _ = word_alignment.compare(questions, words, place)
    return [Run(*block) for block in blocks.tolist()]


def aligned(question, document, span=None, *, width=1 << 20):
    """Return the same for all of the document at once."""
    questions, words = _columns_of(question), _words_of(document)
    n = words.keys.size
    blocks = word_alignment.align(
        questions.keys, questions.worth, words.keys, 0, n, *(span or (0, n)), 0, width
    )
    return [Run(*block) for block in blocks.tolist()]


def _columns_of(question):
    row = {"question": question, "passage": None, "split": "test", "instance_index": 0}
    arrays = index_of([table_of([row | {"is_correct": None}])], FORM)
    return word_alignment.Questions(*(arrays[name] for name in word_alignment.Questions._fields))


def _words_of(document):
    units = read(document)
    return word_alignment.Words(units.keys, units.is_number, units.is_name)
