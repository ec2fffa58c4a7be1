"""No property fails because a machine is slow."""

import ast
import os
import time
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import HYPOTHESIS_PROFILE

TESTS = Path(__file__).parent


def test_the_profile_without_clocks_is_in_force():
    assert settings.get_current_profile_name() == HYPOTHESIS_PROFILE
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


@settings(max_examples=2, database=None)
@given(st.integers())
def test_an_example_may_take_longer_than_the_deadline_of_the_library(number):
    time.sleep(0.25)  # its default is 200 ms
    assert isinstance(number, int)


def test_in_ci_the_examples_are_the_same_each_time():
    assert "DECON_FIXED_EXAMPLES=1" in (TESTS.parent / ".ci" / "run").read_text()
    assert settings().derandomize == bool(os.environ.get("DECON_FIXED_EXAMPLES"))


def calls_of_settings() -> Iterator[tuple[str, ast.keyword]]:
    texts = ((path, path.read_text()) for path in sorted(TESTS.rglob("*.py")))
    for path, text in ((path, text) for path, text in texts if "settings(" in text):
        for node in ast.walk(ast.parse(text)):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id == "settings":
                yield from ((f"{path.name}:{node.lineno}", keyword) for keyword in node.keywords)


def test_no_test_brings_a_deadline_back():
    calls = [*calls_of_settings()]
    assert [place for place, keyword in calls if keyword.arg == "deadline"] == []
    assert len(calls) > 20
