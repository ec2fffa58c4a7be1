"""What is made once for all benchmarks of a term-weight snapshot."""

import pyarrow as pa

from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.index import ngram_counts
from decon_core.index.parts import build_part
from decon_core.index.term_weights import current_snapshot, freeze
from decon_core.schemas import RECORDS
from decon_core.storage.store import Store


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
