"""Recipes from task files of lm-evaluation-harness, and what of their Python is read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from decon_core.errors import InputError
from decon_core.features.importers.benchmark import ImportedBenchmark
from decon_core.features.importers.imported import import_recipes, recipe_file

QUIZ = """
dataset_path: you/quiz
test_split: test
doc_to_text: "{{question}}"
doc_to_target: answer
"""


def imported(folder: Path, **files: str) -> list[ImportedBenchmark]:
    """Import a folder with these files, by name without the point."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return import_recipes(folder)


def of_task(folder: Path, task: str, functions: str = "") -> ImportedBenchmark:
    """Import one task with a module of functions."""
    (benchmark,) = imported(folder, quiz_yaml=f"task: quiz\n{task}", utils_py=functions)
    return benchmark


def fields(benchmark: ImportedBenchmark) -> dict[str, Any]:
    """The recipe without where the rows are."""
    recipe = benchmark.recipe or {}
    return {key: recipe[key] for key in recipe if key not in ("hf_path", "hf_config", "splits")}


def test_included_files_are_bases_of_a_task_and_groups_are_no_tasks(tmp_path: Path) -> None:
    benchmarks = imported(
        tmp_path,
        _base=QUIZ + "task_list: [none]\n",
        langs__de_yaml="include: ../_base\ntask: quiz_de\ndataset_name: de",
        langs__fr_yaml="include: [../_base]\ntask: quiz_fr\ndataset_name: fr\nfewshot_split: dev",
        langs__it_yaml="include: ../_base\ntask: quiz_it\ndataset_name: it",
        group_yaml="group: quiz\ntask: [quiz_de, quiz_fr]",
    )
    assert {benchmark.name: dict(benchmark.recipe or {}) for benchmark in benchmarks} == {
        "quiz": {
            "hf_path": "you/quiz",
            "hf_config": ["de", "it"],
            "splits": ["test"],
            "prompt": "question",
            "answers": ["answer"],
        },
        "quiz_fr": {
            "hf_path": "you/quiz",
            "hf_config": "fr",
            "splits": ["dev", "test"],
            "prompt": "question",
            "answers": ["answer"],
        },
    }


def test_subjects_that_filter_the_rows_become_one_benchmark(tmp_path: Path) -> None:
    functions = """
from functools import partial
import a_module_that_does_not_exist

def only(dataset, subject):
    return dataset.filter(lambda row: row["subject"] == subject)

law = partial(only, subject="law")
globals().update({name: partial(only, subject=name) for name in ("art", "music")})
"""
    subjects = {
        f"{name}_yaml": f"task: quiz_{name}\nprocess_docs: !function utils.{name}\n{QUIZ}"
        for name in ("law", "art", "music")
    }
    (benchmark,) = imported(tmp_path, utils_py=functions, **subjects)
    assert benchmark.name == "quiz"
    assert benchmark.origin.tasks == ("quiz_art", "quiz_law", "quiz_music")
    assert fields(benchmark) == {"prompt": "question", "answers": ["answer"]}


def test_a_map_of_plain_fields_is_read_back_to_the_published_columns(tmp_path: Path) -> None:
    functions = """
def rows(dataset):
    def row(doc):
        text = doc["start"].strip() + " " + doc["middle"]
        return {"query": text, "options": [end for end in doc["ends"]], "gold": int(doc["label"])}
    return dataset.map(row)
"""
    task = """
dataset_path: you/quiz
test_split: test
process_docs: !function utils.rows
doc_to_text: "{{query}}"
doc_to_choice: options
doc_to_target: "{{gold}}"
"""
    benchmark = of_task(tmp_path, task, functions)
    assert benchmark.status == "derived"
    assert fields(benchmark) == {
        "prompt": {"fields": ["start", "middle"], "separator": " "},
        "answers": [{"expand_choices": {"field": "ends", "correct_index": "label"}}],
    }


def test_columns_that_a_function_cleans_are_proposed_and_the_recipe_says_so(tmp_path: Path) -> None:
    functions = """
import re

def clean(text):
    return re.sub("x", "", text)

def rows(dataset):
    return dataset.map(lambda doc: {"query": clean(doc["context"])})
"""
    task = QUIZ.replace("{{question}}", "{{query}}") + "process_docs: !function utils.rows\n"
    benchmark = of_task(tmp_path, task, functions)
    assert (benchmark.status, benchmark.why) == (
        "proposed",
        "the question is computed: clean(…)",
    )
    assert recipe_file([benchmark]).splitlines()[1] == f"  # unconfirmed: {benchmark.why}"


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (
            f"{QUIZ}process_docs: !function utils.shuffled",
            "process_docs is neither a row filter nor a plain map: utils.shuffled: `with`",
        ),
        (
            QUIZ.replace('"{{question}}"', "!function utils.text"),
            "a function builds the question: doc_to_text: text (`try` on line 7)",
        ),
        (f"{QUIZ}class: !function task.Quiz", "Python code creates the rows: class: task.Quiz"),
        (f"{QUIZ}custom_dataset: f", "Python code creates the rows: custom_dataset: f"),
        (f"{QUIZ}use_prompt: any", "the prompt comes from promptsource: use_prompt: any"),
        (f"{QUIZ}doc_to_image: image", "the rows are images or audio: doc_to_image: image"),
        (
            f"{QUIZ}output_type: loglikelihood_rolling",
            "the task measures the perplexity of whole texts",
        ),
        (
            QUIZ.replace("you/quiz", "json"),
            "the rows are not in a dataset on the hub: dataset_path: json",
        ),
        (QUIZ.replace("{{question}}", "{{'text'}}"), "the template prints no column: {{'text'}}"),
        (QUIZ.replace("test_split: test", ""), "no split is named"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_function_or_key(
    tmp_path: Path, task: str, why: str
) -> None:
    functions = """
def shuffled(dataset):
    with open("rows") as file:
        return dataset

def text(doc):
    try:
        return doc["words"]
    except KeyError:
        return ""
"""
    benchmark = of_task(tmp_path, task, functions)
    assert (benchmark.status, benchmark.why, benchmark.recipe) == ("refused", why, None)


def test_a_function_that_writes_a_question_out_is_read(tmp_path: Path) -> None:
    functions = """
from functools import partial

def written(doc, with_number=True):
    text = "Question: " + doc["question"] + "\\n"
    text += "\\n".join(f"{LETTERS[at]}. {it.strip()}" for at, it in enumerate(doc["options"]))
    return text

LETTERS = "ABCDEFGHIJ"
asked = partial(written, with_number=False)
"""
    task = QUIZ.replace('"{{question}}"', "!function utils.asked")
    benchmark = of_task(tmp_path, task, functions)
    assert (benchmark.status, fields(benchmark)) == (
        "derived",
        {
            "prompt": "question",
            "answers": [{"expand_choices": {"field": "options", "correct_index": "answer"}}],
        },
    )


def test_a_function_that_does_more_is_proposed_with_the_columns_that_it_reads(
    tmp_path: Path,
) -> None:
    functions = """
def asked(doc):
    doc["prompt"] = doc["question"]
    for option in doc.get("options"):
        doc["prompt"] += option
    return doc["prompt"]
"""
    task = QUIZ.replace('"{{question}}"', "!function utils.asked")
    benchmark = of_task(tmp_path, task, functions)
    assert (benchmark.status, benchmark.why, fields(benchmark)) == (
        "proposed",
        "a function builds the question: doc_to_text: asked (`for` on line 4)",
        {
            "prompt": "question",
            "answers": [{"expand_choices": {"field": "options", "correct_index": None}}],
        },
    )


def test_the_text_to_search_for_stands_for_a_question_made_by_a_function(tmp_path: Path) -> None:
    task = QUIZ.replace('"{{question}}"', "!function utils.absent")
    query = "should_decontaminate: true\ndoc_to_decontamination_query: problem"
    assert fields(of_task(tmp_path, f"{task}{query}")) == {
        "prompt": "problem",
        "answers": ["answer"],
    }


# Text, target and choices of a task, and the fields of its recipe.
TEMPLATES: list[tuple[str, str | int, str | list[str] | None, dict[str, Any]]] = [
    (
        "{{passage}}\nQuestion: {{question}}?",
        "{{answer}}",
        None,
        {"prompt": "question", "passage": "passage", "answers": ["answer"]},
    ),
    (
        "{{body}} {{ask}}",
        "{{found[0]}}",
        None,
        {"prompt": {"fields": ["body", "ask"], "separator": " "}, "answers": ["found"]},
    ),
    (
        "{{q}}",
        0,
        "{{[right, wrong]}}",
        {
            "prompt": "q",
            "answers": [
                {"expand_choices": {"fields": ["right", "wrong"], "correct_text": "right"}}
            ],
        },
    ),
    ("{{q}}", "label", ["no", "yes"], {"prompt": "q"}),
    ("", 0, "{{[good, bad]}}", {"prompts": ["good", "bad"]}),
    (
        "{{prompt}}",
        "{{test}}\ncheck({{entry_point}})",
        None,
        {"prompt": "prompt", "tests": "test"},
    ),
    (
        'German: {{translation["de"]}}',
        ' {{translation["en"]}}',
        None,
        {"source": "translation.de", "target": "translation.en", "both_directions": True},
    ),
    (
        "{{text_ace_Arab}}",
        "text_wol_Latn",
        None,
        {
            "source": "text_ace_Arab",
            "target": "text_wol_Latn",
            "both_directions": True,
            "source_language": "ace_Arab",
            "target_language": "wol_Latn",
        },
    ),
    (
        "{{q}}{% for c in choices %}\n{{loop.index}}. {{c}}{% endfor %}",
        "{{choices[key]}}",
        None,
        {
            "prompt": "q",
            "answers": [{"expand_choices": {"field": "choices", "correct_index": "key"}}],
        },
    ),
    (
        "{{q}}\nA. {{o1}}\nB. {{o2}}\nAnswer:",
        "{{key - 1}}",
        ["A", "B"],
        {
            "prompt": "q",
            "answers": [{"expand_prefix": {"prefix": "o", "suffix_match_field": "key"}}],
        },
    ),
]


@pytest.mark.parametrize(("text", "target", "choices", "expected"), TEMPLATES)
def test_the_columns_that_a_template_prints_become_fields(
    tmp_path: Path,
    text: str,
    target: str | int,
    choices: str | list[str] | None,
    expected: dict[str, Any],
) -> None:
    templates = {"doc_to_text": text, "doc_to_target": target, "doc_to_choice": choices}
    task = yaml.safe_dump({"dataset_path": "you/quiz", "test_split": "test", **templates})
    benchmark = of_task(tmp_path, task)
    assert (benchmark.status, fields(benchmark)) == ("derived", expected)


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path: Path) -> None:
    benchmarks = imported(
        tmp_path,
        alone_yaml=f"task: alone\ninclude: absent_base\n{QUIZ}",
        broken_yaml=f"task: broken\n{QUIZ}  : [",
        module_py="LightevalTaskConfig(name=",
    )
    refused = {benchmark.origin.file: benchmark.reason for benchmark in benchmarks}
    assert refused == {
        "alone.yaml": "a file of the task cannot be read",
        "broken.yaml": "a file of the task cannot be read",
        "module.py": "the file is not Python",
    }


def test_a_wheel_gives_the_same_benchmarks_as_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    from_folder = imported(folder, lm_eval__tasks__quiz_yaml=f"task: quiz\n{QUIZ}")
    with zipfile.ZipFile(tmp_path / "lm_eval-0-py3-none-any.whl", "w") as wheel:
        wheel.write(folder / "lm_eval/tasks/quiz.yaml", "lm_eval/tasks/quiz.yaml")
    assert import_recipes(tmp_path / "lm_eval-0-py3-none-any.whl") == from_folder


def test_a_folder_without_benchmarks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_text("a: 1", encoding="utf-8")
    with pytest.raises(InputError, match="no file that declares a benchmark"):
        import_recipes(tmp_path)
