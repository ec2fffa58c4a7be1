"""`decon-assets study` and the asset: the sample world's training runs, with known effects."""

import shutil
from collections import Counter

import duckdb
import numpy as np
import pytest

from decon_assets.cli.main import main
from decon_core.config.load import load_config
from decon_core.decisions import statistics
from decon_core.features.blends.schemas import blend_folder, blend_manifest
from decon_core.features.blends.settings import declared_blends
from decon_core.features.results.items import indexed_items
from decon_core.features.study.exposure import ALL, Effect, effects, leaked_labels, planted_labels
from decon_core.features.study.page import section_of
from decon_core.features.study.product import (
    DATABASE,
    is_current,
    study_folder,
    study_inputs,
    study_key,
)
from decon_core.quality.integrity import verify_store
from decon_core.report.items import load_report_items
from decon_core.report.page_additions import additions_on_page
from decon_core.storage.store import Store
from tests.finished_world import DATA, copy_finished_world

DOCS = DATA.parent / "docs"

EFFECTS_FILE = "effects.csv"

# As `data/make_study.py` has them.
LEAKED, SEEN, HELD_BACK = 0.35, 0.45, 0.1


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return copy_finished_world(tmp_path_factory.mktemp("study"))


def effects_of(config):
    path = study_folder(Store(config.parent / ".decon")) / "study.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(
            "SELECT training_run, benchmark, exposure, low, high FROM effects WHERE form = ''"
        ).fetchall()
    return {tuple(row[:3]): row[3:] for row in rows}


def test_the_known_effects_of_the_sample_world_are_in_their_intervals(finished):
    found = effects_of(finished)
    known = {
        ("original", "all benchmarks", "leaked"): LEAKED,
        ("original", "all benchmarks", "clean"): 0.0,
        ("original", "all benchmarks", "leaked - clean"): LEAKED,
        ("swapped", "almanac_rc", "held back"): HELD_BACK,
        ("swapped", "almanac_rc", "seen - held back"): SEEN - HELD_BACK,
        ("swapped", "all benchmarks", "not planted"): 0.0,
    }
    for key, effect in known.items():
        low, high = found[key]
        assert low <= effect <= high, key
    assert found["swapped", "almanac_rc", "seen"][0] > 0.2


def test_the_study_is_printed_copied_and_built_again_when_results_change(
    finished, tmp_path, capsys
):
    inputs = study_inputs(load_config(finished), Store(finished.parent / ".decon"))
    assert is_current(inputs)
    command = ["study", "--config", str(finished)]
    assert main([*command, "--out", str(tmp_path / "tables")]) == 0
    out = capsys.readouterr().out
    assert "swapped 0.683 0.582" in " ".join(out.split())
    assert "knowledge" in out
    assert "seen - held back" in out
    printed = {" ".join(row.split()) for row in out.splitlines()}
    for name in ("training-runs", "translation"):  # every row that the docs show
        page = (DOCS / f"studies/{name}.md").read_text().splitlines()
        shown = [" ".join(row.split()) for row in page if row.startswith("    ")]
        rows = [row for row in shown if row.startswith(("clean ", "original ", "swapped "))]
        assert len(rows) > 4
        assert {*rows} <= printed
    assert "strait_mt (bleu)" in out
    effects = (tmp_path / "tables" / EFFECTS_FILE).read_text()
    assert effects.startswith("training_run,benchmark,metric,filter,exposure")
    page = (tmp_path / "tables/study.md").read_text()
    assert "| original | all benchmarks | score |  | leaked |" in page
    with duckdb.connect(str(study_folder(inputs.store) / DATABASE), read_only=True) as connection:
        at_end = "SELECT * EXCLUDE step FROM effects_by_step WHERE step = 3000"
        others = connection.execute(f"({at_end} EXCEPT FROM effects)").fetchall()
        steps = connection.execute("SELECT DISTINCT step FROM effects_by_step").fetchall()
    assert others == []
    assert {*steps} == {(1000.0,), (2000.0,), (3000.0,)}
    report_page = inputs.store.report_page
    assert study_key(inputs.store) in additions_on_page(report_page).split()
    assert main(["status", "--config", str(finished)]) == 0
    assert "| original | strait_mt | chrf |  | leaked - clean |" in page
    assert "- strait_mt: `bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in page
    assert not [one for one in verify_store(inputs.store) if one]

    path = finished.parent / "study/swapped.csv"
    path.write_text(path.read_text() + "swapped,3000,harbor_mc,nowhere,1,,\n")
    assert not is_current(inputs)
    assert main(command) == 1
    assert "no item with this text" in capsys.readouterr().err
    assert is_current(inputs)
    assert study_key(inputs.store) not in additions_on_page(report_page).split()
    said = " ".join(section_of(study_folder(inputs.store) / DATABASE).words)
    assert "could not be read or matched to an item: 1 problem, listed in study.md" in said
    capsys.readouterr()
    assert main(["status", "--config", str(finished)]) == 1
    assert "report_page: missing or outdated" in capsys.readouterr().out
    (study_folder(inputs.store) / EFFECTS_FILE).write_text("something else")
    assert [one.where for one in verify_store(inputs.store) if one] == [
        str(study_folder(inputs.store) / EFFECTS_FILE)
    ]


def test_a_blend_that_is_missing_or_of_other_settings_and_a_missing_report_are_named(
    tmp_path, capsys
):
    config = copy_finished_world(tmp_path)
    store = Store(config.parent / ".decon")
    command = ["study", "--config", str(config)]
    text = config.read_text()
    config.write_text(text.replace("seen = 0.5", "seen = 0.6"))
    assert main(command) == 2
    told = "study.training_run 'swapped': found the blend 'swapped', not built or built from other"
    assert told in capsys.readouterr().err
    config.write_text(text)
    shutil.rmtree(blend_folder(store, "swapped"))
    assert main(command) == 2
    assert "`decon-assets run` builds it" in capsys.readouterr().err
    store.report.unlink()
    assert main(command) == 0
    assert "no effects by exposure: there is no report yet" in capsys.readouterr().out


def test_items_on_two_scales_are_not_compared_together(tmp_path, capsys):
    # The average takes the metric `acc`, which is of 0 to 1; effects are of `f1` as well.
    config = copy_finished_world(tmp_path)
    for path in (config.parent / "study").glob("*.csv"):
        _, *rows = path.read_text().splitlines()
        lines = ["model,step,benchmark,id,metric,score"]
        for row in rows:
            *item, score = row.split(",")[:5]
            most = {"harbor_mc": 100, "almanac_rc": 1}.get(item[2])
            if most:
                lines += [",".join([*item, "acc", score]), ",".join([*item, "f1", f"{most}"])]
        path.write_text("\n".join(lines))
    text, translation = config.read_text(), "[study.translation]  # BLEU and chrF by sacrebleu\n"
    before, _, after = text.partition(translation)
    config.write_text(before + after.partition("\n\n")[2])
    command = ["study", "--config", str(config)]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "study, f1 by exposure: found a scale beyond 1 (f1 of harbor_mc, up to 100, in " in said
    assert "f1 of almanac_rc, up to 1, in " in said
    text = config.read_text()
    config.write_text(
        text.replace('baseline = "clean"\n', 'baseline = "clean"\nmetrics = ["acc"]\n')
    )
    assert main(command) == 0


def test_a_configuration_without_a_study_and_wrong_ones_are_refused(world, capsys):
    world.write_config()
    config = world.config_path
    assert main(["study", "--config", str(config)]) == 2
    assert "no [study] table" in capsys.readouterr().err
    with config.open("a") as file:
        file.write(
            '[study]\nbaseline = "cleam"\n'
            '[[study.training_run]]\nname = "clean"\nresults = ["none"]\n'
            '[[study.training_run]]\nname = "clean"\nof = "decontaminate"\nresults = ["none"]\n'
        )
    assert main(["study", "--config", str(config)]) == 2
    said = capsys.readouterr().err
    assert "study.baseline: found 'cleam'; expected one of clean, clean. Did you mean" in said
    assert "study.training_run.name: found 'clean' 2 times" in said
    assert "study.training_run[1].of: found 'decontaminate'" in said
    with config.open("a") as file:
        file.write(
            '[study.translation]\nbenchmarks = []\nmetrics = ["blue"]\ntokenize = { "*" = "14a" }\n'
        )
    assert main(["study", "--config", str(config)]) == 2
    said = capsys.readouterr().err
    assert "study.translation.benchmarks" in said
    assert "study.translation" in said
    assert "study.translation.tokenize" in said


def test_known_effects_on_the_items_of_the_sample_world_are_in_95_of_100_intervals(
    finished, monkeypatch
):
    """As `data/make_study.py` draws scores, with other seeds; items and exposures are a run's."""
    monkeypatch.setattr(statistics, "N_DRAWS", 1_000)  # the suite is long enough
    config, store = load_config(finished), Store(finished.parent / ".decon")
    (blend,) = (one for one in declared_blends(config) if one.name == "swapped")
    rows = indexed_items(load_report_items(store.report))
    planted = planted_labels(blend, blend_manifest(store, "swapped").parent)
    leaked = leaked_labels([item for of in rows.values() for item in of.all])
    cases = {  # labels, effects by exposure, and the effect that the tables should find
        "original": (leaked, {"leaked": LEAKED}, {"leaked": LEAKED, "clean": 0.0}),
        "swapped": (planted, {"seen": SEEN, "held back": HELD_BACK},
                    {"seen": SEEN, "held back": HELD_BACK, "seen - held back": SEEN - HELD_BACK}),
    }  # fmt: skip
    cases["original"][2]["leaked - clean"] = LEAKED
    hits = Counter()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        for training_run, (labels, lifts, expected) in cases.items():
            chances = {item: 0.5 + lifts.get(label.exposure, 0.0) for item, label in labels.items()}
            own = {item: float(rng.random() < chance) for item, chance in chances.items()}
            base = {item: float(rng.random() < 0.5) for item in chances}
            whole = ALL if training_run == "original" else "almanac_rc"
            blank = Effect(training_run=f"{training_run} {seed}", metric="score", filter="")
            for one in effects(blank, own, base, labels):
                if one.benchmark == whole and not one.label.form and one.low is not None:
                    effect = expected[one.label.exposure]
                    hits[one.label.exposure] += one.low - 1e-9 <= effect <= one.high + 1e-9
    assert min(hits.values()) >= 88
    assert sum(hits.values()) / len(hits) >= 93
