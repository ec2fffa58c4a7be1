"""A text that stands whole in a document is found, whatever stands beside it.

Tokens at the edges of a text are others within a document: " Which" is not "Which", and "?" with a
line break behind it is one token. Counts by `tokenize("Which of ...")` alone missed such texts.
"""

import pytest

from decon_core.config.detector_registry import BUILT_IN
from decon_core.config.policy import Policy
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.visibility import visibility_table
from decon_core.detectors.longest_match import LongestMatch
from decon_core.detectors.ratcliff import Ratcliff
from decon_core.detectors.shared_runs import COMPARISON
from decon_core.quality.self_tests import run_self_tests
from decon_core.scan.scanner import scan_packs
from decon_core.text.tokenizers import load_tokenizer

GAPERON = "Which of the following statements is true?"
EIGHT_TOKENS = [
    GAPERON,
    "Each box holds nine or 1200",
    "Photosynthesis turns light into energy and water",
    "哪一个答案正确?",
    "Name all the rivers that cross Vienna…\n",
    '"Mist" was painted by which master',
]
LONGER = [
    "If 3 trains leave Oslo at noon, how many of them reach Bergen before 19:45?",
    "Ångström units measure which of these lengths, and who introduced them",
]
ITEMS = [*EIGHT_TOKENS, *LONGER]
BEFORE = ["", "Fine. ", "Fine.\n", "Fine.\n\n", 'He asked: "', "“", "(", "see (", "**", "- ", ">"]
BEFORE += ["1. ", "\t", "Q:", "Q: ", "问题:", "/", "\u00a0", "  ", "x-"]
BEHIND = [
    "",
    " Fine.",
    "\n",
    "\n\nFine",
    '"',
    '"\n',
    "”",
    ")",
    ").",
    "**",
    "<br>",
    "?!",
    "\r\n",
    "  ",
]
BEHIND += [", he said", "。", "\t", "_", "..."]
COMPARED = ("ratcliff", "longest_match", "exact")


def found_in(bench, items, documents, policy):
    """Of every document and detector: the score of each item that leaked."""
    bench.policy = policy
    versions = bench.prepare(
        {"b": items, "other": [("What else is there to ask, then?", None, None)]}
    )
    pack = bench.pack({"a.jsonl": documents})
    scan_packs(bench.store, [pack], versions, policy)
    (shard,) = pack.shards
    reader = MatchReader(bench.store, tuple(versions), policy, bench.scan)
    entries = reader.entries(shard, versions, source="web").to_pylist()
    leaked = {}
    for entry in entries:
        if (entry["is_contaminated"] or entry["needs_review"]) and entry["benchmark"] == "b":
            key = entry["row"], entry["detector"], entry["instance_index"]
            leaked[key] = max(entry, leaked.get(key, entry), key=lambda one: one["score"])
    return versions, leaked


def test_the_texts_have_eight_tokens():
    tokenizer = load_tokenizer("cl100k")
    counts = {text: tokenizer.pieces(text).ids.size for text in EIGHT_TOKENS}
    assert set(counts.values()) == {8}, counts


@pytest.mark.parametrize("tokenizer", ["cl100k", "o200k", "words"])
@pytest.mark.parametrize("normalize", ["none", "whitespace"])
def test_a_visible_text_is_found_whatever_stands_beside_it(bench, tokenizer, normalize):
    policy = Policy(
        detectors=COMPARED, tokenizer_str=tokenizer, normalize=normalize, exact_threshold=0.01
    )
    documents, asked = [], []
    # Tokens at one edge of a text do not depend on the other edge: a quarter of all pairs.
    for at, before in enumerate(BEFORE):
        for behind in BEHIND[at % 4 :: 4]:
            for number, text in enumerate(ITEMS):
                documents.append(f"{before}{text}{behind}")
                asked.append((number, before, behind))
    versions, leaked = found_in(bench, [(text, None, None) for text in ITEMS], documents, policy)
    table = visibility_table(bench.store, versions, policy).to_pylist()
    visible = {
        (row["detector"], row["instance_index"])
        for row in table
        if row["is_visible"] and row["benchmark"] == "b"
    }
    assert {detector for detector, _ in visible} == set(COMPARED)
    missed = [
        (detector, *asked[row])
        for row in range(len(documents))
        for detector in COMPARED
        if (detector, asked[row][0]) in visible and (row, detector, asked[row][0]) not in leaked
    ]
    assert not missed
    for (row, detector, item), entry in leaked.items():
        if detector != "exact" and item == asked[row][0]:
            assert entry["score"] == 1.0
            text = documents[row][entry["question_char_start"] : entry["question_char_stop"]]
            assert text.strip() == ITEMS[item].strip()


def test_an_edited_text_in_mid_sentence_is_found_by_its_form_behind_a_space(bench):
    # Nine tokens: without the first and the last one, seven would be left.
    text = "Which of the following statements are surely false?"
    assert load_tokenizer("cl100k").pieces(text).ids.size == 9
    policy = Policy(detectors=COMPARED)
    document = "As it says: Which of the following statements are surely false: none"
    _, leaked = found_in(bench, [(text, None, None)], [document], policy)
    assert leaked[0, "longest_match", 0]["score"] == 8 / 9
    assert leaked[0, "ratcliff", 0]["score"] == 8 / 9
    assert leaked[0, "ratcliff", 0]["question_tokens"] == 9


def test_an_answer_that_stands_whole_is_found_by_longest_match(bench):
    answer = "Because the tide turns twice a day there"
    assert load_tokenizer("cl100k").pieces(answer).ids.size == 8
    policy = Policy(detectors=COMPARED)
    _, leaked = found_in(
        bench, [("Why?", answer, None)], [f'They said "{answer}".', f"So: ({answer})"], policy
    )
    assert [leaked[row, "longest_match", 0]["answer_overlap"] for row in range(2)] == [1.0, 1.0]


def test_self_tests_of_eight_tokens_are_found(bench):
    policy = Policy(detectors=BUILT_IN, eval_min_token_length=1, exact_threshold=0.01)
    bench.policy = policy
    versions = bench.prepare({"b": [(text, None, None) for text in EIGHT_TOKENS]})
    flight = run_self_tests(bench.store, versions, policy)
    assert flight.lost == ()
    assert {one.detector for one in flight.planted} >= set(COMPARED)


def test_only_rules_that_compare_tokens_are_scanned_again_when_the_comparison_changes(monkeypatch):
    def fingerprints():
        return {
            detector: Policy(detectors=(detector,)).scan_fingerprint(tokenizer="t", snapshot="s")
            for detector in BUILT_IN
        }

    before = fingerprints()
    for kind in (LongestMatch, Ratcliff):
        assert kind.versions == COMPARISON
        monkeypatch.setattr(kind, "versions", (("compared", 1_000),))
    after = fingerprints()
    assert {detector for detector in BUILT_IN if before[detector] != after[detector]} == {
        "ratcliff",
        "longest_match",
    }
