"""A program in a session of its own: its output, its exit code, the end of its processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_SUPERVISOR = """
import sys
from decon_assets.runner.supervisor import run_supervised
try:
    sys.exit(run_supervised([sys.executable, "-c", sys.argv[1]]))
except KeyboardInterrupt:
    sys.exit("interrupted")
"""

_LEAVES_ONE = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(child.pid)
sys.exit(7)
"""

_STUBBORN = """
import os, signal, time
from pathlib import Path
signal.signal(signal.SIGINT, lambda *_: Path("interrupted").touch())
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
while True:
    time.sleep(1)
"""

_OBEDIENT = """
import os, time
print("No cursor for event type DagsterEventType.RUN_FAILURE", flush=True)
print(os.getpid(), flush=True)
time.sleep(3600)
"""


def supervised(program: str, hangup: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[str]:
    """Start it with this handler of SIGHUP: these tests may themselves run under `nohup`."""
    before = signal.signal(signal.SIGHUP, hangup)
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _SUPERVISOR, program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGHUP, before)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_program_writes_is_copied_and_its_exit_code_kept():
    with supervised("print('one'); print('two'); raise SystemExit(3)") as process:
        said, _ = process.communicate()
    assert (said, process.returncode) == ("one\ntwo\n", 3)


def test_a_process_that_a_program_leaves_behind_is_ended():
    with supervised(_LEAVES_ONE) as process:
        said, _ = process.communicate()
    assert process.returncode == 7
    assert not is_alive(int(said))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_the_program_whose_last_words_are_dropped(number):
    with supervised(_OBEDIENT) as process:
        first = process.stdout.readline()  # the line before it is one that is always dropped
        os.kill(process.pid, number)
        said, complaint = process.communicate()
    assert (said, complaint, process.returncode) == ("", "interrupted\n", 1)
    assert not is_alive(int(first))


def test_a_hangup_that_nohup_has_ignored_stops_nothing():
    with supervised(_OBEDIENT, signal.SIG_IGN) as process:
        program = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGHUP)
        assert is_alive(program)
        os.kill(process.pid, signal.SIGTERM)
        _, complaint = process.communicate()
    assert complaint == "interrupted\n"
    assert not is_alive(program)


def test_a_second_signal_kills_a_program_that_ignores_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with supervised(_STUBBORN) as process:
        program = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGINT)
        while not Path("interrupted").exists():
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        said, complaint = process.communicate()
    assert (said, complaint, process.returncode) == ("", "interrupted\n", 1)
    assert not is_alive(program)
