"""The audit of the lock file: what it accepts, and what it names."""

import importlib.util
import sys
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
HASHES = f"    --hash=sha256:{'a1' * 32} \\\n    --hash=sha256:{'b2' * 32}\n"


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("lock_audit", ROOT / "deploy" / "lock_audit.py")
    program = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = program  # where dataclasses look for it
    spec.loader.exec_module(program)
    return program


def package(version="1.0", *, expression=None, classifiers=(), text=None):
    metadata = Message()
    for name, value in (("License-Expression", expression), ("License", text)):
        if value:
            metadata[name] = value
    for one in classifiers:
        metadata["Classifier"] = f"License :: OSI Approved :: {one}"
    return SimpleNamespace(version=version, metadata=metadata)


def test_the_lock_file_of_the_project_passes(program, capsys):
    assert program.main(str(ROOT / "requirements.lock")) == 0
    assert ", 0 problems\n" in capsys.readouterr().out


def test_every_package_of_the_lock_file_is_audited_or_named(program):
    lock = (ROOT / "requirements.lock").read_text()
    found = program.audit(lock, program.installed_packages())
    names = {line.split("==")[0].split("[")[0] for line in lock.splitlines() if line[0] != " "}
    assert found.audited | found.elsewhere == {name.replace("_", "-").lower() for name in names}


@pytest.mark.parametrize(
    ("lock", "problem"),
    [
        ("a==1.0\n", "a: no SHA-256 hashes"),
        ("a==1.0 \\\n    --hash=md5:00\n", "a: no SHA-256 hashes"),
        (f"a>=1.0 \\\n{HASHES}", "a: not pinned to one version"),
        (f"a==1.1 \\\n{HASHES}", "a: 1.0 is installed, expected 'a==1.1'"),
        (f"a==1.0 \\\n{HASHES}b==2.0 \\\n{HASHES}", "b: not installed"),
    ],
)
def test_what_is_wrong_with_a_lock_file_is_named(program, lock, problem):
    (found,) = program.audit(lock, {"a": package(expression="MIT")}).problems
    assert found.startswith(problem)


def test_packages_for_other_systems_and_those_besides_the_lock_file_are_named(program):
    lock = f"a==1.0 \\\n{HASHES}w==3.0 ; sys_platform == 'nowhere' \\\n{HASHES}"
    found = program.audit(lock, {"a": package(expression="MIT"), "z": package()})
    assert (found.problems, found.audited) == ([], {"a"})
    assert (found.elsewhere, found.unlocked) == ({"w"}, {"z"})


def test_an_empty_lock_file_fails(program, tmp_path):
    (tmp_path / "empty.lock").write_text("")
    assert program.main(str(tmp_path / "empty.lock")) == 1


@pytest.mark.parametrize(
    ("is_allowed", "stated"),
    [
        (True, {"expression": "MIT OR GPL-3.0-only"}),
        (False, {"expression": "MIT AND GPL-3.0-only"}),
        (True, {"expression": "BSD-2-Clause AND Apache-2.0 WITH LLVM-exception"}),
        (False, {"expression": "AGPL-3.0-or-later"}),
        (True, {"classifiers": ["MIT License", "BSD License"]}),
        (False, {"classifiers": ["MIT License", "GNU General Public License v3 (GPLv3)"]}),
        (True, {"text": "Apache 2.0"}),
        (False, {"text": "Apache 2.0 and a proprietary part"}),
        (False, {}),
    ],
)
def test_licenses_are_read_as_expressions_classifiers_or_words(program, is_allowed, stated):
    found = program.audit(f"a==1.0 \\\n{HASHES}", {"a": package(**stated)})
    assert (found.problems == []) == is_allowed
