"""Names of datasets and of their splits in training rows, and the benchmarks they stand for."""

import pytest

from decon_core.benchmarks.named import benchmark_named, is_held_out


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [
        ("openai/gsm8k", "gsm8k"),
        ("GSM-8K", "gsm8k"),
        ("someone/gsm8k", "gsm8k"),
        ("MathArena/aime_2025", "aime_2025"),
        ("Idavidrein/gpqa", "gpqa_*"),
        ("CohereLabs/Global-MMLU", "global_mmlu_*"),
        ("My-Quiz", "my_quiz"),
        ("lighteval/MATH", None),
        ("common-crawl", None),
        ("é", None),
        ("问答", "问-答"),
    ],
)
def test_a_name_stands_for_a_benchmark_of_the_catalog_or_of_the_scan(name, benchmark):
    named = benchmark_named(name, ["my_quiz", "问-答"])
    assert (named.benchmark if named else None) == benchmark


@pytest.mark.parametrize(
    ("name", "split", "is_so"),
    [
        ("openai/gsm8k", "test", True),
        ("openai/gsm8k", "train", False),
        ("openai/gsm8k", "Train", False),
        ("openai/gsm8k", None, False),
        ("Idavidrein/gpqa", "train", True),  # it has no other
        ("tatsu-lab/alpaca", "train", False),  # for training
        ("allenai/wildjailbreak", "train", False),
        ("facebook/flores", "devtest", True),
        ("common-crawl", "Validation", True),
        ("common-crawl", "2024", False),
    ],
)
def test_a_split_is_held_out_by_its_name_or_if_the_benchmark_has_no_other(name, split, is_so):
    assert is_held_out(split, benchmark_named(name)) == is_so
