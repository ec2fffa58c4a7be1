"""The world in data/, run whole: the truth table, and a benchmark that joins later."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from dagster import DagsterInstance

from decon_assets.cli.main import main
from decon_assets.cli.pipeline import say_truth
from decon_assets.run_requests import unscanned_or_unknown
from decon_assets.runner.pipeline import Pipeline
from decon_core.config.load import load_config
from decon_core.features.blends.build import Blender
from decon_core.features.blends.counts import account_of
from decon_core.features.blends.plan import plan_blend
from decon_core.features.blends.product import blender_of
from decon_core.features.blends.schemas import blend_manifest
from decon_core.features.blends.settings import declared_blends
from decon_core.features.blends.verify import verify_blend
from decon_core.features.gap.account import score_gap
from decon_core.features.gap.page import average_line, line
from decon_core.mixtures.verify import verify
from decon_core.planner import Plan
from decon_core.report.categories.groupings import parse_groupings
from decon_core.report.categories.rates import rate_lines
from decon_core.report.items import load_report_items
from decon_core.report.truth import compare
from decon_core.storage.files import read_json
from decon_core.storage.store import Store
from tests.finished_world import copy_finished_world, keep_one_mixture
from tests.long_runs import only_in_long_runs

pytestmark = pytest.mark.release

DATA = Path(__file__).parents[1] / "data"
INSIDE = {"harbor_mc", "ledger_math", "almanac_rc", "strait_mt"}
MUST_BE_FOUND = {"verbatim", "at_start", "at_end", "punctuation_and_case", "single_edit"}


def copy_of_data(folder: Path, *, with_later: bool = False) -> Path:
    """A copy to run in; its configuration."""
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns(".d*", "__pycache__"))
    if with_later:
        add_later(folder)
    return folder / "decon.toml"


def add_later(folder: Path) -> None:
    """What the README says to do when a benchmark joins."""
    path = folder / "decon.toml"
    before = path.read_text()
    after = before.replace('["evals.yaml"]', '["evals.yaml", "later/evals.yaml"]')
    assert after != before
    path.write_text(after)


def run(config: Path, instance: DagsterInstance) -> list[str]:
    said: list[str] = []
    Pipeline(config, instance, said.append).run()
    return said


def scan_results(config: Path) -> dict[str, bytes]:
    root = config.parent / ".decon" / "scan_results"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def score(config: Path):
    report = config.parent / ".decon" / "report" / "contamination.duckdb"
    return compare(report, config.parent / "truth.jsonl")


def n_shards_read(said: list[str]) -> int:
    return sum(int(n) for line in said for n in re.findall(r"read (\d+) shards?, wrote", line))


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Of the finished world with its four benchmarks, which no test changes."""
    return copy_finished_world(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def four_report(config):
    return Store(load_config(config).store).report


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A copy with one mixture that a fifth benchmark has joined, and what its run said."""
    config = copy_finished_world(tmp_path_factory.mktemp("joined"))
    keep_one_mixture(config)
    add_later(config.parent)
    with DagsterInstance.from_config(str(config.parent.with_name("home"))) as instance:
        return config, run(config, instance)


def test_every_plant_that_must_be_found_is_found_and_no_hard_negative_is_flagged(config, capsys):
    benchmarks, phenomena = score(config)
    with capsys.disabled():  # the truth table is for people, in a run that passes as well
        say_truth(benchmarks, phenomena)
    by_name = {found["phenomenon"]: found for found in phenomena}
    assert set(by_name) >= MUST_BE_FOUND
    for found in (by_name[name] for name in MUST_BE_FOUND):
        assert found["n_flagged"] == found["n"] == found["n_expected"] >= 2
    for found in phenomena:
        assert found["n_wrong"] == 0, found
        if found["kind"] == "hard_negative":
            assert found["n_flagged"] == 0
            assert found["n"] >= 3
    assert {found["benchmark"] for found in benchmarks} == INSIDE
    assert all(found["n_items"] >= 60 for found in benchmarks)
    assert all(found["n_false_alarms"] == 0 for found in benchmarks)


def test_the_verdict_on_the_readme_s_first_screen_is_the_report_s(four_report):
    with duckdb.connect(str(four_report), read_only=True) as connection:
        row = connection.execute(
            "SELECT n_matched, n_grams, round(question_overlap, 2), answer_overlap, "
            "round(score, 3) FROM matches WHERE shard_name = 'shelf-0001.jsonl.gz' AND row = 393 "
            "AND (benchmark, split, instance_index) = ('ledger_math', 'train', 16)"
        ).fetchone()
    assert row == (49, 50, 0.95, 1.0, 0.948)
    readme = (DATA.parent / "README.md").read_text()
    assert "leak (edited): ledger_math train 16, by aligned, score 0.948 (threshold 0.6)" in readme


def test_the_page_on_the_score_gap_shows_what_comes_out(four_report):
    account = score_gap([DATA / "scores.csv"], four_report)
    assert account.problems == []
    assert len(account.gaps) == 8
    page = " ".join((DATA.parent / "docs" / "score-gap.md").read_text().split())
    for gap in account.gaps:
        assert " ".join(" ".join(line(gap)).split()) in page


def test_a_line_of_the_score_gap_is_not_of_two_scales(four_report, tmp_path, capsys):
    head, *rows = (DATA / "scores.csv").read_text().splitlines()
    rescaled = [re.sub(",1$", ",100", row) for row in rows]
    second = next(at for at, row in enumerate(rows) if row.startswith("heron,strait_mt"))

    def write_two_files(at):
        for name, part in (("one.csv", rows[:at]), ("two.csv", rescaled[at:])):
            (tmp_path / name).write_text("\n".join([head, *part]))

    command = ["gap", "--results", str(tmp_path), "--report", str(four_report)]
    write_two_files(second)  # models and benchmarks are lines of their own, each on its scale
    assert main(command) == 0
    capsys.readouterr()
    write_two_files(second + 30)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "gap, score of strait_mt by heron: found a scale beyond 1 (score of strait_mt" in said
    assert "name their tasks with --beyond-one" in said
    assert main([*command, "--beyond-one", "strait_*"]) == 0


def test_the_page_on_categories_shows_what_comes_out(four_report):
    account = score_gap(
        [DATA / "scores.csv"], four_report, groupings=parse_groupings(["split"], [])
    )
    page = (DATA.parent / "docs" / "studies" / "categories.md").read_text()
    shown = [" ".join(row.split()) for row in page.splitlines()]
    rates = [one for one in account.rates if one.benchmark in ("harbor_mc", "ledger_math")]
    of_gull = [one for one in account.averages if one.name.model == "gull"]
    expected = [*rate_lines(rates), *(average_line(one)[:-1] for one in of_gull[:3])]
    assert len(expected) == 11
    for row in expected:
        assert " ".join(" ".join(row).split()) in shown


def test_the_figures_on_the_page_of_haystack_are_those_that_the_demo_draws(config):
    drawn, shown = load_config(config).store / "haystack", DATA.parent / "docs" / "images"
    for name, image in (("haystack", "haystack"), ("amplification", "haystack-amplification")):
        assert (shown / f"{image}.svg").read_text() == (drawn / f"{name}.svg").read_text()


def test_items_keep_the_short_fields_of_their_recipes(four_report):
    items = load_report_items(four_report).rows
    kept = {one.benchmark: {*one.extras} for one in items}
    assert kept == {
        "almanac_rc": {"id", "title"},
        "harbor_mc": {"id"},
        "ledger_math": set(),
        "strait_mt": {"id"},
    }


def test_the_page_on_loss_masks_shows_what_its_program_prints(config, monkeypatch, capsys):
    page = (DATA.parent / "docs" / "loss-masks.md").read_text()
    program, printed = re.findall(
        r"```python\n(from collections.*?)```\n\n```\n(.*?)```", page, re.DOTALL
    )[0]
    monkeypatch.chdir(config.parent.parent)
    exec(program, {})
    assert capsys.readouterr().out == printed
    manifests = Path("data/.decon/manifests/mixtures/loss_masked").glob("parlor-*/manifest.json")
    totals = [read_json(one)["totals"] for one in manifests]
    n_masked, n_tokens, n_left = (
        sum(one[name] for one in totals)
        for name in ("n_masked_tokens", "n_input_tokens", "n_tokens_out")
    )
    assert f"{n_masked:,} of {n_tokens:,} tokenizer.json tokens masked" in page
    assert f"1,290 documents, {n_left:,} tokens" in page


def test_a_fifth_benchmark_fills_only_its_column_and_finds_its_leaks(config, joined):
    later, said = joined
    before, after = scan_results(config), scan_results(later)
    benchmarks, _ = score(later)
    assert {path: after[path] for path in before} == before
    assert len(set(after) - set(before)) == 18  # a scan result for each shard, and its counts
    assert n_shards_read(said) == 9  # every shard once
    (orchard,) = [found for found in benchmarks if found["benchmark"] == "orchard_code"]
    assert orchard["n_found"] == orchard["n_planted"] >= 4
    assert orchard["n_false_alarms"] == 0


@only_in_long_runs("takes half a minute; test_chain.py has the same of a small world")
def test_five_from_scratch_equal_four_and_one_byte_for_byte(joined, tmp_path):
    grown = scan_results(joined[0])
    config = copy_of_data(tmp_path / "data", with_later=True)
    said: list[str] = []
    with DagsterInstance.ephemeral() as instance:
        pipeline = Pipeline(config, instance, said.append)
        pipeline.scan(unscanned_or_unknown, most_partitions=1000)
    assert scan_results(config) == grown
    assert n_shards_read(said) == 9


def test_every_variant_and_blend_that_is_declared_is_what_it_says(config):
    builder = blender_in(config)
    for mixture in builder.builder.mixtures:
        assert verify(builder.builder, mixture).problems == []
    by_name = {blend.name: verify_blend(builder, blend) for blend in builder.blends}
    assert [found.problems for found in by_name.values()] == [[], [], []]
    assert [found.n_leaks for found in by_name.values()] == [0, 0, 0]
    put_in = {name: (found.n_found, found.n_test_texts) for name, found in by_name.items()}
    assert put_in["curriculum"] == (0, 0)
    assert put_in["swapped"] == (50, 50)
    n_found, n_texts = put_in["garlic"]
    assert n_found == n_texts > 400
    for drawn in manifest_of(builder, "curriculum")["phases"]:
        shares = {one["source"]: one["share_of_tokens"] for one in drawn["sources"]}
        wanted = {1: {"shelf": 0.8, "parlor": 0.2}, 2: {"shelf": 0.25, "parlor": 0.75}}
        assert shares.pop("agents") == 0  # the phases name the other two
        assert shares == pytest.approx(wanted[drawn["phase"]], abs=0.03)


def blender_in(config):
    settings = load_config(config)
    return blender_of(settings, Plan(settings, Store(config.parent / ".decon")).builder)


def manifest_of(blender, name):
    return read_json(blend_manifest(blender.builder.store, name))


def test_the_grid_has_every_form_at_every_time_and_once_ten_and_a_hundred_times(config):
    """All sixty are planned; the largest of each form are written and scanned."""
    blends = declared_blends(load_config(DATA / "grid" / "decon.toml"))
    assert len(blends) == 61
    blender = Blender(blender_in(config).builder, blends)
    planned = {}
    for blend in blends:
        plan = plan_blend(blender.builder, blend, blender.rewordings)
        account = account_of(plan)
        assert account["totals"]["n_documents"] == 12_500
        if not blend.contamination:
            continue
        (declared,), (one,) = blend.contamination, account["contamination"]
        n_parts = 2 if declared.form.startswith("apart") else 1
        assert one["n_items_seen"] == 3
        assert one["n_texts"] == 3 * declared.copies * n_parts
        low, high = declared.token_range
        assert low - 0.02 <= one["first_at"] <= one["last_at"] <= high + 0.05
        planned[declared.form, declared.schedule, declared.copies] = blend
    assert len(planned) == 5 * 4 * 3
    # A question that stands apart from its answer has the class `no answer`.
    for form, n_found in (("target", 0), ("apart", 300)):
        blend = planned[form, "late", 100]
        blender.build(blend)
        found = verify_blend(blender, blend)
        assert found.problems == []
        assert found.n_given_away == 0
        assert found.n_found == n_found


def test_sessions_of_agents_are_read_whole_and_a_source_that_reads_less_is_not_clean(
    tmp_path, monkeypatch, capsys
):
    config = copy_finished_world(tmp_path)
    keep_one_mixture(config)
    whole = config.read_text()
    mixture = Store(config.parent / ".decon").mixtures("decontaminated")

    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    command = ["run", "--config", str(config)]

    assert main(command) == 0
    assert "was not read" not in "".join(capsys.readouterr())
    assert leaked_sessions(config) == {0, 39, 94, 119}
    assert shares_of(mixture) == {"shelf", "parlor", "agents"}

    name = 'name = "agents"\n'
    config.write_text(whole.replace(name, f'{name}text = "messages[].content"\n'))
    assert main(command) == 4
    said = capsys.readouterr().out
    (line,) = re.findall(r"(?m)^.* of the text of source `agents` was not read: .*", said)
    for path in (
        "messages[].tool_calls[].function.arguments",
        "messages[].reasoning_content",
        "tools[].function.description",
    ):
        assert f"`{path}`" in line
    assert leaked_sessions(config) == {0, 39}
    assert shares_of(mixture) == {"shelf", "parlor"}


def leaked_sessions(config):
    report = Store(config.parent / ".decon").report
    with duckdb.connect(str(report), read_only=True) as connection:
        rows = connection.execute(
            "SELECT row FROM matches WHERE source = 'agents' AND is_contaminated"
        ).fetchall()
    return {row for (row,) in rows}


def shares_of(mixture):
    return {path.name.partition("-")[0] for path in mixture.iterdir() if path.is_dir()}


@only_in_long_runs("properties hold oracle and engine together")
def test_the_oracle_agrees_with_the_truth_file():
    command = [sys.executable, "-m", "data.check_sample_world"]
    done = subprocess.run(command, cwd=DATA.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
