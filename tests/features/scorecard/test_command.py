"""`decon-assets scorecard` and the asset: the whole way on the sample world, at small size."""

import re
from pathlib import Path

import polars as pl
import pytest
from dagster import AssetKey

from decon_assets.cli.main import main
from decon_assets.definitions import build_definitions
from decon_core.config.detector_registry import BUILT_IN

DATA = Path(__file__).parents[3] / "data"
COMMAND = [
    "scorecard",
    *("--evals", str(DATA / "evals.yaml"), "--texts", str(DATA / "corpus")),
    *("--per-transformation", "6", "--background", "40", "--seed", "3"),
]


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorecard")
    page = ["--page", str(folder / "docs" / "card.md")]
    assert main([*COMMAND, "--out", str(folder / "card"), *page]) == 0
    return folder


def table(card, name):
    return pl.read_csv(card / "card" / f"{name}.csv")


def recall(card, detector, transformation, grade=None):
    rows = table(card, "recall").filter(detector=detector, transformation=transformation)
    rows = rows.filter(pl.col("grade").fill_null("") == (grade or ""))
    (share,) = rows["recall"]
    return share


@pytest.mark.parametrize("detector", BUILT_IN)
def test_every_rule_finds_what_is_planted_as_it_is(card, detector):
    # No planted item is a program.
    assert recall(card, detector, "verbatim") == (0.0 if detector == "code" else 1.0)


@pytest.mark.parametrize("detector", ["decon", "ratcliff", "ngram_any", "exact"])
@pytest.mark.parametrize("way", ["replaced", "deleted", "inserted"])
def test_the_more_words_are_edited_the_less_is_found(card, detector, way):
    grades = [recall(card, detector, f"words {way}", f"{rate} %") for rate in (5, 10, 20, 40)]
    assert grades == sorted(grades, reverse=True)
    assert grades[-1] < 0.5


def test_decon_flags_no_hard_negative(card):
    rows = table(card, "negatives").filter(detector="decon")
    assert rows.height == 5
    assert rows["n"].sum() > 20
    assert rows["n_flagged"].sum() == 0


def test_each_rule_sees_what_it_is_there_for(card):
    assert recall(card, "decon", "case and punctuation", "upper case") == 1.0
    assert recall(card, "exact", "case and punctuation", "upper case") == 0.0
    assert recall(card, "ratcliff", "words replaced", "10 %") > 0.5
    assert recall(card, "longest_match", "question only") > 0.8
    assert recall(card, "ngram_any", "truncated", "50 % kept") > 0.3


def without_date(text):
    return re.sub(r"\d{4}-\d\d-\d\d", "", text)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(card, tmp_path):
    main([*COMMAND, "--out", str(tmp_path / "again")])
    main([*COMMAND[:-1], "4", "--out", str(tmp_path / "other")])
    files = sorted(path for path in (card / "card").rglob("*") if path.is_file())
    assert len(files) > 12
    for path in files:
        name = path.relative_to(card / "card")
        again = tmp_path / "again" / name
        if name.suffix in {".md", ".json"}:
            first, second = (without_date(file.read_text()) for file in (path, again))
            assert first == second
        else:
            assert path.read_bytes() == again.read_bytes(), name
    assert (tmp_path / "other" / "recall.csv").read_bytes() != (
        tmp_path / "again" / "recall.csv"
    ).read_bytes()


def test_the_page_names_every_rule_and_how_it_was_made(card):
    page = (card / "docs" / "card.md").read_text()
    for detector in BUILT_IN:
        assert f"| `{detector}` |" in page
        assert re.search(rf"- \*\*.*`{detector}`\.\*\*", page), detector
    for told in ("--per-transformation 6", "--seed 3", "harbor_mc", "`ngram_any` 13", "Python 3"):
        assert told in page
    assert "](images/card.svg)" in page
    assert (card / "docs" / "images" / "card.svg").read_text().startswith("<svg")
    own = (card / "card" / "scorecard.md").read_text()
    assert own == page.replace("](images/card.svg)", "](scorecard.svg)")


def test_the_tables_are_printed_and_progress_is_told_apart(tmp_path, capsys):
    command = [*COMMAND, "--per-transformation", "1", "--background", "0"]
    assert main([*command, "--detectors", "decon,exact", "--out", str(tmp_path / "card")]) == 0
    said = capsys.readouterr()
    heads = [line.split() for line in said.out.splitlines() if "grade" in line]
    assert heads == [["transformation", "grade", "n", "decon", "exact", "no", "answer"]]
    assert str(tmp_path / "card" / "scorecard.md") in said.out
    assert "plantings" in said.err
    assert "plantings" not in said.out


def test_a_policy_file_is_heeded(tmp_path):
    (tmp_path / "policy.toml").write_text('tokenizer_str = "words"\nnormalize = "decon"\n')
    command = [*COMMAND, "--policy", str(tmp_path / "policy.toml"), "--out", str(tmp_path / "card")]
    assert main([*command, "--detectors", "exact"]) == 0
    assert recall(tmp_path, "exact", "case and punctuation", "upper case") == 1.0
    page = (tmp_path / "card" / "scorecard.md").read_text()
    for setting in ("tokenizer_str = 'words'", "normalize = 'decon'"):
        assert f"`{setting}`" in page


def test_wrong_inputs_end_with_2_before_anything_is_written(tmp_path, capsys):
    out = tmp_path / "card"
    assert main([*COMMAND, "--texts", "nowhere", "--out", str(out)]) == 2
    assert "nowhere" in capsys.readouterr().err
    for wrong in (["--detectors", "all,decon"], ["--per-transformation", "0"]):
        assert main([*COMMAND, *wrong, "--out", str(out)]) == 2
    assert list(tmp_path.iterdir()) == []


# The job that makes the asset ---------------------------------------------------------------------


def materialize(world, **config):
    definitions = build_definitions(config_path=str(world.config_path))
    return definitions.resolve_job_def("scorecard").execute_in_process(
        instance=world.instance,
        run_config={"ops": {"plant_and_scan": {"config": config}}},
        raise_on_error=False,
    )


def test_the_asset_shows_what_each_rule_finds_of_the_registered_benchmarks(world):
    world.start()
    result = materialize(world, per_transformation=1, background=5)
    assert result.success
    (event,) = result.get_asset_materialization_events()
    assert event.asset_key == AssetKey("scorecard")
    metadata = event.materialization.metadata
    for detector in BUILT_IN:
        assert f"| {detector} |" in metadata["detectors"].value
    assert "| verbatim |  | 1 | 100 | 100 | 100 | 100 | 100 |" in metadata["recall"].value
    assert "data:image/svg+xml;base64," in metadata["plot"].value
    assert metadata["planted"].value > 30
    assert 0 < metadata["background"].value <= 5  # of a small corpus
    folder = Path(metadata["folder"].value)
    assert folder.is_relative_to(world.store.root)
    assert (folder / "scorecard.md").is_file()


def test_the_asset_says_what_is_missing_or_wrong(world):
    world.write_config()
    assert "no normalized records" in failure_of(materialize(world))
    world.run(until="records")
    assert "policy.detectors" in failure_of(materialize(world, detectors=["guess"]))


def failure_of(result):
    assert not result.success
    (event,) = result.get_step_failure_events()
    return event.step_failure_data.user_failure_data.description
