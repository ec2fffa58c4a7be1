"""Which benchmark a harness means by the name of a task."""

import pytest

from decon_core.config.policy import PUNCTUATION
from decon_core.features.results.items import Item, Items
from decon_core.features.results.tasks import TaskMapping, task_of


def items(benchmark, *configs):
    found = Items(PUNCTUATION)
    for number, config in enumerate(configs):
        found.add(Item(benchmark, "test", number, config, "clean", ()), [])
    return found


BENCHMARKS = {
    "gsm8k": items("gsm8k", None),
    "arc": items("arc", None),
    "arc_challenge": items("arc_challenge", None),
    "mmlu": items("mmlu", "anatomy", "us_history", "high_school_us_history", "College Maths"),
}


@pytest.mark.parametrize(
    ("name", "benchmark", "config", "setting"),
    [
        ("gsm8k", "gsm8k", None, "gsm8k"),
        ("gsm8k_cot", "gsm8k", None, "gsm8k_cot"),
        ("GSM8K", "gsm8k", None, "GSM8K"),
        ("arc_challenge:mc", "arc_challenge", None, "arc_challenge:mc"),
        ("arc_easy", "arc", None, "arc_easy"),
        ("suite|gsm8k|5", "gsm8k", None, "gsm8k"),
        ("leaderboard|mmlu:anatomy|5|0", "mmlu", "anatomy", "mmlu"),
        ("mmlu_high_school_us_history", "mmlu", "high_school_us_history", "mmlu"),
        ("mmlu_flan_cot_us_history", "mmlu", "us_history", "mmlu_flan_cot"),
        ("mmlu_college_maths", "mmlu", "College Maths", "mmlu"),
        ("mmlu", "mmlu", None, "mmlu"),
    ],
)
def test_a_task_is_the_benchmark_with_the_longest_name_that_it_begins_with(
    name, benchmark, config, setting
):
    task = task_of(name, [], BENCHMARKS)
    assert (task.benchmark, task.config, task.setting) == (benchmark, config, setting)


@pytest.mark.parametrize("name", ["gsm", "gsm8kx", "my_gsm8k", "x|y|0", "", "5"])
def test_a_name_that_only_resembles_one_is_none(name):
    assert task_of(name, [], BENCHMARKS) is None


def test_what_a_person_says_goes_first():
    said = [TaskMapping("hendrycksTest-*", "mmlu", "test"), TaskMapping("gsm8k", "arc", None)]
    task = task_of("hendrycksTest-anatomy", said, BENCHMARKS)
    assert (task.benchmark, task.config, task.split) == ("mmlu", "anatomy", "test")
    assert task.setting == "hendryckstest"
    assert task_of("suite|gsm8k|5", said, BENCHMARKS).benchmark == "arc"
