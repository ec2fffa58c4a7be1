"""What is tried again, and what is not."""

import errno

import pytest
from dagster import AssetKey, DagsterEventType, asset, materialize

from decon_assets import failures
from decon_assets.failures import dagster_failures
from decon_core.errors import CorpusError, Problem


def tries_of(error):
    """How often a step was tried that raises an error each time, and what it said in the end."""
    n_tries = 0

    @asset
    def fails() -> None:
        nonlocal n_tries
        n_tries += 1
        with dagster_failures():
            raise error

    result = materialize([fails], raise_on_error=False)
    assert not result.success
    assert fails.key == AssetKey("fails")
    (failure,) = result.get_step_failure_events()
    assert failure.event_type == DagsterEventType.STEP_FAILURE
    return n_tries, failure.step_failure_data


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ETIMEDOUT, errno.EIO, errno.ESTALE])
def test_what_may_pass_is_tried_three_times_and_told_in_the_end(monkeypatch, number):
    monkeypatch.setattr(failures, "_SECONDS_BEFORE_RETRY", 0)
    n_tries, told = tries_of(OSError(number, "of a disk or a network"))
    assert n_tries == 3
    assert "of a disk or a network" in told.error.to_string()


@pytest.mark.parametrize(
    ("error", "n_expected"),
    [
        (OSError("Stale file handle (os error 116): /mnt/a.parquet"), 3),  # as polars tells it
        (OSError("No such file or directory (os error 2): /mnt/a.parquet"), 1),
        (OSError("something else"), 1),
    ],
)
def test_an_error_whose_number_stands_in_its_text_is_taken_for_what_it_is(
    monkeypatch, error, n_expected
):
    monkeypatch.setattr(failures, "_SECONDS_BEFORE_RETRY", 0)
    assert tries_of(error)[0] == n_expected


def test_a_store_that_nobody_reaches_is_tried_again(monkeypatch):
    from botocore.exceptions import EndpointConnectionError

    monkeypatch.setattr(failures, "_SECONDS_BEFORE_RETRY", 0)
    error = EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
    assert tries_of(error)[0] == 3


def test_what_the_core_says_is_told_at_once_with_place_and_reason():
    problem = Problem("web/a.jsonl", "cut off", "a whole file", "replace it")
    n_tries, told = tries_of(CorpusError(problem))
    assert n_tries == 1
    assert "web/a.jsonl" in told.user_failure_data.description


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "not yours"), ValueError("ours")])
def test_what_will_not_pass_is_not_tried_again(error):
    assert tries_of(error)[0] == 1
