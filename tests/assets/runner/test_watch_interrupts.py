"""A signal to stop stops a run, also where what it raises is lost or is called a failure."""

import os
import signal
from contextlib import suppress

import pytest

from decon_assets.cli.main import main
from decon_assets.runner.interrupts import watch_interrupts
from decon_assets.runner.pipeline import Pipeline, PipelineError
from decon_core.index.parts import build_part

_STOPPED = "stopped; finished work is kept: run the command again to continue"

stopping = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture(autouse=True)
def dropped():
    """Both signals are taken by a handler that does nothing, as Dagster's does between steps."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: None) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@stopping
def test_a_signal_that_was_dropped_stops_at_the_end_of_the_block(number):
    with pytest.raises(KeyboardInterrupt), watch_interrupts():
        signal.raise_signal(number)
    with watch_interrupts():
        pass  # the next one is not concerned


@stopping
def test_an_error_after_a_signal_is_a_stop_and_one_without_is_that_error(number):
    with pytest.raises(KeyboardInterrupt), watch_interrupts():
        signal.raise_signal(number)
        raise PipelineError("index: failed")
    with pytest.raises(PipelineError), watch_interrupts():
        raise PipelineError("index: failed")


@stopping
def test_a_block_within_another_does_not_begin_after_a_signal_between_them(number):
    begun = []
    with pytest.raises(KeyboardInterrupt), watch_interrupts():
        with watch_interrupts():
            begun.append(1)
        signal.raise_signal(number)
        with watch_interrupts():
            begun.append(2)
    assert begun == [1]


@stopping
def test_a_stage_that_lost_a_signal_stops_at_its_next_message(number, at_home, monkeypatch, capsys):
    calls = []

    def lose(*_, **__):
        calls.append(number)
        with suppress(BaseException):
            os.kill(os.getpid(), number)
        return build_part(*_, **__)

    monkeypatch.setattr("decon_core.index.parts.build_part", lose)
    assert main(["run"]) == 130
    assert calls == [number]  # of two benchmarks
    assert capsys.readouterr().err.splitlines()[-1] == _STOPPED


@pytest.mark.parametrize("of_ctrl_c", [signal.SIG_IGN, signal.default_int_handler])
def test_sigterm_stops_also_where_dagster_does_not_run_yet(of_ctrl_c):
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL), signal.signal(signal.SIGINT, of_ctrl_c)
    with pytest.raises(KeyboardInterrupt), watch_interrupts():
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), watch_interrupts():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))  # as Dagster does
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is of_ctrl_c
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])


def test_a_signal_of_another_kind_is_none_to_stop():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with watch_interrupts():
        signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@stopping
def test_a_signal_that_is_lost_between_two_stages_stops_the_run(
    number, at_home, monkeypatch, capsys
):
    plan_of, seen = Pipeline._plan_of, []

    def lose_the_second(self, registered):
        seen.append(registered)
        if len(seen) == 2:
            with suppress(BaseException):  # as in a callback, whose errors are ignored
                os.kill(os.getpid(), number)
        return plan_of(self, registered)

    monkeypatch.setattr(Pipeline, "_plan_of", lose_the_second)
    assert main(["run"]) == 130
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == _STOPPED
    assert "failed" not in said.out + said.err
    assert len(seen) == 2


@stopping
def test_a_stage_that_turns_the_stop_into_an_error_has_not_failed(
    number, at_home, monkeypatch, capsys
):
    def interrupted(*_, **__):
        try:
            os.kill(os.getpid(), number)
        except BaseException:  # noqa: BLE001 - as a library does
            raise RuntimeError("a library stopped") from None

    monkeypatch.setattr("decon_core.index.parts.build_part", interrupted)
    assert main(["run"]) == 130
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == _STOPPED
    assert "failed" not in said.out + said.err
