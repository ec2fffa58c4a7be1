"""What is asked about which pairs: prompts, requests, candidates and their order."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config.load import config_from
from decon_core.decisions.annotations import Annotations
from decon_core.decisions.candidates import (
    Candidate,
    in_fair_order,
    read_annotated,
    read_candidates,
)
from decon_core.errors import ConfigError, InputError
from decon_core.features.endpoints.requests import body_of, request_digest
from decon_core.features.judge.judging import (
    JUDGING,
    annotations_of,
    load_judge_prompt,
    plan_requests,
    prompt_about,
)
from decon_core.features.judge.settings import Judge, judge_settings
from tests.features.endpoints.chat_server import GOOD

SETTINGS = Judge(url="http://localhost:1/v1", model="m")
STUDY = Path(__file__).parents[4] / "shared" / "data" / "semantic" / "judged_pairs.jsonl"


def candidate(number=0, **values):
    return Candidate(
        **{
            "pair": f"{number:016x}",
            "fingerprint": "f" * 16,
            "benchmark": "quiz",
            "item": f"test {number}",
            "detector": "decon",
            "score": 0.5,
            "item_text": f"What is the number {number}?",
            "text": f"Tell me the number {number}.",
            **values,
        }
    )


def plan(pairs, annotations=(), settings=SETTINGS, **options):
    lines = Annotations(tuple(annotations))
    prompt = load_judge_prompt(None)
    return plan_requests(pairs, prompt, settings, lines, count_tokens=len, **options)


def answers(requests, settings=SETTINGS):
    prompt = load_judge_prompt(None)
    return [
        one
        for request in requests
        for one in annotations_of(request, settings, prompt, at="now", said=GOOD)
    ]


# Prompts ------------------------------------------------------------------------------------------


def test_the_prompt_shows_both_texts_and_no_score():
    prompt = load_judge_prompt(None)
    shown = prompt_about(candidate(7, score=0.123456), prompt)
    assert "What is the number 7?" in shown
    assert "Tell me the number 7." in shown
    assert "0.123" not in shown
    assert shown == prompt_about(candidate(7, score=1.0, detector="exact"), prompt)


def test_texts_are_no_templates():
    shown = prompt_about(candidate(text="{{ item }} {% raw %} <b>"), load_judge_prompt(None))
    assert "{{ item }} {% raw %} <b>" in shown


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ item }}", "a template without {{ text }}"),
        ("{{ text }} {{ itme }}", "UndefinedError"),
        ("{{ item }} {{ text }", "TemplateSyntaxError"),
        ("{{ item }} {{ text }} {{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ item }} {{ text }} {{ item.__class__.__mro__ }}", "SecurityError"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_before_anything_is_asked(
    tmp_path, template, message
):
    path = tmp_path / "mine.j2"
    path.write_text(template)
    with pytest.raises(InputError) as error:
        load_judge_prompt(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_another_template_has_another_digest(tmp_path):
    path = tmp_path / "mine.j2"
    path.write_text("{{ item }} or {{ text }}? {{ schema }} {{ match_types[0] }} {{ benchmark }}")
    assert load_judge_prompt(path).digest != load_judge_prompt(None).digest
    with pytest.raises(InputError, match="No such file"):
        load_judge_prompt(tmp_path / "none.j2")


# Requests -----------------------------------------------------------------------------------------


def test_the_digest_is_of_all_that_an_answer_depends_on():
    others = [
        replace(SETTINGS, model="n"),
        replace(SETTINGS, parameters={"temperature": 1}),
        replace(SETTINGS, response_format="text"),
    ]
    digests = {request_digest("p", one) for one in (SETTINGS, *others)}
    assert len(digests) == 4
    assert request_digest("q", SETTINGS) not in digests
    elsewhere = replace(SETTINGS, url="http://elsewhere/v1", concurrency=9, retries=0)
    assert request_digest("p", elsewhere) in digests


def test_what_is_answered_is_not_asked_again():
    pairs = [[candidate(number)] for number in range(4)]
    first = plan(pairs)
    assert (first.n_pairs, len(first.requests), first.n_answered) == (4, 4, 0)
    kept = answers(first.requests[:3])
    again = plan(pairs, kept)
    assert [one.pairs for one in again.requests] == [first.requests[3].pairs]
    assert (again.n_answered, again.copied) == (3, [])
    assert len(plan(pairs, kept, replace(SETTINGS, model="n")).requests) == 4


def test_equal_questions_are_asked_once_for_all_their_pairs():
    twins = [candidate(1), candidate(1, pair="a" * 16, fingerprint="b" * 16)]
    both = plan([[one] for one in twins])
    assert len(both.requests) == 1
    assert both.n_to_ask == 2
    assert [one.pair for one in answers(both.requests)] == [twins[0].pair, "a" * 16]
    later = plan([[one] for one in twins], answers(plan([[twins[0]]]).requests))
    assert [(one.pair, one.fingerprint) for one in later.copied] == [("a" * 16, "b" * 16)]
    assert later.requests == []


def test_pairs_with_a_verdict_or_without_a_text_are_counted_and_not_asked():
    off = {"text": None, "why_no_text": "snippets are off"}
    found = plan([[candidate(1)], [candidate(2, **off)], [candidate(3)]], decided=[f"{3:016x}"])
    assert (found.n_pairs, found.n_by_people, len(found.requests)) == (3, 1, 1)
    assert found.without_text == {"snippets are off": 1}


def test_the_format_of_the_answer_is_asked_for_as_configured():
    (request,) = plan([[candidate()]]).requests
    settings = replace(SETTINGS, parameters={"seed": 3}, response_format="text")
    assert body_of(request, settings, JUDGING) == {
        "model": "m",
        "seed": 3,
        "messages": [{"role": "user", "content": request.prompt}],
    }
    as_object = body_of(request, replace(SETTINGS, response_format="json_object"), JUDGING)
    assert as_object["response_format"] == {"type": "json_object"}


# Candidates ---------------------------------------------------------------------------------------


def test_the_order_does_not_depend_on_that_of_the_candidates():
    rng = random.Random(3)
    every = [
        candidate(number, score=rng.random(), detector=rng.choice(["decon", "ratcliff"]))
        for number in range(60)
    ]
    every += [replace(one, detector="exact") for one in every[:20]]
    order = in_fair_order(every)
    rng.shuffle(every)
    assert in_fair_order(every) == order
    assert in_fair_order(every, seed=1) != order
    assert sorted(len(members) for members in order) == [1] * 40 + [2] * 20


def test_every_beginning_of_the_order_is_spread_over_the_scores():
    every = [candidate(number, score=number / 1000) for number in range(1000)]
    first = in_fair_order(every)[:30]
    bands = [int(members[0].score * 10) for members in first]
    assert {band: bands.count(band) for band in range(10)} == dict.fromkeys(range(10), 3)


def test_candidates_are_read_from_a_file_of_ours_and_of_the_study(tmp_path):
    path = tmp_path / "neighbours.jsonl"
    ours = {"benchmark": "quiz", "split": "test", "instance_index": 3, "item": "a", "text": "b"}
    study = {"benchmark": "mbpp", "test_id": "9", "test_text": "c", "corpus_text": "d"}
    lines = [{**ours, "score": 0.5, "detector": "other"}, {**study, "similarity": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, second = read_candidates(path)
    assert (first.item, first.detector, first.score) == ("test 3", "other", 0.5)
    assert (second.item, second.detector, second.score) == ("9", "neighbours", 1.0)
    assert (second.item_text, second.text) == ("c", "d")
    wrong = {"benchmark": "quiz", "item": "a", "score": "high", "pair": "x"}
    path.write_text(json.dumps(wrong) + "\n")
    with pytest.raises(InputError) as error:
        read_candidates(path)
    assert len(error.value.problems) == 3


def test_a_table_of_candidates_is_read_like_lines(tmp_path):
    rows = [
        {"benchmark": "quiz", "item": "a", "text": f"b{n}", "score": n / 4, "embedding": [0.5]}
        for n in range(3)
    ]
    lines, table = tmp_path / "near.jsonl", tmp_path / "near.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), table)
    assert read_candidates(table) == read_candidates(lines)
    pq.write_table(pa.table({"item": ["a"], "score": ["high"]}), table)
    with pytest.raises(InputError, match=r"near\.parquet: row 0"):
        read_candidates(table)
    table.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="a file of candidates"):
        read_candidates(table)


def test_a_key_that_stands_for_two_texts_is_refused(tmp_path):
    path = tmp_path / "near.jsonl"
    row = {"pair": "0" * 16, "benchmark": "quiz", "item": "a", "text": "b", "score": 0.5}
    others = [{**row, "detector": "exact"}, {**row, "text": "c"}]
    path.write_text(json.dumps(row) + "\n" + json.dumps(others[0]) + "\n")
    assert len(read_candidates(path)) == 2
    path.write_text("".join(json.dumps(one) + "\n" for one in (row, *others)))
    with pytest.raises(InputError, match="two different pairs of texts"):
        read_candidates(path)


@pytest.mark.skipif(not STUDY.is_file(), reason="the labelled data are not here")
def test_the_pairs_of_the_study_are_candidates_and_annotations():
    candidates, annotations = read_candidates(STUDY), read_annotated(STUDY)
    assert [one.pair for one in candidates] == [one.pair for one in annotations]
    assert len({one.pair for one in candidates}) == 97
    assert sum(bool(one.is_sd) for one in annotations) == 85
    assert {one.by for one in annotations} == {"judged_pairs.jsonl"}


# Settings -----------------------------------------------------------------------------------------


def judge_table(**values):
    table = {
        "evals": {"recipes": ["evals.yaml"]},
        "corpus": {"source": [{"name": "web", "path": "web/*.jsonl", "text": "text"}]},
        "judge": values,
    }
    return judge_settings(config_from(table, Path("decon.toml")))


def test_settings_are_read():
    judge = judge_table(url="https://a.org/v1", model="m", key_env="JUDGE_KEY", max_tokens=5)
    assert (judge.key_env, judge.max_tokens, judge.max_requests) == ("JUDGE_KEY", 5, 1000)
    assert judge_table() == Judge()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"key_env": "sk-live-1234"}, "the name of an environment variable"),
        ({"url": "a.org/v1"}, "an address such as"),
        ({"url": "https://ada:pass@a.org/v1"}, "without user name and password"),
        ({"detectors": ["alined"]}, "Did you mean 'aligned'"),
        ({"timeout": 0}, "judge.timeout"),
        ({"modle": "m"}, "Did you mean 'model'"),
        ({"annotations": "s3://a/b"}, "a local file"),
    ],
)
def test_wrong_settings_are_refused_without_repeating_a_secret(values, message):
    with pytest.raises(ConfigError) as error:
        judge_table(**values)
    assert message in str(error.value)
    assert "1234" not in str(error.value)
    assert "pass@" not in str(error.value)
