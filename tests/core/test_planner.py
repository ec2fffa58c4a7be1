"""The plan of a configuration: the files that it reads, and what it finds on disk."""

import json
import os
from pathlib import Path

import pytest

from decon_core.benchmarks.configured import benchmarks_of
from decon_core.config.load import load_config
from decon_core.corpus.packs import Pack
from decon_core.errors import ConfigError
from decon_core.planner import Plan, input_files
from decon_core.storage.store import Store


def config_of(folder, *, n_benchmarks):
    recipe = {"local_path": "x.jsonl", "splits": ["test"], "prompt": "q", "answers": ["a"]}
    recipes = {f"b{at}": recipe for at in range(n_benchmarks)}
    (folder / "evals.yaml").write_text(json.dumps({"evals": recipes}))
    path = folder / "decon.toml"
    path.write_text(
        """
        [evals]
        recipes = ["evals.yaml"]
        [[corpus.source]]
        name = "web"
        path = "web/*.jsonl"
        text = "text"
        """
    )
    return load_config(path)


def test_packs_just_registered_are_in_the_order_of_names_like_those_of_the_store(tmp_path):
    """In the order of the sources, a blend of two was made anew by every run."""
    config = config_of(tmp_path, n_benchmarks=1)
    packs = [
        Pack(name=name, source=config.corpus.sources[0], shards=())
        for name in ("web-0000", "agents-0000")
    ]
    plan = Plan(config, Store(tmp_path / "store"), tuple(packs))
    assert [pack.name for pack in plan.packs] == ["agents-0000", "web-0000"]


def config_of_a_translation(folder, template, **recipe):
    """Return a configuration with a blend that inserts a translation benchmark."""
    config = config_of(folder, n_benchmarks=1)
    recipe = {"local_path": "x.jsonl", "splits": ["test"], "source": "de", "target": "en"} | recipe
    (folder / "evals.yaml").write_text(json.dumps({"evals": {"mt": recipe}}))
    path = folder / "decon.toml"
    path.write_text(
        path.read_text()
        + f"""
        [[mixture]]
        name = "all"
        [[blend]]
        name = "leaky"
        of = "all"
        [[blend.contamination]]
        benchmarks = ["mt"]
        copies = 1
        template = "{template}"
        """
    )
    return load_config(config.path)


def test_all_files_that_a_configuration_reads_are_listed_with_what_changes_when_they_do(tmp_path):
    config = config_of(tmp_path, n_benchmarks=2)
    (tmp_path / "web").mkdir()
    names = ("decon.toml", "evals.yaml", "verdicts.jsonl", "web/a.jsonl", "web/b.jsonl", "x.jsonl")
    for name in names[2:]:
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "web" / "notes.txt").touch()
    found = input_files(config)
    assert [one.path for one in found] == [str(tmp_path / name) for name in names]
    assert {one.n_bytes for one in found[2:]} == {2}
    assert input_files(config) == found
    os.utime(tmp_path / "web" / "a.jsonl", ns=(7, 7))
    (tmp_path / "x.jsonl").unlink()
    after = input_files(config)
    assert after[3][:2] == found[3][:2]
    assert after[3].version != found[3].version
    assert [*after[:3], after[4]] == [*found[:3], found[4]]
    assert len(after) == 5


@pytest.mark.parametrize(
    ("template", "recipe", "named"),
    [
        ("German: {question} English: {answer}", {}, "English and German"),
        ("In French: {question} {answer}", {}, "French"),
        ("Deutsch: {question} {answer}", {"source_language": "Deutsch"}, "Deutsch"),
        ("{source_language}: {question} {target_language}: {answer}", {}, None),
        ("Germany: {question} {answer}", {}, None),
        ("German: {question} English: {answer}", {"both_directions": False}, None),
    ],
)
def test_a_template_that_names_a_language_is_refused_for_both_directions(
    tmp_path, template, recipe, named
):
    recipe = {"both_directions": True} | recipe
    if "source_language" in recipe:
        recipe["target_language"] = "Englisch"
    config = config_of_a_translation(tmp_path, template, **recipe)
    if named is None:
        assert [*benchmarks_of(config)] == ["mt"]
        return
    with pytest.raises(ConfigError) as error:
        benchmarks_of(config)
    (problem,) = error.value.problems
    assert problem.where == "blend 'leaky': contamination[0].template"
    assert f"the language {named} for 'mt'" in problem.found
    assert "{source_language} and {target_language}" in problem.expected


def test_a_recipe_that_is_wrong_hides_its_own_files_only(tmp_path):
    config = config_of(tmp_path, n_benchmarks=1)
    (tmp_path / "x.jsonl").touch()
    assert str(tmp_path / "x.jsonl") in {one.path for one in input_files(config)}
    (tmp_path / "evals.yaml").write_text("evals: [")
    assert [one.path for one in input_files(config)] == [
        str(tmp_path / name) for name in ("decon.toml", "evals.yaml")
    ]


def test_what_another_source_or_another_setting_reads_is_not_skipped(tmp_path):
    for name in ("a.jsonl", "b.csv", "deep/c.jsonl", "evals.yaml", "other.csv.gz", ".decon/x"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"text": "a"}\n' if name.endswith("jsonl") else "text\na\n")
    (tmp_path / "evals.yaml").write_text("evals: {}\n")
    sources = "".join(
        f'[[corpus.source]]\nname = "{name}"\npath = "{path}"\ntext = "text"\n'
        for name, path in [("one", "*.jsonl"), ("two", "*.csv"), ("three", "deep/*.jsonl")]
    )
    (tmp_path / "decon.toml").write_text(f'[evals]\nrecipes = ["evals.yaml"]\n{sources}')
    config = load_config(tmp_path / "decon.toml")
    skipped = Plan(config, Store(config.store)).changes.skipped
    assert [Path(one.path).name for one in skipped] == ["other.csv.gz"]
