"""What is made once for all benchmarks of a term-weight snapshot."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.index import ngram_counts
from decon_core.index.entries import COLUMNS, REASONS, RecordTokenizer
from decon_core.index.parts import build_part
from decon_core.index.term_weights import current_snapshot, freeze
from decon_core.schemas import RECORDS
from decon_core.storage.store import Store
from decon_core.text.canonical import canonical
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.decon import n_different_words
from tests.uncompiled import fewer

TEXTS = st.lists(
    st.sampled_from(
        [
            *("one", "two", "Three,", "four", "½", "e\u0301", "é", "é one", "<b>", "\u200b", "."),
            *("水", "水的a沸", "水的沸点", "กขค", "ขa的"),
        ]
    ),
    max_size=7,
).map(" ".join)


@settings(derandomize=True, max_examples=fewer(60))
@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(1, 5), st.booleans())
def test_records_are_dropped_by_the_words_of_their_canonical_text(questions, minimum, is_published):
    policy = Policy(
        eval_min_unique_word_count=minimum,
        eval_min_token_length=1,
        eval_dedup=False,
        normalize_unicode=not is_published,
    )
    columns = {"question": questions, "answer": None, "passage": None, "fingerprint": ""}
    rows = [{**columns, "question": question} for question in questions]
    table = pa.Table.from_pylist(rows, pa.schema([RECORDS.field(name) for name in COLUMNS]))
    tokenizer = RecordTokenizer(policy, load_tokenizer(policy.tokenizer_str))
    cleaned = [canonical(question, policy.form) for question in questions]
    expected = [
        "too few tokens"
        if not text
        else "too few different words"
        if n_different_words(text, policy) < minimum
        else None
        for text in cleaned
    ]
    assert [REASONS[code] for code in tokenizer.entries_of(table).dropped.tolist()] == expected


def test_further_benchmarks_build_no_further_table_of_all_ngrams(tmp_path, make_words, monkeypatch):
    store, policy = Store(tmp_path), Policy()
    versions = []
    for number in range(4):
        name = f"quiz-{number}"
        question, answer = make_words(f"q{number}", 40), make_words(f"a{number}", 6)
        row = {"benchmark": name, "split": "test", "instance_index": 0, "question": question}
        row |= {"answer": answer, "fingerprint": f"{number:016x}"}
        versions.append(save_records(store, name, pa.Table.from_pylist([row], schema=RECORDS)))
    freeze(store, versions, policy)
    snapshot = current_snapshot(store, policy)
    tables = []

    def enter_grams(*arguments):
        tables.append(arguments)
        enter(*arguments)

    enter = ngram_counts.kernels.enter_grams
    monkeypatch.setattr(ngram_counts.kernels, "enter_grams", enter_grams)
    for version in versions:
        build_part(store, version, snapshot, policy)
    assert len(tables) == len(snapshot.counts.kinds)
