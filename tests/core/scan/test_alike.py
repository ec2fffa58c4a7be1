"""Choices that are found alike share a match; verdicts on any of them count."""

from dataclasses import replace

import pyarrow as pa
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.verdicts import LEAK, Verdict, Verdicts
from decon_core.index.term_weights import freeze
from decon_core.scan.matches import text_id_of
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS
from tests.core.conftest import records_table

PUBLISHED = ("ratcliff", "longest_match", "exact", "ngram_any")
CORRECT = 1


@pytest.fixture
def scanned(bench, make_words):
    """An item with three choices, the correct one long, in a document without and with it."""
    question, long = make_words("question", 30), make_words("long", 20)
    answers = ["one", long, "three"]
    rows = records_table("quiz", [(question, answer, None) for answer in answers]).to_pylist()
    for number, row in enumerate(rows):
        row |= {"instance_index": 0, "choice_index": number, "is_correct": number == CORRECT}
        row["fingerprint"] = fingerprint_of(None, question, answers[number])
    bench.policy = Policy(tokenizer_str="cl100k", detectors=PUBLISHED)
    version = save_records(bench.store, "quiz", pa.Table.from_pylist(rows, schema=RECORDS))
    bench.index([version], freeze(bench.store, [version], bench.policy))
    around = make_words("around", 40)
    pack = bench.pack({"a.jsonl": [f"{around} {question} {around}", f"{question} {long}"]})
    scan_packs(bench.store, [pack], [version], bench.policy)
    reader = MatchReader(bench.store, (version,), bench.policy, bench.scan)
    return reader, version, pack.shards[0], rows


def matches_of(scanned, row):
    reader, version, shard, _ = scanned
    found = reader.scan_results.matches([shard.fingerprint], version.fingerprint).to_pylist()
    return {(one["detector"], one["record"]): one for one in found if one["row"] == row}


def test_choices_share_the_match_of_the_correct_one(scanned):
    found = matches_of(scanned, 0)
    assert {*found} == {(name, CORRECT) for name in PUBLISHED}
    assert {(one["first_record"], one["n_alike"]) for one in found.values()} == {(0, 3)}
    fingerprint = scanned[3][CORRECT]["fingerprint"]
    assert all(one["text_id"] == text_id_of(fingerprint, one["words"]) for one in found.values())


def test_a_choice_that_is_found_has_a_match_of_its_own(scanned):
    """And the two around it do not follow one another."""
    found = matches_of(scanned, 1)
    overlaps = {
        at: one["answer_overlap"] for (name, at), one in found.items() if name == "longest_match"
    }
    assert overlaps == {0: None, CORRECT: 1.0, 2: None}
    assert {found["longest_match", at]["n_alike"] for at in overlaps} == {None}
    assert found["ratcliff", CORRECT]["n_alike"] == 3


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("record", range(3))
def test_a_verdict_on_any_of_them_counts(scanned, name, record):
    reader, version, shard, rows = scanned
    match = matches_of(scanned, 0)[name, CORRECT]
    fingerprint = rows[record]["fingerprint"]
    text_id = text_id_of(fingerprint, match["words"])

    def said(verdict):
        one = Verdict(pair=text_id, fingerprint=fingerprint, verdict=verdict)
        judged = replace(reader, verdicts=Verdicts({text_id: one}))
        assert text_id in judged.decided_texts([shard.fingerprint], version)[shard.fingerprint]
        entries = judged.entries(shard, [version], source="web").to_pylist()
        (entry,) = (one for one in entries if (one["row"], one["detector"]) == (0, name))
        return entry

    assert not said("template")["is_contaminated"]
    confirmed = said(LEAK)
    assert confirmed["is_contaminated"]
    assert (confirmed["record"], confirmed["text_id"]) == (record, text_id)
    assert confirmed["is_correct"] == (record == CORRECT)
