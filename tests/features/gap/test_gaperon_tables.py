"""What the printed tables of GAPERON imply, and where text and table differ.

docs/studies/categories.md has the main results.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml

from decon_core.features.gap.account import score_gap
from decon_core.report.categories.groupings import parse_groupings
from tests.core.report.reports import write_report

TABLES = yaml.safe_load(Path(__file__).with_name("gaperon_tables.yaml").read_text())
MMLU = TABLES["mmlu_gaps"]["rows"]
HELLASWAG = TABLES["hellaswag_scores"]["rows"]
N_ACTIVITYNET, N_WIKIHOW = TABLES["hellaswag_items"].values()
MATCHED = TABLES["hellaswag_matched"]
ROUNDING = 0.05


def possible_shares(overall, activitynet, wikihow):
    """The lowest and highest share of ActivityNet items, whatever was rounded away."""
    shares = [
        (wikihow + a - overall - b) / (wikihow + a - activitynet - c)
        for a, b, c in product((-ROUNDING, ROUNDING), repeat=3)
    ]
    return min(shares), max(shares)


# Table 18 -----------------------------------------------------------------------------------------


def test_overall_is_the_weighted_mean_of_the_sources_but_not_for_gaperon():
    share = N_ACTIVITYNET / (N_ACTIVITYNET + N_WIKIHOW)
    assert share == pytest.approx(0.323, abs=0.0005)
    fits = {name: possible_shares(*row[:3]) for name, row in HELLASWAG.items()}
    consistent = {name for name, (low, high) in fits.items() if low <= share <= high}
    assert consistent == {name for name in HELLASWAG if not name.startswith("GAPERON")}
    of_gaperon = [fits[name] for name in HELLASWAG if name not in consistent]
    # No share that the others allow, but one in common: between 41 and 42 %.
    assert min(low for low, _ in of_gaperon) > max(fits[name][1] for name in consistent)
    common = max(low for low, _ in of_gaperon), min(high for _, high in of_gaperon)
    assert common == pytest.approx((0.413, 0.420), abs=0.001)


def test_gaperon_s_overall_is_lower_than_its_sources_allow():
    share = N_ACTIVITYNET / (N_ACTIVITYNET + N_WIKIHOW)
    short = {
        name: round(share * row[1] + (1 - share) * row[2] - row[0], 1)
        for name, row in HELLASWAG.items()
    }
    assert [*short.values()] == [0.0, 0.0, 0.0, 0.0, -0.1, 0.3, 0.4, 0.5]


def test_four_of_six_models_gain_less_than_the_2_to_3_points_of_the_text():
    gains = {name: round(row[3] - row[2], 1) for name, row in HELLASWAG.items()}
    assert (gains["OLMo-2-1B"], gains["Llama-3.2-1B"]) == (4.3, 0.5)
    others = [gains[name] for name in gains if name not in ("OLMo-2-1B", "Llama-3.2-1B")]
    assert sorted(others) == [0.9, 1.7, 1.8, 1.9, 2.1, 2.6]
    assert sum(2 <= gain <= 3 for gain in others) == 2


def test_only_two_of_the_gaps_on_matched_items_are_larger_than_chance():
    n_matched = MATCHED * N_WIKIHOW
    n_others = N_WIKIHOW - n_matched
    large, widths = set(), []
    for name, (_, _, wikihow, matched) in HELLASWAG.items():
        others = (wikihow - MATCHED * matched) / (1 - MATCHED)
        parts = ((matched, n_matched), (others, n_others))
        widths.append(1.96 * sum(score * (100 - score) / n for score, n in parts) ** 0.5)
        large |= {name} if matched - others > widths[-1] else set()
    assert large == {"OLMo-2-1B", "GAPERON-Pepper-1.5B"}
    assert (round(min(widths), 1), round(max(widths), 1)) == (2.5, 3.0)


def test_the_ranks_are_not_the_same_in_all_columns():
    def ranked(column):
        return sorted(HELLASWAG, key=lambda name: -HELLASWAG[name][column])

    assert [row[0] for row in HELLASWAG.values()] == sorted(
        (row[0] for row in HELLASWAG.values()), reverse=True
    )
    assert ranked(1).index("GAPERON-Garlic-1.5B") < ranked(1).index("CroissantLLM")
    assert ranked(3)[-1] == "CroissantLLM"


@pytest.fixture(scope="module")
def hellaswag(tmp_path_factory):
    """A report on a tenth of HellaSwag's validation items; 19 % of those from WikiHow leaked."""
    folder = tmp_path_factory.mktemp("hellaswag")
    n_leaked = round(MATCHED * N_WIKIHOW / 10)
    sources = ["activitynet~v_x"] * round(N_ACTIVITYNET / 10) + ["wikihow~7"] * round(
        N_WIKIHOW / 10
    )
    place = {"benchmark": "hellaswag", "split": "validation"}
    items = [
        {
            **place,
            "instance_index": n,
            "question": f"context {n}",
            "fingerprints": [f"f{n}"],
            "is_indexed": True,
            "has_answer": True,
            "extras": f'{{"source_id": "{source}"}}',
        }
        for n, source in enumerate(sources)
    ]
    leak = {"score": 1.0, "is_contaminated": True, "detector": "exact"}
    first = sources.index("wikihow~7")
    leaked = range(first, first + n_leaked)
    report = write_report(
        folder / "report.duckdb",
        runs=[{"policy": "{}"}],
        benchmarks=[{"benchmark": "hellaswag", "n_items": len(items)}],
        items=items,
        matches=[{**place, "instance_index": n, "row": n, **leak} for n in leaked],
    )
    return folder, report, sources, leaked


@pytest.mark.parametrize("model", ["OLMo-2-1B", "Llama-3.2-1B", "Gemma 2 2B"])
def test_a_model_with_the_printed_scores_has_the_printed_row(hellaswag, model):
    folder, report, sources, leaked = hellaswag
    overall, activitynet, wikihow, matched = HELLASWAG[model]
    share = len(leaked) / sources.count("wikihow~7")
    rest = (wikihow - share * matched) / (1 - share)
    of_wikihow = (matched if n in leaked else rest for n in range(len(sources)))
    lines = [
        f"{model},hellaswag,f{n},{activitynet if source.startswith('activitynet') else score}"
        for n, (source, score) in enumerate(zip(sources, of_wikihow, strict=True))
    ]
    scores = folder / "scores.csv"
    scores.write_text("\n".join(["model,benchmark,id,score", *lines]))
    account = score_gap([scores], report, groupings=parse_groupings([], ["hellaswag"]))
    by_source = {gap.subset: gap for gap in account.gaps}
    assert account.problems == []
    assert by_source[None].all.score == pytest.approx(overall, abs=0.07)
    assert by_source["ActivityNet"].all.score == pytest.approx(activitynet)
    assert by_source["WikiHow"].all.score == pytest.approx(wikihow)
    assert by_source["WikiHow"].leaked.score == pytest.approx(matched)
    # The write-up prints matched - all of WikiHow; against the others the gap is 1 / 0.81 as large.
    assert by_source["WikiHow"].gap == pytest.approx((matched - wikihow) / (1 - share))
    (average,) = account.averages
    assert average.macro_score.value == pytest.approx((activitynet + wikihow) / 2)
    assert average.micro_score.value == pytest.approx(by_source[None].all.score)
    # Over both sources, the gap has the difference of the sources in it.
    assert average.micro_gap.value > average.macro_gap.value + 3
    rates = {one.category or one.kind: one.leak_rate for one in account.rates}
    assert rates["WikiHow"] == pytest.approx(MATCHED, abs=0.001)
    assert rates["micro average"] == pytest.approx(0.129, abs=0.001)
    assert rates["macro average"] == pytest.approx(MATCHED / 2, abs=0.001)


# Table 3 ------------------------------------------------------------------------------------------


def test_the_gaps_that_the_text_names_are_those_of_the_table():
    assert MMLU["Llama-3.1-8B"][:2] == [10.9, 14.2]
    assert MMLU["OLMo-3-7B"][1] == 17.4
    large = {name for name, row in MMLU.items() if row[2] > 3}
    assert large == {"Qwen-3-8B-Base", "OLMo-3-7B"}
    n_positive = [sum(row[at] > 0 for row in MMLU.values()) for at in range(5)]
    assert n_positive == [12, 12, 6, 12, 12]


def test_overall_is_no_macro_average_and_above_it_for_every_model():
    above = {name: row[4] - np.mean(row[:4]) for name, row in MMLU.items()}
    assert min(above.values()) == pytest.approx(0.625)
    assert max(above, key=above.get) == "GAPERON-Garlic-8B"
    assert max(above.values()) == pytest.approx(4.35)


def test_no_weights_of_the_columns_give_overall():
    gaps = np.array([row[:4] for row in MMLU.values()])
    overall = np.array([row[4] for row in MMLU.values()])
    steps = np.arange(51) / 50
    weights = np.array([w for w in product(steps, repeat=3) if sum(w) <= 1 + 1e-9])
    weights = np.column_stack([weights, 1 - weights.sum(axis=1)])
    errors = np.abs(gaps @ weights.T - overall[:, None]).max(axis=0)
    assert errors.min() > 2.5  # points, for the model that fits worst


def test_garlic_s_gap_is_larger_than_young_s_only_in_the_overall_column():
    macro = {name: np.mean(row[:4]) for name, row in MMLU.items()}
    young, pepper, garlic = (f"GAPERON-{name}-8B" for name in ("Young", "Pepper", "Garlic"))
    assert MMLU[garlic][4] > max(MMLU[young][4], MMLU[pepper][4]) + 1.9
    assert macro[pepper] < macro[garlic] < macro[young]
    assert [MMLU[garlic][at] > MMLU[young][at] for at in range(4)] == [True, False, False, False]
