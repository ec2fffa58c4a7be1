"""How many cores and workers there are, and what is done beside."""

import os
import threading
import time
from contextlib import closing

import pytest

from decon_core.errors import ConfigError
from decon_core.execution.jobs import (
    BYTES_PER_SHARD,
    WORKERS_VARIABLE,
    in_subprocess,
    one_ahead,
    usable_cores,
    useful_workers,
    wanted_workers,
)
from decon_core.execution.progress import JobCounts, Tracker


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be bound here")
def test_cores_that_a_process_is_not_bound_to_do_not_count(monkeypatch):
    monkeypatch.delenv(WORKERS_VARIABLE, raising=False)
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == wanted_workers() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert usable_cores() == len(before)


def test_where_affinity_is_not_known_all_cores_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert usable_cores() == 7


def test_the_environment_may_say_how_many_workers_there_are(monkeypatch):
    monkeypatch.setenv(WORKERS_VARIABLE, "17")
    assert wanted_workers() == 17
    for wrong in ("0", "many", "-1", "1.5"):
        monkeypatch.setenv(WORKERS_VARIABLE, wrong)
        with pytest.raises(ConfigError, match="an integer of at least 1"):
            wanted_workers()


def test_many_small_shards_are_worth_workers_when_files_are_written_of_them():
    assert useful_workers(2, [1_000] * 5_000) == 0
    assert useful_workers(2, [1_000 + BYTES_PER_SHARD] * 100) == 0
    assert useful_workers(2, [1_000 + BYTES_PER_SHARD] * 640) == 2
    assert useful_workers(2, [1_000_000_000]) == 1


def test_all_progress_of_a_job_is_reported_before_it_counts_as_ended():
    reported = []
    counts = JobCounts(2)
    tracker = Tracker(counts, lambda n: reported.append((n, counts.n_done + counts.n_failed)))
    tracker.start(0)
    tracker.advance(0, 4)
    tracker.report()
    tracker.advance(0, 6)
    tracker.end(0, is_failed=False)
    tracker.advance(1, 10)
    tracker.end(1, is_failed=True)
    tracker.report()
    assert reported == [(4, 0), (10, 0), (20, 1), (20, 2)]


def test_a_job_beside_is_done_when_its_block_ends(tmp_path):
    with in_subprocess(os.mkdir, str(tmp_path / "made")):
        pass
    assert (tmp_path / "made").is_dir()
    with in_subprocess(os.mkdir, str(tmp_path / "no" / "such" / "folder")):
        pass  # lost time, and nothing else


def test_nobody_waits_for_a_job_beside_when_the_block_fails():
    started = time.monotonic()
    with pytest.raises(RuntimeError), in_subprocess(time.sleep, 3600):
        raise RuntimeError
    assert time.monotonic() - started < 1800  # however loaded the machine is


class BrokenError(Exception):
    """What a generator of these tests raises."""


def counting(n, *, ended=None, is_broken=False):
    try:
        yield from range(n)
        if is_broken:
            raise BrokenError
    finally:
        if ended is not None:
            ended.append(n)


def n_threads():
    return threading.active_count()


@pytest.mark.parametrize("n", [0, 1, 5])
def test_items_made_one_ahead_are_the_same_in_the_same_order(n):
    before, ended = n_threads(), []
    assert [*one_ahead(counting(n, ended=ended))] == [*range(n)]
    assert (n_threads(), ended) == (before, [n])


def test_one_item_is_made_ahead_while_the_caller_has_another():
    made, is_next_made = [], threading.Event()

    def items():
        for number in range(4):
            made.append(number)
            if number == 1:
                is_next_made.set()
            yield number

    with closing(one_ahead(items())) as ahead:
        assert next(ahead) == 0
        assert is_next_made.wait(60)
        assert made == [0, 1]


def test_an_error_of_what_is_made_ahead_comes_after_the_same_items():
    before, items = n_threads(), []
    with pytest.raises(BrokenError):
        items.extend(one_ahead(counting(3, is_broken=True)))
    assert (items, n_threads()) == ([0, 1, 2], before)


@pytest.mark.parametrize("n_taken", [0, 1, 2])
def test_the_thread_and_the_generator_end_when_the_caller_stops(n_taken):
    before, ended = n_threads(), []
    ahead = one_ahead(counting(9, ended=ended))
    assert [next(ahead) for _ in range(n_taken)] == [*range(n_taken)]
    ahead.close()
    assert (n_threads(), ended) == (before, [9] * (n_taken > 0))
