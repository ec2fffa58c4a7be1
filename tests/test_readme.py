"""Check the README: numbers, commands, links, and the leak on its first screen."""

import gzip
import json
import re
from pathlib import Path

from decon_assets.cli.main import main
from decon_core.benchmarks.catalog import catalog

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_it_opens_with_the_two_commands():
    commands = [line.split("#")[0].strip() for line in README.splitlines() if "make " in line]
    assert commands[:2] == ["make demo", "make test"]


def test_the_catalog_has_as_many_recipes_as_it_says():
    recipes = Path(__file__).parents[1].joinpath("docs", "recipes.md").read_text(encoding="utf-8")
    for text in (README, recipes):
        (number,) = re.findall(r"has (\d+) recipes", text)
        assert int(number) == len(catalog())


def test_every_file_it_points_to_is_there():
    for target in re.findall(r"\]\(((?:docs|data)/[^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_command_it_names_exists():
    names = set(re.findall(r"(?m)(?:`|^[ $]*)decon-assets ([a-z]+)", README))
    assert names >= {"scan", "catalog", "init", "run", "report", "why", "review", "dev"}
    for name in names:
        assert main([name, "--help"]) == 0


def test_the_training_document_on_the_first_screen_is_in_the_corpus():
    with gzip.open(ROOT / "data" / "corpus" / "shelf-0001.jsonl.gz") as file:
        row = json.loads(file.read().splitlines()[393])
    assert "The first row has nine seats. For the première" in row["text"]
    assert "The rows that can be sold are the first nine." in row["text"]
