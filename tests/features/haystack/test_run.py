"""The whole study: what it writes, that it is repeatable, and what its key depends on."""

import csv
import json
import re
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from decon_core.decisions.calibration import wilson
from decon_core.errors import ConfigError
from decon_core.features.haystack import page, product
from decon_core.features.haystack.page import section_of
from decon_core.features.haystack.product import haystack_key, is_missing
from decon_core.features.haystack.settings import Haystack
from decon_core.report.html.still import svg
from tests.features.haystack.conftest import Place, record


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("study") / "corpus")
    place.write()
    return place.run()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_items_that_look_like_instructions_rank_above_pages(study):
    instruction_like, _, short = study.scored
    assert short.placings[0]["median_percentile"] > 50
    assert instruction_like.ranking.n == 60
    every, quiz, sums = instruction_like.placings
    assert [placing["n"] for placing in (every, quiz, sums)] == [8, 4, 4]
    assert every["median_percentile"] > 75
    assert every["amplification"][3]["amplification"] > 1


def test_the_same_inputs_give_the_same_files(place, study, tmp_path):
    page.write(study, tmp_path / "one", key="k")
    place.packs = lambda packs=place.packs: packs()[::-1]
    page.write(place.run(), tmp_path / "other", key="k")
    assert contents(tmp_path / "one") == contents(tmp_path / "other")
    assert {*contents(tmp_path / "one")} == {*product.FILES}


def test_files_beside_the_outputs_are_kept_and_the_outputs_replaced(study, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "haystack.md").write_text("old")
    page.write(study, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "haystack.md").read_text().startswith("# Benchmark items in a haystack")


def test_every_planted_item_has_a_row_for_each_scorer(study, tmp_path):
    page.write(study, tmp_path)
    with (tmp_path / "haystack.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 3 * 8
    (row,) = (r for r in rows if (r["scorer"], r["item"]) == ("educational", rows[0]["item"]))
    assert 0 <= float(row["percentile"]) <= 100
    percentile = 100 * (1 - (float(row["rank"]) - 1) / int(row["n_ranked"]))
    assert float(row["percentile"]) == pytest.approx(percentile, abs=1e-5)
    lines = (tmp_path / "planted.jsonl").read_text().splitlines()
    planted = [json.loads(line) for line in lines]
    assert [one["item"] for one in planted] == [r["item"] for r in rows[:8]]
    assert "forty two" in planted[0]["text"]


def test_the_amplification_has_a_row_for_each_cut_of_each_benchmark_and_of_all(study, tmp_path):
    page.write(study, tmp_path)
    with (tmp_path / "amplification.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 3 * 3 * 5
    assert {row["benchmark"] for row in rows} == {"", "quiz", "sums"}
    for row in rows:
        share = int(row["n_kept"]) / 60
        assert float(row["amplification"]) == pytest.approx(float(row["share"]) / share, abs=1e-4)
    value = json.loads((tmp_path / "haystack.json").read_text())
    found = value["scorers"][0]["placings"][0]["amplification"][0]
    assert found["amplification"] == float(rows[0]["amplification"])


def test_the_figures_have_every_item_and_cut_with_its_interval(study, tmp_path):
    page.write(study, tmp_path)
    rows = [
        [*csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines())]
        for name in product.TABLES
    ]
    drawn = section_of(tmp_path).choices[0].charts
    assert [svg(chart) for chart in drawn] == [
        (tmp_path / f"{name}.svg").read_text() for name in product.TABLES
    ]
    percentiles, kept = drawn
    assert {*percentiles.data[2]["x"]} == {float(row["percentile"]) for row in rows[0]}
    documents, first, *_ = kept.data
    assert documents["y"] == [1, 5, 10, 25, 50]
    of_first = [row for row in rows[1] if (row["scorer"], row["benchmark"]) == (first["name"], "")]
    assert first["y"] == pytest.approx([100 * float(row["share"]) for row in of_first], abs=0.01)
    lows = [y - below for y, below in zip(first["y"], first["error_y"]["arrayminus"], strict=True)]
    wanted = [wilson(float(row["share"]), 8)[0] for row in of_first]
    assert lows == pytest.approx([100 * low for low in wanted], abs=0.01)


def test_names_with_markup_stay_text(study, tmp_path):
    odd = replace(study, scored=(replace(study.scored[0], name="<b>|x"),))
    page.write(odd, tmp_path)
    ET.fromstring((tmp_path / "haystack.svg").read_text())
    assert re.search(r"^\| &lt;b>\\\|x \|", (tmp_path / "haystack.md").read_text(), re.MULTILINE)


def test_the_key_changes_with_every_input(place):
    packs, versions = place.packs(), place.versions()
    key = haystack_key(packs, versions, Haystack())
    others = [
        haystack_key(packs, versions, Haystack(**settings))
        for settings in (
            {"seed": 1},
            {"items": 3},
            {"documents": 5},
            {"cuts": (0.5,)},
            {"scorers": ("educational",)},
            {"benchmarks": ("quiz",)},
        )
    ]
    others.append(haystack_key(packs[:1], versions, Haystack()))
    others.append(haystack_key(packs, versions[:1], Haystack()))
    assert len({key, *others}) == 9
    assert haystack_key(packs[::-1], versions, Haystack()) == key


def test_a_study_is_up_to_date_only_with_its_key_and_all_its_files(study, tmp_path):
    assert not product.has_haystack(tmp_path / "out", "k")
    page.write(study, tmp_path / "out", key="k")
    assert product.has_haystack(tmp_path / "out", "k")
    assert not product.has_haystack(tmp_path / "out", "other")
    (tmp_path / "out" / "haystack.json").write_text("[")
    assert not product.has_haystack(tmp_path / "out", "k")
    page.write(study, tmp_path / "out", key="k")
    (tmp_path / "out" / "amplification.svg").unlink()
    assert not product.has_haystack(tmp_path / "out", "k")


def test_a_haystack_with_a_scorer_without_its_file_is_missing(place):
    settings = Haystack(scorers=("fasttext:/nowhere/q.bin:hq",))
    config = SimpleNamespace(table=lambda _: settings)
    plan = SimpleNamespace(config=config, packs=place.packs(), versions=place.versions())
    assert is_missing(plan)


def test_unknown_benchmarks_and_those_without_answers_are_named_together(place):
    row = {**record("open", "test", 0), "answer": None}
    place.versions = lambda known=place.versions: [*known(), place.save("open", [row])]
    with pytest.raises(ConfigError, match=r"Did you mean 'quiz'\?\n.*1 item in test splits, none"):
        place.run(benchmarks=("quizz", "open"))


def test_subjects_are_drawn_in_turn_and_have_rows_of_their_own(place, tmp_path):
    subjects = ("anatomy", "law", "physics")
    rows = [record("exam", "test", n, subject=subjects[max(n - 12, 0) % 3]) for n in range(18)]
    place.versions = lambda: [place.save("exam", rows)]
    options = {"scorers": ("short",), "items": 6}
    (scored,) = place.run(**options).scored
    assert [(one["subject"], one["n"]) for one in scored.placings[1:]] == [
        *((None, 6), ("anatomy", 2), ("law", 2), ("physics", 2)),
    ]
    study = place.run(**options, subjects=("anatomy", "law"))
    page.write(study, tmp_path)
    with (tmp_path / "amplification.csv").open() as file:
        assert [row["subject"] for row in csv.DictReader(file)][::5] == ["", "", "anatomy", "law"]
    assert "| short | exam: law | 2 |" in (tmp_path / "haystack.md").read_text()
    words = {one.text for one in ET.parse(tmp_path / "haystack.svg").iter()}
    assert {"short, exam", "short, exam: anatomy", "short, exam: law"} <= words
    with pytest.raises(ConfigError, match="Did you mean 'physics'"):
        place.run(**options, subjects=("phisics",))
