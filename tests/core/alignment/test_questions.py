"""The index of questions: what is stored of each is what its text has."""

from hypothesis import given
from hypothesis import strategies as st

from decon_core.alignment.questions import Questions, index_of
from decon_core.alignment.siblings import items_with_runs, own_of
from decon_core.alignment.units import units_of
from tests.core.alignment.aligning import FORM

_WORDS = ("", "...", "many", "3,000", "three", "Ann", "ｆｕｌｌ", "北京", "\n", "<b>x</b>")
_TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from(_WORDS), max_size=8).map(" ".join)
)
_ROWS = st.lists(
    st.tuples(_TEXTS, st.sampled_from([None, "", "a passage", "another"])).map(
        lambda row: {"question": row[0], "passage": row[1]}
    ),
    max_size=6,
)


@given(st.lists(_ROWS, max_size=3))
def test_questions_come_back_as_their_texts_are_read(benchmarks):
    questions = Questions(index_of(benchmarks, FORM))
    for part, rows in enumerate(benchmarks):
        texts = [*dict.fromkeys(row["question"] for row in rows)]
        about = [
            {row["passage"] or "" for row in rows if row["question"] == text} - {""}
            for text in texts
        ]
        units = [units_of(text, FORM) for text in texts]
        shared = items_with_runs(units, [max(1, len(passages)) for passages in about])
        for record, row in enumerate(rows):
            at = texts.index(row["question"])
            (number,) = questions.numbers([part], [record])
            question, own = questions.get(number), own_of(shared[at])
            assert question.units.keys == units[at].keys
            assert question.units.is_number == units[at].is_number
            assert question.units.is_name == units[at].is_name
            assert question.weights == units[at].weights
            assert question.n_characters == len(row["question"])
            assert question.own.n_family == own.n_family
            assert question.own.is_own.tolist() == own.is_own.tolist()
