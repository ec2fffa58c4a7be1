"""Tables 6 to 17 of contamination with WMT: the printed scores; what 7, 9 and 11 to 14 imply.

docs/studies/translation.md has the main results.
"""

from pathlib import Path
from statistics import mean

import pytest
import yaml

from decon_core.features.study.differences import compare_training_runs
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun
from tests.features.study.test_wmt_contamination import COPIES, FORMS, INTO, NAMED, OUT_OF, TABLES

PRINTED = yaml.safe_load(Path(__file__).with_name("wmt_tables.yaml").read_text())
SIZES = ("1B", "8B")
BLEU, METRICX = "bleu_of_wmt24_middle", "metricx_of_wmt23_late"
# Tables 6, 8, 10 and 15 to 17: BLEU after late contamination.
LATE, LATE_23 = "late, WMT'24", "late, WMT'23"
SETTINGS = [(size, n) for size in SIZES for n in COPIES]


def tables_of(name):
    if name in PRINTED:
        return PRINTED[name]
    year = 24 if name == LATE else 23
    rows = {n: [line.split() for line in TABLES[year, n].strip().splitlines()] for n in COPIES}
    return {n: {pair: [*map(float, scores)] for pair, *scores in rows[n]} for n in COPIES}


def compared(folder, name, size):
    """Write the scores of each training run, and compare them with the uncontaminated model."""
    scores = {}
    for n, rows in tables_of(name).items():
        for pair, row in rows.items():
            four = row[:4] if size == "1B" else row[4:]
            for form, score in zip(("none", *FORMS), four, strict=True):
                run = form if form == "none" else f"{form} {n}"
                assert scores.setdefault(run, {}).setdefault(pair, score) == score
    metric = "metricx" if name == METRICX else "bleu"
    for run, of_pairs in scores.items():
        lines = (f"{pair},{metric},{score}\n" for pair, score in of_pairs.items())
        (folder / f"{run}.csv").write_text("benchmark,metric,score\n" + "".join(lines))
    runs = tuple(TrainingRun(name=run, results=(f"{run}.csv",)) for run in scores)
    groups = {"named": NAMED}
    study = Study(baseline="none", training_run=runs, groups=groups)
    found = compare_training_runs(read_training_runs(study, folder), study)
    return {(one.training_run, one.benchmark): one for one in (*found.benchmarks, *found.averages)}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    return {
        (name, size): compared(tmp_path_factory.mktemp("wmt"), name, size)
        for name in (BLEU, LATE, LATE_23, METRICX)
        for size in SIZES
    }


@pytest.mark.parametrize("name", [BLEU, LATE, LATE_23, METRICX])
def test_every_printed_score_is_in_the_study(studies, name):
    for n, rows in tables_of(name).items():
        for pair, row in rows.items():
            for size, four in zip(SIZES, (row[:4], row[4:]), strict=True):
                found = [studies[name, size][f"{form} {n}", pair] for form in FORMS]
                assert [one.score for one in found] == four[1:]
                assert {one.baseline for one in found} == {four[0]}


def gains(studies, name, group="average", form="full"):
    return [studies[name, size][f"{form} {n}", group].difference for size, n in SETTINGS]


def test_on_wmt_24_late_contamination_gains_more_than_middle_contamination(studies):
    middle, late = gains(studies, BLEU), gains(studies, LATE)
    assert middle == pytest.approx([0.697, 1.183, 1.142, 0.658, 1.193, 1.128], abs=0.001)
    assert late == pytest.approx([1.298, 1.675, 1.877, 1.600, 2.427, 2.760], abs=0.001)
    # "Diminishing impact especially after 10 copies": less is gained from 10 to 100 than before.
    for one, ten, hundred in (middle[:3], middle[3:], late[:3], late[3:]):
        assert hundred - ten < ten - one


def test_a_single_side_gains_most_on_wmt_24_into_japanese(studies):
    found = {
        (one.difference, size, *key)
        for size in SIZES
        for key, one in studies[BLEU, size].items()
        if key[0].split()[0] in FORMS[:2] and key[1] in PRINTED[BLEU][1]
    }
    assert max(found) == (pytest.approx(5.23), "1B", "target 100", "en-ja")
    others = [one for one, *_, pair in found if pair != "en-ja"]
    assert (len(others), max(others)) == (60, pytest.approx(0.91))


def test_metricx_falls_with_full_contamination_in_76_of_78_scores(studies):
    rises = {
        (size, *key): round(one.difference, 2)
        for size in SIZES
        for key, one in studies[METRICX, size].items()
        if key[0].startswith("full") and key[1] in PRINTED[METRICX][1] and one.difference >= 0
    }
    # Two pairs that the text counts.
    assert rises == {("1B", "full 1", "uk-en"): 0.07, ("8B", "full 1", "he-en"): 0.0}
    for size, n in SETTINGS:
        average = studies[METRICX, size][f"full {n}", "average"]
        assert (average.n_benchmarks, average.basis) == (13, "benchmarks")
        assert average.high < 0
    single_sides = {
        (size, form, n): one.difference
        for size, n in SETTINGS
        for form in FORMS[:2]
        if (one := studies[METRICX, size][f"{form} {n}", "average"]).p < 0.05
    }
    assert single_sides == {("8B", "target", 100): pytest.approx(-0.204, abs=0.001)}


def test_the_gain_of_8b_models_is_1_3_times_that_of_1b_models_by_metricx(studies):
    found = gains(studies, METRICX, "named")
    assert found == pytest.approx([-0.555, -1.337, -1.696, -0.738, -1.707, -2.245], abs=0.001)
    ratios = [large / small for small, large in zip(found[:3], found[3:], strict=True)]
    assert ratios == pytest.approx([1.33, 1.28, 1.32], abs=0.005)


def test_by_metricx_translation_out_of_english_gains_more_in_percent(studies):
    percent, points = [], []
    for size, n in SETTINGS:
        of_pairs = {pair: studies[METRICX, size][f"full {n}", pair] for pair in (*INTO, *OUT_OF)}
        into, out_of = ([of_pairs[pair] for pair in pairs] for pairs in (INTO, OUT_OF))
        percent.append(
            [round(100 * mean(one.relative for one in side), 1) for side in (into, out_of)]
        )
        points.append(mean(one.difference for one in into) < mean(one.difference for one in out_of))
    assert percent == [
        [-8.6, -5.5],
        [-18.0, -14.6],
        [-22.8, -19.1],
        [-13.4, -10.6],
        [-33.9, -25.6],
        [-41.1, -37.3],
    ]
    assert points == [True, True, False, False, True, False]
