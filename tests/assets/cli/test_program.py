"""The process of the command line ends at once, and still does all that Python does at an end."""

import subprocess
import sys

import pytest

END = "\nimport sys; from decon_assets.cli.program import program; sys.exit(program())"


def run(*arguments, before="", **options):
    command = [sys.executable, "-c", before + END, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["run", "--config", "none"], 2), (["none"], 2)]
)
def test_the_exit_code_is_that_of_the_command_and_no_output_is_lost(arguments, code, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert done.stderr if code else done.stdout.startswith("decon-assets ")


def test_objects_are_not_freed():
    # This one would write when it is freed; the next test shows that it is when Python ends.
    assert not run("--version", before=FREED).stderr


FREED = """
import sys
class Freed:
    def __del__(self, write=sys.stderr.write):
        write("freed")
kept = Freed()
"""


def test_an_error_that_nobody_catches_is_reported_and_python_ends_as_usual():
    done = run("--version", before=FREED + "import decon_assets.cli.main as m; m.main = None")
    assert done.returncode == 1
    assert "TypeError" in done.stderr
    assert done.stderr.endswith("freed")


def test_functions_that_libraries_register_for_the_end_are_called():
    late = "import atexit, decon_assets.cli.main as m\n_main = m.main\n"
    late += (
        "def main():\n    atexit.register(print, 'at the end')\n    return _main()\nm.main = main"
    )
    done = run("--version", before=late)
    assert done.stdout.endswith("at the end\n")
    assert done.returncode == 0


def test_threads_that_are_not_done_are_waited_for():
    slow = "import threading, time\n"
    slow += "threading.Thread(target=lambda: (time.sleep(0.5), print('done'))).start()"
    assert "done\n" in run("--version", before=slow).stdout


def test_a_reader_that_is_gone_is_no_error_of_the_command():
    command = [sys.executable, "-c", END, "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.wait() == 0
        assert not process.stderr.read()


def test_the_files_of_the_history_are_closed(tmp_path):
    # SQLite moves the write-ahead log into a file when its last connection closes.
    write = """
from pathlib import Path
import decon_assets.cli.main as m
from decon_assets.instance.home import open_instance
from decon_assets.instance.sqlite_history import write_quickly
def main():
    write_quickly()
    with open_instance(Path("home")) as instance:
        instance.add_dynamic_partitions("packs", ["web"])
    return 0
m.main = main
"""
    done = run(before=write, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.glob("home/history/**/index.db")]
    assert not [*tmp_path.glob("home/**/*-wal")]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_output_that_the_caller_closed_is_no_error(closed):
    command = ["sh", "-c", f'exec "$0" -c "$1" --version {closed}', sys.executable, END]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
