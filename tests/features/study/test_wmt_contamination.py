"""Printed tables of contamination with translations of WMT: what the text claims, from them.

A 1B and an 8B model; the test set of WMT'23 was planted late in training, 1, 10 or 100 times, as
source, as target, or full (both in the form of the prompt). WMT'24 was not planted.
"""

import pytest

from decon_core.features.study.differences import compare_training_runs
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun

# BLEU by year and copies. A row: pair of languages; the 1B model without contamination, then with
# source, target, full; the 8B model likewise.
TABLES = {
    # Table 15.
    (23, 1): """
        en-de 21.71 21.59 21.52 23.37 30.95 31.95 32.11 34.34
        en-ru 13.42 13.89 13.88 14.78 15.42 14.53 14.77 16.97
        en-cs 14.06 14.65 14.57 15.67 22.65 23.75 24.28 25.65
        en-uk 12.94 12.60 12.83 13.59 21.96 21.16 21.42 24.31
        en-he 9.72 10.00 10.02 10.69 18.27 18.76 18.51 20.02
        en-ja 4.47 5.04 5.51 5.23 4.97 5.11 4.90 4.79
        de-en 26.46 26.21 26.02 27.32 33.59 34.03 33.87 37.15
        ru-en 22.55 22.96 22.99 23.87 28.41 27.60 27.92 30.50
        uk-en 20.23 20.17 19.31 20.33 27.55 28.23 26.65 28.20
        he-en 25.05 25.14 24.41 26.68 38.62 37.53 37.88 40.99
        zh-en 11.31 11.34 11.57 12.70 19.81 18.93 19.31 21.44
        ja-en 4.97 5.22 5.53 5.83 10.42 9.89 10.32 12.40
        cs-uk 11.24 11.68 11.32 12.03 20.39 19.44 19.51 22.67
    """,
    # Table 16.
    (23, 10): """
        en-de 21.71 21.82 21.30 25.60 30.95 31.57 33.09 40.64
        en-ru 13.42 13.84 13.76 16.93 15.42 14.25 15.08 22.56
        en-cs 14.06 14.46 14.80 17.57 22.65 23.18 24.82 33.93
        en-uk 12.94 12.28 13.44 16.19 21.96 21.84 23.40 31.58
        en-he 9.72 9.94 10.36 12.33 18.27 18.42 19.42 25.43
        en-ja 4.47 5.14 6.13 6.46 4.97 5.66 4.57 8.39
        de-en 26.46 26.11 26.43 29.96 33.59 33.69 34.71 42.60
        ru-en 22.55 23.03 22.99 26.67 28.41 27.41 28.07 34.38
        uk-en 20.23 19.93 19.44 22.37 27.55 27.53 26.65 34.72
        he-en 25.05 25.11 25.06 31.50 38.62 37.95 39.00 49.90
        zh-en 11.31 11.05 11.64 14.38 19.81 19.41 19.62 27.25
        ja-en 4.97 5.61 5.90 7.27 10.42 10.29 10.76 17.11
        cs-uk 11.24 11.15 11.82 14.89 20.39 19.29 20.12 29.12
    """,
    # Table 17.
    (23, 100): """
        en-de 21.71 21.24 21.20 28.70 30.95 31.09 33.13 47.55
        en-ru 13.42 13.74 14.80 19.15 15.42 14.54 15.53 27.61
        en-cs 14.06 14.73 15.57 19.93 22.65 22.86 26.02 44.86
        en-uk 12.94 12.24 13.70 18.83 21.96 22.18 24.02 40.30
        en-he 9.72 10.05 10.27 13.61 18.27 18.11 20.23 33.56
        en-ja 4.47 4.67 5.92 5.98 4.97 6.71 4.48 9.87
        de-en 26.46 26.36 27.11 32.06 33.59 33.47 35.66 47.56
        ru-en 22.55 23.13 23.49 28.08 28.41 27.63 28.66 38.08
        uk-en 20.23 20.59 20.20 23.11 27.55 27.57 27.68 40.71
        he-en 25.05 24.65 24.74 34.11 38.62 36.72 39.94 59.93
        zh-en 11.31 11.39 11.37 15.96 19.81 19.16 19.62 32.56
        ja-en 4.97 5.15 5.77 8.82 10.42 10.23 11.34 22.94
        cs-uk 11.24 11.35 11.75 17.63 20.39 18.88 21.23 37.34
    """,
    # Table 6.
    (24, 1): """
        en-de 17.39 17.77 17.66 18.43 24.01 24.02 24.39 25.13
        en-ru 10.57 10.86 11.12 11.69 13.23 13.94 13.90 15.43
        en-uk 11.40 11.42 11.28 12.31 18.93 18.86 19.68 20.82
        en-ja 12.38 13.92 14.22 15.50 17.60 19.30 20.71 19.89
        en-zh 5.74 6.18 6.36 6.46 5.53 5.65 5.83 6.43
        cs-uk 14.40 14.59 14.69 15.28 22.62 22.60 22.58 23.82
    """,
    # Table 8.
    (24, 10): """
        en-de 17.39 17.99 17.80 18.64 24.01 23.77 24.14 25.87
        en-ru 10.57 10.93 11.36 12.11 13.23 13.84 14.26 16.64
        en-uk 11.40 11.34 11.79 12.61 18.93 18.73 19.74 21.91
        en-ja 12.38 14.46 13.94 15.19 17.60 18.99 19.27 20.36
        en-zh 5.74 6.07 6.55 7.47 5.53 5.64 6.09 7.27
        cs-uk 14.40 14.56 14.89 15.91 22.62 22.56 22.79 24.43
    """,
    # Table 10.
    (24, 100): """
        en-de 17.39 17.90 18.12 19.19 24.01 23.82 23.80 26.14
        en-ru 10.57 11.08 11.31 12.24 13.23 13.97 14.00 16.88
        en-uk 11.40 11.64 11.83 12.91 18.93 18.90 19.93 21.86
        en-ja 12.38 12.71 13.95 14.64 17.60 17.86 20.47 21.42
        en-zh 5.74 5.98 5.98 7.54 5.53 5.62 5.82 7.38
        cs-uk 14.40 15.14 14.69 16.62 22.62 22.67 22.81 24.80
    """,
}
FORMS = ("source", "target", "full")
COPIES = (1, 10, 100)
# Of 8B models on languages that training data do not have; rows: without, then 1, 10, 100 copies.
TABLE_4 = {"ace-en": "0.095 0.328 0.558 0.722", "yo-en": "1.445 1.204 1.361 1.345",
           "wo-en": "1.521 1.417 1.633 1.776"}  # fmt: skip

# The pairs of languages that the text names; the tables have Japanese and Chinese as well.
NAMED = (
    *("en-de", "en-ru", "en-cs", "en-uk", "en-he", "de-en", "ru-en", "uk-en", "he-en", "cs-uk"),
)
INTO = tuple(pair for pair in NAMED if pair.startswith("en-"))
OUT_OF = tuple(pair for pair in NAMED if pair.endswith("-en"))
IN_BOTH = ("en-de", "en-ru", "en-uk", "cs-uk")  # named, and in the tables of both years


def rows_of(year, copies):
    for line in TABLES[year, copies].strip().splitlines():
        pair, *scores = line.split()
        yield pair, [float(score) for score in scores]


def study_of(folder, size):
    """Write the scores of each training run, and compare them with the uncontaminated model."""
    first = 0 if size == "1B" else 4
    lines = {"none": {}}
    for year, copies in TABLES:
        for pair, scores in rows_of(year, copies):
            for at, form in enumerate(("none", *FORMS)):
                name = form if form == "none" else f"{form} {copies}"
                score = f"wmt{year} {pair},bleu,{scores[first + at]}"
                # The uncontaminated model is the same in all tables.
                assert lines.setdefault(name, {}).setdefault((year, pair), score) == score
    for name, scores in lines.items():
        text = "\n".join(["benchmark,metric,score", *scores.values()])
        (folder / f"{size} {name}.csv").write_text(text + "\n")
    groups = {
        "all": ("wmt23 *",),
        "named": tuple(f"wmt23 {pair}" for pair in NAMED),
        "both 23": tuple(f"wmt23 {pair}" for pair in IN_BOTH),
        "both 24": tuple(f"wmt24 {pair}" for pair in IN_BOTH),
    }
    training_runs = tuple(TrainingRun(name=name, results=(f"{size} {name}.csv",)) for name in lines)
    study = Study(baseline="none", training_run=training_runs, groups=groups)
    found = compare_training_runs(read_training_runs(study, folder), study)
    return {(one.training_run, one.benchmark): one for one in (*found.benchmarks, *found.averages)}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wmt")
    return {size: study_of(folder, size) for size in ("1B", "8B")}


def inflation(studies, size, group="named", form="full"):
    return [studies[size][f"{form} {n}", group].difference for n in COPIES]


def test_full_contamination_of_8b_models_gains_2_5_times_that_of_1b_models(studies):
    small, large = inflation(studies, "1B"), inflation(studies, "8B")
    assert small == pytest.approx([1.095, 3.663, 5.783], abs=0.001)
    assert large == pytest.approx([2.299, 8.705, 15.969], abs=0.001)
    ratios = [one / other for one, other in zip(large, small, strict=True)]
    assert ratios == pytest.approx([2.10, 2.38, 2.76], abs=0.005)
    # "On average 2.5 times" is the ratio of the averages over the three numbers of copies.
    assert sum(large) / sum(small) == pytest.approx(2.56, abs=0.005)
    every = [sum(inflation(studies, size, "all")) for size in ("8B", "1B")]
    assert every[0] / every[1] == pytest.approx(2.55, abs=0.005)


def test_the_largest_gains(studies):
    gains = {
        size: max((one.difference, *key) for key, one in found.items()
                  if key[0] in ("full 1", "full 10", "full 100") and "wmt23" in key[1])
        for size, found in studies.items()
    }  # fmt: skip
    # "Around 9" of the 1B model; the 8B model's "up to 30" is of no late contamination: other
    # times, of which no table of WMT'23 is printed.
    assert gains["1B"] == (pytest.approx(9.06), "full 100", "wmt23 he-en")
    assert gains["8B"] == (pytest.approx(22.21), "full 100", "wmt23 en-cs")


@pytest.mark.parametrize("size", ["1B", "8B"])
def test_full_contamination_inflates_consistently_and_single_sides_do_not(studies, size):
    found = studies[size]
    for n in COPIES:
        full = found[f"full {n}", "all"]
        assert (full.basis, full.n_benchmarks) == ("benchmarks", 13)
        assert full.low > 0
        assert full.p < 0.005
        source = found[f"source {n}", "all"]
        assert source.low < 0.3 * full.difference
        assert abs(source.difference) < 0.3
    falls = [
        key for key, one in found.items()
        if one.difference and one.difference < 0 and key[0].startswith("full") and key[1] in
        {f"wmt23 {pair}" for pair, _ in rows_of(23, 1)}
    ]  # fmt: skip
    # One of 78 falls: into Japanese, which the text does not count.
    assert falls == ([] if size == "1B" else [("full 1", "wmt23 en-ja")])


def test_of_single_sides_only_many_copies_of_the_target_gain(studies):
    low_p = {
        (size, key[0]): one.difference
        for size, found in studies.items()
        for key, one in found.items()
        if key[1] == "named" and key[0][:6] in FORMS and one.p < 0.05
    }
    expected = {("1B", "target 100"): 0.545, ("8B", "target 100"): 1.429}
    assert low_p == pytest.approx(expected, abs=0.001)


def test_inflation_on_wmt_23_less_that_on_wmt_24(studies):
    means, largest = {}, {}
    for size, found in studies.items():
        for form in FORMS:
            pairs = [inflation(studies, size, group, form) for group in ("both 23", "both 24")]
            means[size, form] = [one - other for one, other in zip(*pairs, strict=True)]
        largest[size] = max(
            found[f"full {n}", f"wmt23 {pair}"].difference
            - found[f"full {n}", f"wmt24 {pair}"].difference
            for n in COPIES
            for pair in IN_BOTH
        )
    assert means["1B", "full"] == pytest.approx([0.13, 2.20, 4.45], abs=0.005)
    assert means["8B", "full"] == pytest.approx([0.79, 6.28, 13.30], abs=0.005)
    for size in studies:
        assert all(abs(one) < 0.9 for form in FORMS[:2] for one in means[size, form])
    # "Up to 26" is of no late contamination.
    assert largest == pytest.approx({"1B": 5.19, "8B": 15.41}, abs=0.005)


def test_translation_out_of_english_gains_more(studies):
    relative, absolute = [], []
    for found in studies.values():
        for n in COPIES:
            into, out_of = (
                [found[f"full {n}", f"wmt23 {pair}"] for pair in pairs] for pairs in (INTO, OUT_OF)
            )
            relative.append([mean(one.relative for one in side) for side in (into, out_of)])
            absolute.append([mean(one.difference for one in side) for side in (into, out_of)])
    # Figure 7: in percent, in all six settings; in points, "almost all": four of six.
    assert [round(into, 3) for into, _ in relative] == [0.088, 0.242, 0.404, 0.109, 0.421, 0.796]
    assert [round(one, 3) for _, one in relative] == [0.040, 0.170, 0.240, 0.066, 0.258, 0.446]
    assert [into > out_of for into, out_of in absolute] == [True, False, False, True, True, True]


def mean(values):
    listed = list(values)
    return sum(listed) / len(listed)


def test_languages_without_training_data_gain_nothing():
    gains = []
    for scores in TABLE_4.values():
        base, *others = map(float, scores.split())
        gains += [round(one - base, 3) for one in others]
    assert gains == [0.233, 0.463, 0.627, -0.241, -0.084, -0.1, -0.104, 0.112, 0.255]
