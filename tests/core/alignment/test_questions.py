"""The index of questions: what is stored of each is what its text has."""

from hypothesis import given
from hypothesis import strategies as st

from decon_core.alignment.questions import COLUMNS, index_of, sizes_of
from decon_core.alignment.stated_answers import ShortAnswers
from decon_core.text.content_words import is_content, weight_of_word
from tests.core.alignment.aligning import FORM, read, spelled, table_of
from tests.oracle import alignment as oracle

_WORDS = ("", "...", "many", "3,000", "three", "Ann", "ｆｕｌｌ", "北京", "กขค", "\n", "<b>x</b>")
_TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from(_WORDS), max_size=8).map(" ".join)
)
_STATED = {
    None: [],
    "18": ["18"],
    "(B) 3,516": ["3,516"],
    "北京": ["北京"],
    "long " * 9: [],
}
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "question": _TEXTS,
            "answer": st.sampled_from([*_STATED]),
            "passage": st.sampled_from([None, "", "a passage", "another"]),
            "split": st.sampled_from(["dev", "test"]),
            "instance_index": st.integers(0, 2),
            "sub_index": st.sampled_from([None, 0, 1]),
            "is_correct": st.sampled_from([None, True, False]),
        }
    ),
    max_size=6,
)


@given(st.lists(_ROWS, max_size=3))
def test_questions_are_indexed_as_their_texts_are_read(benchmarks):
    index = index_of(map(table_of, benchmarks), FORM)
    edges = index["unit_edges"].tolist()
    at = 0
    for part, rows in enumerate(benchmarks):
        texts = [*dict.fromkeys(row["question"] for row in rows)]
        about = [
            {row["passage"] or "" for row in rows if row["question"] == text} - {""}
            for text in texts
        ]
        keys = [*map(spelled, texts)]
        own = oracle.own_units(keys, [max(1, len(passages)) for passages in about])
        assert index["record_edges"][part] == at
        for row in rows:
            question = texts.index(row["question"])
            number = int(index["question_of"][at])
            of_question = slice(*edges[number : number + 2])
            units = read(row["question"])
            weights = [*map(weight_of_word, keys[question])]
            is_own, is_in_own_run, n_family = own[question]
            expected = {
                "keys": units.keys.tolist(),
                "is_number": units.is_number.tolist(),
                "is_name": units.is_name.tolist(),
                "weights": weights,
                "own_weights": [
                    weight * flag for weight, flag in zip(weights, is_own, strict=True)
                ],
                "is_word": [
                    not is_number and (len(key) > 1 or not key.isascii())
                    for key, is_number in zip(keys[question], units.is_number, strict=True)
                ],
                "is_in_own_run": is_in_own_run,
                "worth": [
                    100 if is_number or is_content(key) else 40
                    for key, is_number in zip(keys[question], units.is_number, strict=True)
                ],
            }
            assert {name: index[name][of_question].tolist() for name in expected} == expected
            assert index["n_characters"][number] == len(row["question"])
            assert index["n_family"][number] == n_family
            assert index["units_per_word"][number] == oracle.units_per_word(keys[question])
            assert index["weight"][number] == sum(weights)
            assert index["own_weight"][number] == sum(expected["own_weights"])
            assert index["is_wrong"][at] == (row["is_correct"] is False)
            at += 1
    records = [(part, row) for part, rows in enumerate(benchmarks) for row in rows]
    names = "split", "instance_index", "sub_index"
    items = [(part, *(row[name] for name in names)) for part, row in records]
    by_number = dict(zip(index["item_of"].tolist(), items, strict=True))
    assert [by_number[number] for number in index["item_of"].tolist()] == items
    assert len(by_number) == len({*items})
    answers = ShortAnswers(index)
    for number, item in by_number.items():
        right = [
            row["answer"]
            for (_, row), of in zip(records, items, strict=True)
            if of == item and row["is_correct"] is not False
        ]
        stated = [answer for answer in answers.of(number) if answer]
        assert stated == [one for answer in right for one in _STATED[answer]]


@given(st.lists(_TEXTS, max_size=5))
def test_sizes_are_those_of_each_text(texts):
    n_words, weights = sizes_of(texts, FORM)
    keys = [*map(spelled, texts)]
    assert n_words.tolist() == [len(of) // oracle.units_per_word(of) for of in keys]
    assert weights.tolist() == [sum(map(weight_of_word, spelled(text))) for text in texts]


def test_words_that_were_forgotten_are_looked_up_again(monkeypatch):
    def index():
        rows = [{"question": f"{n} red birds of 北京"} for n in range(3)]
        whole = [
            dict.fromkeys(COLUMNS) | {"split": "test", "instance_index": 0} | row for row in rows
        ]
        return index_of([table_of([row]) for row in whole], FORM)

    kept = index()
    monkeypatch.setattr("decon_core.alignment.questions._MOST_WORDS", 0)
    assert {name: array.tolist() for name, array in index().items()} == {
        name: array.tolist() for name, array in kept.items()
    }
