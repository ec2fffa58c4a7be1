"""The tutorial, run word by word: its commands, in its order, have the output that it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.release

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
BLOCK = re.compile(r"(?m)^```(sh|console)\n((?s:.*?))^```$")


def run(command, folder):
    """The output of a command, as a terminal shows it."""
    program = Path(sys.executable).parent
    environment = {name: value for name, value in os.environ.items() if "DAGSTER" not in name}
    environment["PATH"] = f"{program}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def pattern(shown):
    """What the output has to match: a line `…` stands for any lines, elsewhere for any text."""
    lines = [re.escape(line).replace("…", ".*") for line in shown.splitlines()]
    return "".join("(?:.*\n)*?" if line == ".*" else f"{line} *\n" for line in lines)


def test_every_command_has_the_output_that_the_page_shows(tmp_path):
    blocks = BLOCK.findall(PAGE)
    assert PAGE.count("```") == 2 * len(blocks)  # nothing else is shown as code
    for kind, text in blocks:
        if kind == "sh":
            assert run(text, tmp_path) == ""
            continue
        command, _, shown = text.removeprefix("$ ").partition("\n")
        assert text.startswith("$ ")
        output = run(command, tmp_path)
        assert re.fullmatch(pattern(shown), output), f"$ {command}\n{output}\nexpected:\n{shown}"
    assert (tmp_path / ".decon" / "report" / "report.html").is_file()
