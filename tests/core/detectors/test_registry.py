"""A detector is one file and a name in the registry; an unknown name is refused everywhere."""

import json
from dataclasses import fields

import duckdb
import pyarrow as pa
import pytest

from decon_core.config import detector_registry as registry
from decon_core.config.detector_registry import BUILT_IN, Reads, Threshold
from decon_core.config.load import load_policy
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.decisions.judging import highest_thresholds, judge, missing
from decon_core.detectors.detector import Detector, detector
from decon_core.errors import ConfigError, InputError
from decon_core.features.scorecard.page import advice
from decon_core.library.page import report_in
from decon_core.library.scan import Request, scan_folder
from decon_core.report.publish.summary import card_from, summary_of
from decon_core.report.review.found import MatchedText, doubt
from decon_core.schemas import MATCHES
from tests.core.detectors.first_sentence import FirstSentence
from tests.core.report.pages import packed_in

QUESTION = "The ferry to the island leaves at nine. It takes forty minutes. When does it arrive?"
SHARE = len("The ferry to the island leaves at nine.") / len(QUESTION)
SHORT = "At dusk. " + "The lamps along the quay are lit one after the other by the keeper. " * 4
OTHER = "Nothing of a benchmark is in this document, whichever way it is read. It is long enough."


@pytest.fixture
def first_sentence(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register(FirstSentence)


@pytest.fixture
def place(tmp_path):
    item = {"eval_key": "ferries", "split": "test", "answer": "at twenty to ten"}
    rows = [
        {**item, "eval_instance_index": number, "question": question}
        for number, question in enumerate((QUESTION, SHORT, "Why?"))
    ]
    (tmp_path / "ferries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "corpus").mkdir()
    texts = [OTHER, QUESTION[:40] + "Bring a coat. " * 5, SHORT[:9] + OTHER]
    rows = [{"text": text, "id": str(number)} for number, text in enumerate(texts)]
    path = tmp_path / "corpus" / "web.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def scanned(place, settings):
    (place / "policy.toml").write_text(settings)
    policy = load_policy(place / "policy.toml")
    out = place / "found"
    request = Request(
        evals=place / "ferries.jsonl",
        source=Source(name="corpus", path=str(place / "corpus"), id="id"),
        out=out,
        policy=policy,
    )
    scan_folder(request)
    return policy


def ask(place, query):
    with duckdb.connect(report_in(place / "found"), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.usefixtures("first_sentence")
def test_a_new_detector_is_scanned_decided_and_reported_by_its_own_file_alone(place):
    policy = scanned(
        place,
        'detectors = ["first_sentence", "decon"]\ntokenizer_str = "words"\n'
        "first_sentence_threshold = 0.4\nfirst_sentence_floor = 0.02\n",
    )
    columns = "row, instance_index, score, is_contaminated, kind"
    assert ask(place, f"SELECT {columns} FROM matches ORDER BY row") == [
        (1, 0, pytest.approx(SHARE), True, "first sentence"),
        (2, 1, pytest.approx(8 / len(SHORT)), False, "first sentence"),
    ]
    of_it, columns = "WHERE detector = 'first_sentence'", "instance_index, is_visible, reason"
    assert ask(place, f"SELECT {columns} FROM visibility {of_it}") == [
        (0, True, None),
        (1, True, None),
        (2, False, "no words to search for"),
    ]
    thresholds = json.loads(ask(place, "SELECT thresholds FROM runs")[0][0])
    assert thresholds == {"first_sentence": 0.4, "decon": 0.8}
    assert ask(place, f"SELECT status FROM items_by_detector {of_it} ORDER BY instance_index") == [
        ("leaked",),
        ("clean",),
        ("cannot be checked",),
    ]
    near_miss = {"detector": "first_sentence", "kind": None, "is_by_score": False}
    near_miss |= {"score": 8 / len(SHORT), "base_score": 8 / len(SHORT), "question_tokens": 60}
    assert [*missing(near_miss, policy, {})] == ["score 0.03 (needed: 0.40)"]
    card = card_from(summary_of(report_in(place / "found")))
    assert f"| `first_sentence` | {FirstSentence.summary} | 0.4 |" in card
    page = packed_in(place / "found" / "report.html").values()
    assert any("Detectors: " in one and "first_sentence (threshold 0.4)" in one for one in page)


@pytest.mark.usefixtures("first_sentence")
def test_its_threshold_decides_and_its_floor_is_scanned(place):
    text = 'detectors = ["first_sentence"]\ntokenizer_str = "words"\n'
    policy = scanned(place, text + "[benchmark.ferries]\nfirst_sentence_threshold = 0.49")
    assert ask(place, "SELECT score >= 0.4, is_contaminated FROM matches") == [(True, False)]
    other = Policy.from_mapping({"detectors": ["first_sentence"], "tokenizer_str": "words"})
    assert fingerprint(policy) == fingerprint(other)
    lower = {"detectors": ["first_sentence"], "tokenizer_str": "words", "first_sentence_floor": 0.1}
    assert fingerprint(Policy.from_mapping(lower)) != fingerprint(other)


def fingerprint(policy):
    return policy.scan_fingerprint(tokenizer="t", snapshot="s")


@pytest.mark.usefixtures("first_sentence")
def test_its_settings_are_validated_and_do_not_change_other_scan_results():
    with pytest.raises(ConfigError, match=r"(?i)did you mean 'first_sentence_floor'"):
        Policy.from_mapping({"first_sentence_flor": 1})
    with pytest.raises(ConfigError, match=r"first_sentence_floor: found 0\.2; expected above 0"):
        Policy.from_mapping({"first_sentence_threshold": 0.1})
    given = Policy.from_mapping({"first_sentence_floor": 0.1})
    assert fingerprint(given) == fingerprint(Policy())
    assert advice(["first_sentence"]).count(FirstSentence.advice) == 1


def test_a_second_detector_of_a_name_is_refused():
    class Exact(Detector):
        name = "exact"
        summary = "another one"
        reads = Reads.TEXTS
        threshold = Threshold(setting="exact_threshold")

    with pytest.raises(InputError, match="a second detector 'exact'"):
        registry.register(Exact)


ROW = {field.name: None for field in MATCHES} | {"detector": "exakt", "base_score": 1.0}
MATCHED = MatchedText(
    **dict.fromkeys((field.name for field in fields(MatchedText)), "")
    | {"detectors": "exakt", "score": 0.6, "n_documents": 1}
)
MATCH = pa.table({name: pa.array([value]) for name, value in ROW.items()})


def test_a_page_of_another_version_may_name_a_detector_that_is_unknown_here():
    assert registry.find("exakt") is None
    assert "exakt" not in advice(["exakt"])


@pytest.mark.parametrize(
    "ask_for",
    [
        lambda: Policy(detectors=("exakt",)),
        lambda: Policy().threshold_of("exakt"),
        lambda: detector("exakt"),
        lambda: judge(MATCH, Policy()),
        lambda: highest_thresholds(MATCH, Policy()),
        lambda: registry.in_order(["decon", "exakt"]),
        lambda: doubt(MATCHED, Policy()),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(ask_for):
    with pytest.raises(InputError, match=", ".join(BUILT_IN)) as error:
        ask_for()
    assert "exakt" in str(error.value)
