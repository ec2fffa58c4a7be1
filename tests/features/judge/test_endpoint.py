"""Asking an endpoint: a real server that answers well, slowly, wrongly, too often, or dies."""

import json
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from decon_core.errors import InputError
from decon_core.features.endpoints.chat import ask, endpoint_address
from decon_core.features.endpoints.json_endpoint import seconds_until
from decon_core.features.endpoints.requests import Request
from decon_core.features.judge.judging import JUDGING
from decon_core.features.judge.settings import Judge
from tests.features.endpoints.chat_server import GOOD, Reply, answer, serving

SETTINGS = Judge(model="m", first_wait=0.001, retries=2, concurrency=3, timeout=60.0)


def requests(n):
    return [Request(f"{k}", f"number {k}", 10, ((f"{k:016x}", "f" * 16),)) for k in range(n)]


def asked(server, n=5, settings=SETTINGS, **options):
    """What came of n requests, by number, and what was spent."""
    outcomes = {}

    def keep(request, outcome, _):
        outcomes[int(request.digest)] = outcome

    spent = ask(requests(n), replace(settings, url=server.url), keep, task=JUDGING, **options)
    return outcomes, spent


def reasons(outcomes):
    return {number: one.unjudged for number, one in sorted(outcomes.items())}


def test_good_answers_are_taken_as_they_are():
    with serving(lambda *_: Reply(answer(n_tokens=70))) as server:
        outcomes, spent = asked(server, 7, key="secret")
    assert {one.judgement["is_sd"] for one in outcomes.values()} == {True}
    assert all(one.judgement == GOOD for one in outcomes.values())
    assert (spent.n_requests, spent.n_judged, spent.n_failed, spent.n_tokens) == (7, 7, 0, 490)
    assert {*server.keys} == {"Bearer secret"}
    assert server.bodies[0]["temperature"] == 0
    assert server.bodies[0]["response_format"]["type"] == "json_schema"


def test_no_more_requests_are_under_way_than_allowed():
    together, most, lock = 0, 0, threading.Lock()

    def behave(*_):
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.01)
        with lock:
            together -= 1
        return Reply(answer())

    with serving(behave) as server:
        outcomes, _ = asked(server, 20)
    assert len(outcomes) == 20
    assert most <= SETTINGS.concurrency


def test_an_answer_that_never_comes_is_given_up():
    never = threading.Event()
    hold = {1: never}
    with serving(lambda _, item, __: Reply(answer(), hold=hold.get(item))) as server:
        outcomes, spent = asked(server, 3, replace(SETTINGS, timeout=0.2))
        never.set()
    assert reasons(outcomes) == {0: "", 1: "no answer within 0.2 s", 2: ""}
    assert server.asked[1] == 3
    assert spent.n_failed == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(answer("I would say yes.")), "no JSON object"),
        (Reply(answer('{"is_sd": true}')), "no reasoning; no match_type; no confidence"),
        (Reply(answer(match_type="same")), "match_type: found 'same'"),
        (Reply(answer(match_type="unrelated")), "match_type: found 'unrelated' with is_sd = true"),
        (Reply(answer(confidence=2)), "confidence: found 2"),
        (Reply(answer(is_sd="yes")), "is_sd: found 'yes'"),
        (Reply({"error": "none"}), "not a response from a chat endpoint"),
        (Reply(raw=b"\xff\xfe<html>"), "not a response from a chat endpoint"),
        (Reply(raw=b"[" * 100_000), "not a response from a chat endpoint"),
        (Reply(raw=b"x" * 2_000_000), "more than 1,048,576 bytes"),
        (Reply(raw=b'{"choices": [{"message": {"content": null}}]}'), "an answer without text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_garbage_is_tried_again_then_unjudged(reply, reason):
    with serving(lambda _, item, __: reply if item == 1 else Reply(answer())) as server:
        outcomes, spent = asked(server, 3)
    assert outcomes[1].judgement is None
    assert reason in outcomes[1].unjudged
    assert server.asked == {0: 1, 1: 3, 2: 1}
    assert (spent.n_judged, spent.n_failed, spent.n_requests) == (2, 1, 5)


def test_an_answer_without_text_takes_the_tokens_that_the_endpoint_states():
    raw = b'{"choices": [{"message": {"content": null}}], "usage": {"total_tokens": 7}}'
    with serving(lambda *_: Reply(raw=raw)) as server:
        _, spent = asked(server, 1)
    assert spent.n_tokens == 7 * spent.n_requests


def test_a_judgement_within_other_text_is_found_and_the_last_one_counts():
    first, last = json.dumps({**GOOD, "confidence": 0.1}), json.dumps(GOOD)
    text = f"<think>maybe {first} or {{not json}}</think>\n```json\n{last}\n```"
    with serving(lambda *_: Reply(answer(text))) as server:
        outcomes, _ = asked(server, 1)
    assert outcomes[0].judgement == GOOD


@pytest.mark.parametrize("status", [429, 500, 502, 503, 408])
def test_errors_that_pass_are_tried_again(status):
    def behave(number, item, _):
        return Reply({}, status=status) if number < 2 else Reply(answer())

    with serving(behave) as server:
        outcomes, spent = asked(server, 4)
    assert reasons(outcomes) == dict.fromkeys(range(4), "")
    assert spent.n_requests == 6


def test_nothing_is_sent_before_the_time_that_the_server_names():
    times = []

    def behave(number, *_):
        times.append(time.monotonic())
        first = Reply({}, status=429, headers={"Retry-After": "1"})
        return first if number == 0 else Reply(answer())

    with serving(behave) as server:
        outcomes, _ = asked(server, 6, replace(SETTINGS, concurrency=1))
    assert len(outcomes) == 6
    assert times[1] - times[0] >= 1.0


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for():
    late = Reply({}, status=429, headers={"Retry-After": "86400"})
    with serving(lambda _, item, __: late if item == 0 else Reply(answer())) as server:
        outcomes, _ = asked(server, 2)
    assert reasons(outcomes) == {0: "HTTP 429: retry after 86400 s", 1: ""}


def test_one_request_that_the_server_refuses_leaves_the_others():
    bad = Reply({"error": {"message": "context too long"}}, status=400)
    with serving(lambda _, item, __: bad if item == 2 else Reply(answer())) as server:
        outcomes, _ = asked(server, 4)
    assert reasons(outcomes)[2] == 'HTTP 400 ({"error": {"message": "context too long"}})'
    assert server.asked[2] == 1
    assert sum(one.judgement is not None for one in outcomes.values()) == 3


@pytest.mark.parametrize("status", [401, 403, 404, 308])
def test_an_endpoint_that_refuses_everything_ends_the_command(status):
    reply = Reply({}, status=status, headers={"Location": "/x"})
    refused = pytest.raises(InputError, match=f"HTTP {status}")
    with serving(lambda *_: reply) as server, refused:
        asked(server, 50)
    assert server.asked.total() <= SETTINGS.concurrency


def test_a_connection_that_breaks_within_an_answer_is_tried_again():
    def behave(number, *_):
        return Reply(answer(), hang_up_after=20) if number == 0 else Reply(answer())

    with serving(behave) as server:
        outcomes, spent = asked(server, 3)
    assert reasons(outcomes) == {0: "", 1: "", 2: ""}
    assert spent.n_requests == 4


def test_a_server_that_dies_leaves_the_rest_unjudged_and_is_not_asked_forever():
    def behave(number, *_):
        if number == 10:
            threading.Thread(target=server.stop).start()
        return Reply(answer(), hang_up_after=None if number < 10 else 5)

    with serving(behave) as server:
        outcomes, spent = asked(server, 200)
    n_judged = sum(one.judgement is not None for one in outcomes.values())
    assert n_judged == spent.n_judged == 10
    assert spent.stopped.endswith("failures in a row")
    assert len(outcomes) < 40
    assert all(
        "connection failed" in one.unjudged for one in outcomes.values() if not one.judgement
    )


def test_limits_of_requests_and_tokens_are_kept():
    with serving(lambda *_: Reply(answer(n_tokens=100))) as server:
        outcomes, spent = asked(server, 9, replace(SETTINGS, max_requests=4))
        assert (len(outcomes), spent.n_requests, server.asked.total()) == (4, 4, 4)
        assert spent.stopped == "judge.max_requests = 4"
        limited = replace(SETTINGS, max_tokens=1000, parameters={"max_tokens": 90}, concurrency=1)
        outcomes, spent = asked(server, 50, limited)
    assert spent.n_tokens <= 1000
    assert len(outcomes) == 10


def test_a_retry_beyond_the_limit_is_not_sent():
    with serving(lambda *_: Reply({}, status=500)) as server:
        outcomes, spent = asked(server, 3, replace(SETTINGS, max_requests=2, concurrency=1))
    assert reasons(outcomes) == {0: "HTTP 500; no retry: judge.max_requests = 2"}
    assert spent.n_requests == 2


def test_the_header_may_be_a_number_or_a_date():
    assert seconds_until("2.5") == 2.5
    assert seconds_until(None) == seconds_until("soon") == seconds_until("-3") == 0
    then = datetime.now(UTC) + timedelta(seconds=100)
    assert 90 < seconds_until(format_datetime(then, usegmt=True)) <= 100


def test_the_address_may_end_where_people_copy_it_from():
    for url in ("https://a.org/v1", "https://a.org/v1/", "https://a.org/v1/chat/completions"):
        assert endpoint_address(Judge(url=url)) == "https://a.org/v1/chat/completions"
