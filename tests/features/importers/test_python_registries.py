"""Recipes from the Python of lighteval, which is read and never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from decon_core.features.importers.benchmark import ImportedBenchmark
from decon_core.features.importers.imported import import_recipes

LIGHTEVAL = '''
from a_module_that_does_not_exist import Doc, LightevalTaskConfig, get_mcq_prompt_function

TEMPLATE = """Answer: {question}"""

def quiz(line, task_name=None):
    query = TEMPLATE.format(question=line["question"])
    query += "".join(f"\\n{key}. {text}" for key, text in zip("ABCD", line["choices"]))
    return Doc(task_name=task_name, query=query, choices=list("ABCD"), gold_index=line["answer"])

def shuffled(line, task_name=None):
    while True:
        return Doc(query=line["question"], choices=[], gold_index=0)

def sample(record):
    return Sample(input=record["problem"], target=record["answer"])

TASKS_TABLE = [
    LightevalTaskConfig(
        name="quiz", prompt_function=quiz, hf_repo="you/quiz", hf_subset="all",
        hf_avail_splits=["train", "test"], evaluation_splits=("test",),
    ),
    LightevalTaskConfig(
        name="maths", prompt_function=shuffled, sample_fields=sample, hf_repo="you/maths",
        hf_subset="default", evaluation_splits=["test"],
    ),
    LightevalTaskConfig(
        name="shuffled", prompt_function=shuffled, hf_repo="you/other", evaluation_splits=["test"],
    ),
    LightevalTaskConfig(
        name="by_code", prompt_function=quiz, hf_repo="you/codes", hf_subset=code(lang),
        evaluation_splits=["test"],
    ),
] + [
    LightevalTaskConfig(
        name=f"exam_{language}",
        prompt_function=get_mcq_prompt_function(
            language,
            lambda line: {
                "question": line["ask"],
                "context": line["text"],
                "choices": [line["option_a"], line["option_b"], line["option_c"]],
                "gold_idx": "abc".index(line["correct"]),
            },
        ),
        hf_repo="you/exams", hf_subset=language, evaluation_splits=["test"],
    )
    for language in ["ja", "ko"]
]
'''


def by_name(path: Path) -> dict[str, ImportedBenchmark]:
    return {benchmark.name: benchmark for benchmark in import_recipes(path)}


def test_literal_configs_and_plain_functions_of_lighteval_become_recipes(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(LIGHTEVAL, encoding="utf-8")
    benchmarks = by_name(tmp_path / "tasks.py")
    recipes: dict[str, Any] = {name: benchmarks[name].recipe for name in ("quiz", "maths", "exam")}
    assert recipes == {
        "quiz": {
            "hf_path": "you/quiz",
            "hf_config": "all",
            "splits": ["train", "test"],
            "prompt": "question",
            "answers": [{"expand_choices": {"field": "choices", "correct_index": "answer"}}],
        },
        "maths": {
            "hf_path": "you/maths",
            "splits": ["test"],
            "prompt": "problem",
            "answers": ["answer"],
        },
        "exam": {
            "hf_path": "you/exams",
            "hf_config": ["ja", "ko"],
            "splits": ["test"],
            "prompt": "ask",
            "passage": "text",
            "answers": [
                {
                    "expand_prefix": {
                        "prefix": "option_",
                        "suffix_match_field": "correct",
                        "label_transform": "lower",
                    }
                }
            ],
        },
    }
    assert benchmarks["exam"].origin.tasks == ("exam_ja", "exam_ko")
    assert benchmarks["shuffled"].recipe == {
        "hf_path": "you/other",
        "splits": ["test"],
        "prompt": "question",
    }
    assert benchmarks["shuffled"].why == (
        "the prompt function is not plain: shuffled: shuffled (`while` on line 12)"
    )
    assert benchmarks["by_code"].why == (
        "dataset, config or splits are not literals: hf_subset, line 30"
    )
