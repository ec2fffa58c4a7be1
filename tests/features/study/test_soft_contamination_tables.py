"""Tables 2 to 5 and 8 to 10 of the study of soft contamination: differences, and what is claimed.

docs/studies/exposure.md has the main results; table 11 is checked in `test_exposure.py`.
"""

from pathlib import Path
from statistics import mean

import pytest
import yaml

from decon_core.features.study.differences import compare_training_runs
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun
from tests.features.study.test_exposure import TABLE_11, found_of

PRINTED = yaml.safe_load(Path(__file__).with_name("soft_contamination_tables.yaml").read_text())
HALVES = ("seen", "unseen", "other")


def by_half(row):
    """Return the scores of both halves and the other benchmark; one of both halves counts twice."""
    return row if len(row) == 3 else [row[0], *row]


def compared(folder, rows, benchmarks, sizes=None):
    """Return the differences from the baseline, in points, as `decon-assets study` makes them."""
    for run, row in rows.items():
        lines = ["benchmark,score,n"]
        for benchmark, score in zip(benchmarks, row, strict=True):
            if score is not None:
                lines.append(f"{benchmark},{score / 100},{(sizes or {}).get(benchmark, '')}")
        (folder / f"{run}.csv").write_text("\n".join(lines) + "\n")
    runs = tuple(TrainingRun(name=run, results=(f"{run}.csv",)) for run in rows)
    study = Study(baseline="Baseline", training_run=runs)
    found = compare_training_runs(read_training_runs(study, folder), study)
    return {(one.training_run, one.benchmark): one for one in (*found.benchmarks, *found.averages)}


def points(found, benchmark):
    return {
        run: round(100 * one.difference, 1)
        for (run, name), one in found.items()
        if name == benchmark and run != "Baseline"
    }


@pytest.fixture
def halves(tmp_path):
    """Return the differences of a table by half: seen, unseen, other benchmark."""

    def of(number):
        rows = {run: by_half(row) for run, row in PRINTED[f"table_{number}"].items()}
        found = compared(tmp_path, rows, HALVES)
        return [points(found, half) for half in HALVES]

    return of


def test_on_musr_exact_and_semantic_duplicates_gain_about_20_points_on_both_halves(halves):
    seen, unseen, other = halves(2)
    assert [*seen.values()] == [21.9, 19.8, 19.7, 21.5, 2.6, 1.9, -0.7]
    assert [*unseen.values()] == [21.3, 20.2, 20.0, 21.9, 2.6, 1.9, -0.7]
    # "Stable" is true of duplicates; training on similar texts lowers True Detective by up to 3.2.
    assert [*other.values()] == [-0.6, 1.0, 0.0, 1.5, -3.2, -1.6, -1.6]


def test_on_zebralogic_similar_texts_lower_the_score_more_than_any_duplicate(halves):
    seen, unseen, other = halves(3)
    assert [*seen.values()] == [11.5, 2.3, -0.9, 1.1, -8.9, -14.0]
    assert [*unseen.values()] == [6.5, -0.7, -0.1, -0.9, -8.5, -14.0]
    assert [*other.values()] == [-0.6, -0.8, 0.6, -0.7, 0.3]


def test_on_mbpp_exact_duplicates_gain_on_seen_items_and_lower_humaneval(halves):
    seen, unseen, other = halves(4)
    assert [*seen.values()] == [16.6, 8.7, 2.4]
    assert [*unseen.values()] == [2.4, 7.2, 2.4]
    assert [*other.values()] == [-6.1, 11.7, -2.2]


def test_table_5_has_the_means_of_the_halves_of_table_11():
    for model, rows in PRINTED["table_5"].items():
        of_halves = TABLE_11[model]
        for name in ("baseline", "clean"):
            assert rows[name.capitalize()][0] == pytest.approx(mean(of_halves[name]))
        assert tuple(rows["Contaminated"][:2]) == of_halves["contaminated"]


def test_seen_items_of_one_of_two_models_gain_more_than_unseen_ones():
    found = found_of("Qwen3", "contaminated", "clean")
    names = ("seen", "held back", "seen - held back")
    differences = [found["musr", name].difference for name in names]
    assert differences == pytest.approx([0.176, -0.072, 0.248])
    assert found["musr", "seen - held back"].low > 0  # for Olmo3, the interval includes 0


def test_a_better_teacher_gains_4_points_more(tmp_path):
    found = compared(tmp_path, PRINTED["table_8"], ("opus", "gpt"))
    more = zip(points(found, "opus").values(), points(found, "gpt").values(), strict=True)
    assert [round(one - other, 1) for one, other in more] == [4.6, 4.4, 4.8, 4.2]
    first, second, every = PRINTED["teacher"]
    assert mean([first, second]) == pytest.approx(every)


def test_table_8_is_not_the_mean_of_the_halves_of_table_2():
    names = ("Exact Dups", "Level 1", "Level 2")
    means = [round(mean(PRINTED["table_2"][name][:2]), 2) for name in names]
    assert means == [87.6, 86.0, 85.85]
    assert [PRINTED["table_8"][name][0] for name in names] == [87.1, 86.1, 85.8]


@pytest.mark.parametrize(
    ("number", "averages", "beyond_chance"),
    [
        (9, [0.1, 0.0, 0.1, 0.3], []),
        (10, [-0.1, -0.3, -0.4, 0.0, 0.1], ["Para", "Shuffle, para", "Shuffle, subs, para"]),
    ],
)
def test_other_benchmarks_do_not_degrade(tmp_path, number, averages, beyond_chance):
    sizes = PRINTED["others"]
    found = compared(tmp_path, PRINTED[f"table_{number}"], sizes, sizes)
    assert [*points(found, "average").values()] == averages
    for (run, benchmark), one in found.items():
        if run != "Baseline" and one.p < 0.05:
            assert (benchmark, run in beyond_chance, one.difference > 0) == ("BoolQ", True, True)
    assert all(found[run, "BoolQ"].low > 0 for run in beyond_chance)


def test_arc_challenge_is_the_same_in_tables_3_and_10():
    rows = PRINTED["table_10"].items()
    assert {run: row[0] for run, row in rows} == {
        run: row[-1] for run, row in PRINTED["table_3"].items() if row[-1]
    }
