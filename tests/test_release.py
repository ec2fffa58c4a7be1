"""What a release needs: the version from tags, changelog, citation, and the map of rooms."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from decon_assets.cli.main import main

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder, *arguments):
    subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True)


def version_of(folder):
    """The version that a wheel built from this folder has."""
    command = [sys.executable, "-m", "setuptools_scm"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path):
    """The settings of the project in a folder of their own, without git."""
    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def test_the_version_is_the_last_tag_and_counts_commits_after_it(tree, tmp_path):
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    assert re.fullmatch(r"0\.1\.0\.dev1\+g[0-9a-f]+", version_of(tree))
    git(tree, "tag", "v1.2.3")
    assert version_of(tree) == "1.2.3"
    git(tree, "commit", "-qm", "two", "--allow-empty")
    assert re.fullmatch(r"1\.2\.4\.dev1\+g[0-9a-f]+", version_of(tree))
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-tags", tree.as_uri(), "shallow")
    assert re.fullmatch(r"0\.1\.0\.dev1\+g[0-9a-f]+", version_of(tmp_path / "shallow"))


def test_a_tree_without_git_has_a_version(tree):
    assert version_of(tree) == "0.1.0.dev0"


def test_the_command_line_prints_the_version_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"decon-assets {version('decon-assets')}\n"


def test_the_changelog_has_the_form_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.split(r"(?m)^## ", text)[1:]
    heads = [release.partition("\n")[0] for release in releases]
    assert heads[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in heads[1:])
    kinds = {"Added", "Changed", "Changed verdicts", "Deprecated", "Removed", "Fixed", "Security"}
    for release in releases:
        sections = re.findall(r"(?m)^### (.+)$", release)
        assert set(sections) <= kinds
        assert len(sections) == len(set(sections))


def test_the_citation_agrees_with_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])
    assert citation["abstract"] == PROJECT["description"]
    assert "version" not in citation  # it would have to follow the tags


@pytest.mark.parametrize("package", ["decon_core", "decon_assets"])
def test_the_map_has_every_room_with_the_first_line_of_its_docstring(package):
    rooms = {}
    for path in (ROOT / package).iterdir():
        if (path / "__init__.py").is_file():
            rooms[f"{path.name}/"] = path / "__init__.py"
        elif path.suffix == ".py" and path.name != "__init__.py":
            rooms[path.name] = path
    expected = {
        f"| `{room}` | {ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]} |"
        for room, path in rooms.items()
    }
    table = CONTRIBUTING.split(f"\n`{package}`, ")[1].split("\n\n")[1]
    assert {line for line in table.splitlines() if line.startswith("| `")} == expected


def test_the_modules_that_docstrings_name_exist():
    paths = [path for package in ("decon_core", "decon_assets") for path in all_modules(package)]
    known = [f"/{path.relative_to(ROOT)}" for path in (*paths, *all_modules("tests"))]
    for path in paths:
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        for name in re.findall(r"(?<![\w/])[\w/]+\.py\b", text):
            assert "NAME" in name or any(one.endswith(f"/{name}") for one in known), (path, name)


def all_modules(package):
    return (ROOT / package).rglob("*.py")


def test_the_files_that_contributing_names_exist():
    for path in re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", CONTRIBUTING):
        roots = (ROOT, ROOT / "decon_core", ROOT / "decon_core" / "corpus", ROOT / "decon_assets")
        assert "NAME" in path or any((root / path).exists() for root in roots), path
