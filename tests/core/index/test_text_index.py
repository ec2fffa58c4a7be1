"""What is looked for of a record, how telling it is, and what a tokenizer must keep for it."""

import time
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.decisions.decide import decide
from decon_core.index.record_texts import NAMES, Pool, followed, gather, last_sentence
from decon_core.index.term_weights import freeze
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle import other_detectors as reference_detectors
from tests.uncompiled import fewer

FOUR = ("ratcliff", "longest_match", "exact", "ngram_any")
POLICY = Policy(detectors=FOUR)

SIGNS = [*'aB3.!?…"”)]」』。！？\n\r \u2028\u00a0', "Dr. ", "3.14", "? ", ".”\n", "。」"]
TEXTS = st.lists(st.sampled_from(SIGNS), max_size=20).map("".join)


def looked_for(record, policy=POLICY):
    pool = Pool()
    gather(pool, 0, {0: {"is_correct": None, **record}}, policy)
    texts = pool.texts
    return {NAMES[kind]: texts[number] for number, _, _, kind in pool.uses}


# Texts --------------------------------------------------------------------------------------------


@settings(derandomize=True, max_examples=fewer(300))
@given(TEXTS, st.one_of(st.none(), TEXTS))
def test_of_a_record_those_texts_are_looked_for_that_the_oracle_names(question, answer):
    texts = looked_for({"question": question, "answer": answer})
    expected = reference_detectors.continuations(question, answer)
    assert texts.get("question and answer") == expected.answered
    assert texts.get("continuation") == expected.continuation
    assert texts.get("question", "") == question
    if question.strip():
        sentence = reference_detectors.last_sentence(question)
        assert last_sentence(question) == (sentence if sentence != question.lstrip() else None)
        assert followed(question, answer or "x") == reference_detectors.joined(
            question, answer or "x"
        )


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("It is 3.14 m. How long is it?", "How long is it?"),
        ("“Who?” he asked. “You.” And then", "And then"),
        ("何ですか？本当？？", "本当？？"),
        ("「何？」", None),
        ("One sentence?", None),
        ("\n\nOne sentence?", None),
        ("A line\nanother line \n", "another line \n"),
    ],
)
def test_a_continuation_goes_on_from_the_last_sentence(question, last):
    assert last_sentence(question) == last


@pytest.mark.parametrize("sign", [".", "\n", "？", '."', "…”"])
def test_long_rows_of_signs_take_no_time(sign):
    before = time.process_time()
    last_sentence("a" + sign * 200_000)
    # Of a processor. Gone through from each sign it would be minutes.
    assert time.process_time() - before < 10


WHOLE = Policy(detectors=FOUR, ratcliff_prompt="whole")


def prompts(*records):
    blank = {"split": "test", "instance_index": 0, "sub_index": None, "choice_index": None}
    blank |= {"passage": None, "question": "Who?", "answer": None, "is_correct": None}
    pool = Pool()
    gather(pool, 0, dict(enumerate({**blank, **record} for record in records)), WHOLE)
    texts = pool.texts
    return [texts[text] for text, _, _, kind in sorted(pool.uses, key=itemgetter(2)) if kind == 4]


def choice(number, answer, is_correct, **more):
    return {"choice_index": number, "answer": answer, "is_correct": is_correct, **more}


def test_a_whole_prompt_is_passage_question_and_choices_in_their_order():
    both = prompts(choice(1, "Bob", False), choice(0, "Ann", True))
    assert both == ["Who?\nA. Ann\nB. Bob"] * 2
    assert prompts({"passage": "Ann came."}) == ["Ann came.\nWho?"]
    assert prompts(choice(0, "Ann", True), choice(1, "Bob", False, instance_index=1)) == [
        "Who?",  # of the other item
        "Who?\nA. Bob",
    ]


def test_several_accepted_answers_are_no_choices_and_a_passage_alone_is_no_prompt():
    assert prompts(choice(0, "Ann", True), choice(1, "Anne", True)) == ["Who?"] * 2
    assert prompts(choice(0, "Ann", None), choice(1, "Anne", None)) == ["Who?"] * 2
    assert prompts({"passage": "Ann came.", "question": " "}) == []


def test_by_the_whole_prompt_a_short_question_is_found_by_its_choices(bench):
    rows = [
        ("Which planet?", "the one that has the largest visible ring system", True),
        ("Which planet?", "the one that is nearest to our own moon tonight", False),
        ("Which planet?", "the one that was found by means of arithmetic", False),
    ]
    names = ("question", "answer", "is_correct")
    records = [
        {
            "benchmark": "b",
            "split": "test",
            "instance_index": 0,
            "choice_index": number,
            "fingerprint": fingerprint_of(None, *row[:2]),
            **dict(zip(names, row, strict=True)),
        }
        for number, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(records, schema=RECORDS)
    document = "Which planet? " + "; ".join(answer for _, answer, _ in rows)
    found = {}
    for prompt in ("question", "whole"):
        bench.policy = Policy(detectors=("ratcliff",), ratcliff_prompt=prompt)
        version = save_records(bench.store, "b", table)
        bench.index([version], freeze(bench.store, [version], bench.policy))
        pack = bench.pack({"a.jsonl": [document, "An unrelated text about a planet and its ring."]})
        scan_packs(bench.store, [pack], [version], bench.policy)
        shards = [pack.shards[0].fingerprint]
        matches = bench.results.matches(shards, version.fingerprint)
        found[prompt] = [
            (entry["row"], entry["record"], entry["searched_text"], entry["is_contaminated"])
            for entry in decide(matches, bench.policy).to_pylist()
        ]
    assert found == {"question": [], "whole": [(0, 0, "whole prompt", True)]}


def test_a_choice_that_is_wrong_is_not_looked_for():
    record = {"question": "One. Two?", "answer": "Three.", "is_correct": False}
    assert looked_for(record) == {"question": "One. Two?"}


@pytest.mark.parametrize("blank", ["", " ", "\n\u00a0"])
def test_nothing_is_looked_for_with_an_answer_to_nothing(blank):
    assert "question and answer" not in looked_for({"question": blank, "answer": "Three."})
    assert "question and answer" not in looked_for({"question": "One. Two?", "answer": blank})


# Weights and decisions ----------------------------------------------------------------------------

COMMON = "Which of the following statements is true of all of them?"


def rows_of(bench, pack, versions):
    scan_packs(bench.store, [pack], versions, bench.policy)
    results, shards = bench.results, [pack.shards[0].fingerprint]
    return [results.matches(shards, version.fingerprint) for version in versions]


def questions(make_words, name, n):
    return [
        (make_words((name, at), 30, vocabulary=400), "an answer of it", None) for at in range(n)
    ]


def test_a_text_of_common_phrases_is_found_and_does_not_count(bench, make_words):
    bench.policy = Policy(detectors=("exact",))
    items = {
        "one": [*questions(make_words, "one", 3), *[(COMMON, f"x{n}", None) for n in range(9)]]
    }
    versions = bench.prepare(items)
    pack = bench.pack({"a.jsonl": [f"See: {COMMON} {items['one'][0][0]}"]})
    (found,) = rows_of(bench, pack, versions)
    entries = decide(found, bench.policy).to_pylist()
    called = {row["instance_index"]: row["is_contaminated"] for row in entries}
    assert called == {0: True} | dict.fromkeys(range(3, 12), False)


@pytest.mark.parametrize("frozen", [["one", "two"], ["two"], []])
def test_a_weight_does_not_depend_on_what_else_is_scanned(bench, make_words, frozen):
    bench.policy = Policy(detectors=("exact",))
    both = {name: questions(make_words, name, 4) for name in ("one", "two")}
    both["two"] += both["one"][:2]
    one, two = bench.prepare(both, frozen=frozen)
    pack = bench.pack({"a.jsonl": [text for text, _, _ in both["two"]]})
    together = rows_of(bench, pack, [one, two])
    for result in bench.store.root.rglob("scan_results/**/*.parquet"):
        result.unlink()
    assert [*rows_of(bench, pack, [one]), *rows_of(bench, pack, [two])] == together


def test_copies_of_a_question_weigh_the_same_in_the_snapshot_and_on_top_of_it(bench, make_words):
    """An index part counts a record and its copies once."""
    bench.policy = Policy(detectors=("exact",))
    other, (copied, *_) = (questions(make_words, name, 5) for name in ("other", "copied"))
    weights = []
    for frozen in (["copies", "other"], ["other"]):
        versions = bench.prepare({"copies": [copied] * 50, "other": other}, frozen=frozen)
        pack = bench.pack({"a.jsonl": [copied[0]]})
        weights.append({*rows_of(bench, pack, versions)[0]["base_score"].to_pylist()})
    assert weights[0] == weights[1] == {1.0}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [("Too short?", "No", None)] * 3,
        [("", "An answer that is long enough to be found", None)],
    ],
)
def test_benchmarks_of_which_nothing_is_indexed_can_be_scanned(bench, items):
    bench.policy = Policy(detectors=("decon", *FOUR))
    versions = bench.prepare({"one": items})
    pack = bench.pack({"a.jsonl": ["Too short? No. An answer that is long enough to be found"]})
    (found,) = rows_of(bench, pack, versions)
    called = decide(found, bench.policy).to_pylist()
    assert not any(row["is_contaminated"] for row in called if row["detector"] == "exact")
    assert not np.isnan(found["base_score"].to_numpy()).any()


def test_there_is_one_entry_for_each_rule_item_and_text_of_a_document(bench, make_words):
    bench.policy = Policy(detectors=FOUR)
    items = questions(make_words, "one", 4)
    (version,) = bench.prepare({"one": items})
    question = items[0][0]
    document = f"{question} an answer of it, and once more: {question}"
    pack = bench.pack({"a.jsonl": [document, question]})
    (found,) = rows_of(bench, pack, [version])
    entries = decide(found, bench.policy).to_pylist()
    named = [(row["row"], row["detector"], row["searched_text"]) for row in entries]
    assert sorted(named, key=str) == sorted(
        [
            *((row, name, None) for row in (0, 1) for name in ("longest_match", "ngram_any")),
            *((row, name, "question") for row in (0, 1) for name in ("exact", "ratcliff")),
            (0, "exact", "question and answer"),
        ],
        key=str,
    )
    assert all(row["is_contaminated"] for row in entries)


@pytest.mark.parametrize(("n", "is_leak"), [(7, False), (8, True), (9, True)])
def test_thresholds_are_passed_or_reached(bench, make_words, n, is_leak):
    """Of ten words so many in a row: `longest_match` must pass its threshold, others reach it."""
    bench.policy = Policy(
        detectors=("ratcliff", "longest_match", "ngram_any"),
        tokenizer_str="words",
        shared_ngram_size=5,
        ratcliff_threshold=0.8,
        longest_match_threshold=0.7,
        ngram_any_lowest_recorded=5,
        ngram_any_size=8,
    )
    items = [(make_words("q", 10), None, None)]
    versions = bench.prepare({"one": items, "two": questions(make_words, "two", 3)})
    part = " ".join(items[0][0].split()[:n])
    pack = bench.pack({"a.jsonl": [f"see {part} there"]})
    entries = decide(rows_of(bench, pack, versions)[0], bench.policy).to_pylist()
    assert {row["detector"]: row["is_contaminated"] for row in entries} == dict.fromkeys(
        bench.policy.detectors, is_leak
    )


def test_a_match_at_the_very_floor_is_kept(bench, make_words):
    """0.07 * 100 is more than 7, but seven of a hundred are 0.07."""
    bench.policy = Policy(
        detectors=("ratcliff", "longest_match"),
        tokenizer_str="words",
        shared_ngram_size=7,
        ratcliff_lowest_recorded=0.07,
        longest_match_lowest_recorded=0.07,
    )
    items = [(make_words("q", 100), None, None)]
    versions = bench.prepare({"one": items})
    part = " ".join(items[0][0].split()[20:27])
    found = rows_of(bench, bench.pack({"a.jsonl": [f"see {part} there"]}), versions)[0]
    assert found["base_score"].to_pylist() == [0.07, 0.07]


def test_a_field_that_is_not_found_is_told_from_one_that_cannot_be_searched(bench, make_words):
    bench.policy = Policy(detectors=("longest_match",), tokenizer_str="words")
    question = make_words("q", 12)
    items = [(question, answer, None) for answer in (make_words("a", 9), "too short", None)]
    versions = bench.prepare({"one": items})
    found = rows_of(bench, bench.pack({"a.jsonl": [question]}), versions)[0]
    assert found["answer_overlap"].to_pylist() == [0.0, None, None]
    assert found["total_tokens"].to_pylist() == [21, 14, 12]


# Tokenizers ---------------------------------------------------------------------------------------


@settings(derandomize=True, max_examples=300)
@given(st.text(max_size=60), st.sampled_from(["cl100k", "o200k", "llama3", "olmo2"]))
def test_pieces_of_a_bundled_vocabulary_are_all_bytes_of_a_text(text, name):
    tokenizer = load_tokenizer(name)
    assert tokenizer.is_lossless()
    pieces = tokenizer.pieces(text)
    assert pieces.ids.tolist() == tokenizer.encode([text])[0]
    assert [*pieces.starts.tolist(), len(text.encode())] == [0, *pieces.stops.tolist()]


BYTES = {sign: at for at, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
SPELLED = {f"<0x{byte:02X}>": byte for byte in range(256)}


def saved(path, model, before, after, normalizer=None, added=()):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = before, after
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.add_tokens([*added])
    tokenizer.save(str(path / "tokenizer.json"))
    return load_tokenizer(str(path / "tokenizer.json"))


def test_a_file_that_spells_bytes_keeps_all_of_a_text(tmp_path):
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert saved(tmp_path, models.BPE(BYTES, []), level, decoders.ByteLevel()).is_lossless()


@pytest.mark.parametrize(
    "normalizer",
    [normalizers.NFC(), normalizers.Lowercase(), normalizers.Strip(), normalizers.NFKC()],
)
def test_a_file_that_normalizes_does_not(tmp_path, normalizer):
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model = models.BPE(BYTES, [])
    assert not saved(tmp_path, model, level, decoders.ByteLevel(), normalizer).is_lossless()


def test_a_file_that_puts_a_space_before_a_text_does_not(tmp_path):
    """A word has the same tokens at the very beginning as behind a space, but other bytes."""
    vocabulary = {**SPELLED, "▁": 256}
    model = models.BPE(vocabulary, [], byte_fallback=True)
    after = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    before = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer = saved(tmp_path, model, before, after)
    assert tokenizer._inner.decode(tokenizer.encode(["Ein x"])[0]) == "Ein x"
    assert not tokenizer.is_lossless()


def test_a_file_that_knows_no_other_letters_than_its_own_does_not(tmp_path):
    from decon_core.text.tokenizers import _PROBE

    alphabet = sorted({*_PROBE} - {"\ue7a3", "\U000f8d21", "\uffff"})
    vocabulary = {sign: at for at, sign in enumerate(["?", *alphabet])}
    model = models.BPE(vocabulary, [], unk_token="?")
    assert not saved(
        tmp_path, model, pre_tokenizers.Split("\x01", "isolated"), decoders.Fuse()
    ).is_lossless()
