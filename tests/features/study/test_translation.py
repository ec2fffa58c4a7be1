"""BLEU and chrF of translations: as sacrebleu computes them, from every form of results."""

import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from decon_core.config import seeding
from decon_core.errors import InputError
from decon_core.features.results.find import find_results
from decon_core.features.results.per_item import Texts
from decon_core.features.study import translation
from decon_core.features.study.differences import AVERAGE, compare_training_runs
from decon_core.features.study.exposure import HELD_BACK, SEEN, Effect, Label, corpus_effects
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun, Translation
from decon_core.features.study.translation import (
    Bleu,
    Chrf,
    check,
    corpus_metric,
    paired_draws,
    score_of,
    summarize,
)

WORDS = ["the", "sea", "gull", ",harbour.", "don't", "12,5", "Öl", "海", "鸥", "(pier)"]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
test_sets = st.integers(1, 3).flatmap(
    lambda n: st.lists(
        st.tuples(texts, st.lists(texts, min_size=n, max_size=n)), min_size=1, max_size=6
    )
)


def counts_of(metric, segments):
    return np.array([metric.count(*one) for one in segments], np.float64)


# As sacrebleu -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["13a", "zh", "char", "none", "chrf"])
@settings(max_examples=60)
@given(segments=test_sets)
def test_prop_sums_of_counts_give_the_score_of_sacrebleu(name, segments):
    ours, theirs = (
        (Chrf(), CHRF()) if name == "chrf" else (corpus_metric("bleu", name), BLEU(tokenize=name))
    )
    predictions, references = zip(*segments, strict=True)
    expected = theirs.corpus_score(list(predictions), [list(one) for one in zip(*references)])  # noqa: B905
    found = score_of(ours, counts_of(ours, segments))
    assert found == pytest.approx(expected.score, abs=1e-9)


def counts_of_texts(metric, predictions, references):
    segments = zip(predictions, references, strict=True)
    return counts_of(metric, [(one, [reference]) for one, reference in segments])


def sentences(n, *, share, seed):
    """References, and translations that keep this share of their words."""
    rng = np.random.default_rng(seed)
    references = [" ".join(rng.choice(WORDS, 15)) for _ in range(n)]
    kept = [" ".join(word for word in one.split() if rng.random() < share) for one in references]
    return references, kept


@pytest.mark.parametrize("metric", [Bleu("13a"), Chrf()])
def test_draws_are_scores_of_the_drawn_test_sets(monkeypatch, metric):
    monkeypatch.setattr(translation, "N_DRAWS", 9)
    monkeypatch.setattr(translation, "_MOST_AT_ONCE", 100)  # several times
    references, own = sentences(30, share=0.9, seed=1)
    _, other = sentences(30, share=0.7, seed=1)
    sides = [counts_of_texts(metric, one, references) for one in (own, other)]
    found = paired_draws(*sides, metric, "a name")
    drawn = (seeding.fractions("a name", 9 * 30) * 30).astype(int).reshape(9, 30)
    whole = BLEU() if isinstance(metric, Bleu) else CHRF()
    for at, rows in enumerate(drawn):
        expected = [
            whole.corpus_score([side[n] for n in rows], [[references[n] for n in rows]]).score
            for side in (own, other)
        ]
        assert found[at] == pytest.approx(expected[0] - expected[1], abs=1e-9)


orders = st.tuples(st.integers(0, 9_000), st.integers(0, 9_000)).map(sorted)  # matches, total
sums_of_bleu = st.tuples(st.integers(0, 9_000), st.lists(orders, min_size=4, max_size=4))


@given(st.lists(sums_of_bleu, min_size=1, max_size=20))
def test_bleu_of_sums_is_that_of_sacrebleu_to_the_last_bit(rows):
    sums = [
        (by_order[0][1], length, *(matches for matches, _ in by_order), *(n for _, n in by_order))
        for length, by_order in rows
    ]
    expected = [
        BLEU.compute_bleu([*counts[:4]], [*counts[4:]], *lengths, smooth_method="exp").score
        for *lengths, a, b, c, d, e, f, g, h in sums
        for counts in [(a, b, c, d, e, f, g, h)]
    ]
    assert Bleu("13a").scores(np.array(sums, np.float64)).tolist() == expected


@pytest.mark.parametrize("share", [0.75, 0.85])
def test_scores_and_p_value_are_near_those_of_sacrebleu(share):
    references, other = sentences(60, share=0.78, seed=2)
    rng = np.random.default_rng(3)
    own = [" ".join(word for word in one.split() if rng.random() < share) for one in references]
    named = [("base", other), ("own", own)]
    _, results = PairedTest(named, {"BLEU": BLEU()}, [references], "bs", n_samples=1000)()
    theirs = results["BLEU"][1]
    metric = Bleu("13a")
    sides = [counts_of_texts(metric, side, references) for side in (own, other)]
    difference = score_of(metric, sides[0]) - score_of(metric, sides[1])
    assert score_of(metric, sides[0]) == pytest.approx(theirs.score)
    draws = paired_draws(*sides, metric, "x")
    found = summarize(draws, difference)
    assert found["low"] < difference < found["high"]
    # The draws are alike; of them sacrebleu takes absolute values before it centres them.
    far = np.abs(draws) - np.abs(draws).mean() > abs(difference)
    assert (far.sum() + 1) / 1001 == pytest.approx(theirs.p_value, abs=0.05)
    assert found["p"] >= theirs.p_value - 0.05


def test_equal_translations_differ_by_nothing():
    metric = Bleu("13a")
    references, own = sentences(40, share=0.8, seed=4)
    counts = counts_of_texts(metric, own, references)
    draws = paired_draws(counts, counts, metric, "x")
    assert not draws.any()
    assert summarize(draws, 0.0) == {"low": 0, "high": 0, "p": 1}


def test_without_an_effect_the_interval_holds_0_in_95_of_100_studies(monkeypatch):
    monkeypatch.setattr(translation, "N_DRAWS", 300)  # the suite is long enough
    metric, n_hits, n_low_p, n_studies = Bleu("13a"), 0, 0, 150
    references, one = sentences(600, share=0.8, seed=5)
    rng = np.random.default_rng(6)
    another = [" ".join(w for w in text.split() if rng.random() < 0.8) for text in references]
    sides = [counts_of_texts(metric, side, references) for side in (one, another)]
    for seed in range(n_studies):
        rows = rng.integers(0, 600, 80)
        is_other = (rng.random(80) < 0.5)[
            :, None
        ]  # which of both is the training run's is a coin toss
        own = np.where(is_other, sides[0][rows], sides[1][rows])
        base = np.where(is_other, sides[1][rows], sides[0][rows])
        difference = score_of(metric, own) - score_of(metric, base)
        drawn = summarize(paired_draws(own, base, metric, str(seed)), difference)
        n_hits += drawn["low"] <= 0 <= drawn["high"]
        n_low_p += drawn["p"] < 0.05
    assert n_hits >= 0.9 * n_studies
    assert n_low_p <= 0.1 * n_studies


def test_what_does_not_work_here_is_named_at_once(monkeypatch):
    corpus_metric.cache_clear()
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(
        InputError, match=r"(?s)bleu: the package 'sacrebleu' is not.*chrf: the package"
    ):
        check(Translation(benchmarks=("mt",)))
    monkeypatch.undo()
    check(Translation(benchmarks=("mt",), tokenize={"*_zh": "zh"}))


# Reading ------------------------------------------------------------------------------------------

EXPECTED = [Texts("Der Möwe", ("Die Möwe",)), Texts("", ("Das Meer",))]


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def harness_files(folder):
    """BLEU of the harness is one of whole test sets: rows have the reference and the output."""
    rows = [
        {
            "doc_id": n,
            "doc": {"en": f"text {n}"},
            "target": text.references[0],
            "resps": [[f" {text.prediction}\n"]],
            "filtered_resps": [text.prediction],
            "bleu": [text.references[0], text.prediction],
            "metrics": ["bleu"],
        }
        for n, text in enumerate(EXPECTED)
    ]
    write_lines(folder / "samples_mt_2025-03-01T10-00-00.5.jsonl", rows)


def olmes_files(folder):
    rows = [
        {
            "doc_id": n,
            "native_id": n,
            "metrics": {},
            "model_output": [{"continuation": text.prediction}],
            "label": text.references[0],
        }
        for n, text in enumerate(EXPECTED)
    ]
    write_lines(folder / "task-000-mt-predictions.jsonl", rows)


def lighteval_files(folder):
    rows = [
        {
            "doc": {
                "query": f"text {n}",
                "id": str(n),
                "choices": ["other", *text.references],
                "gold_index": [1],
            },
            "metric": {"bleu": None},
            "model_response": {"text": [text.prediction]},
        }
        for n, text in enumerate(EXPECTED)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "details_mt.parquet")


def earlier_lighteval_files(folder):
    rows = [
        {
            "example": f"text {n}",
            "metrics": {"bleu": None},
            "predictions": str([text.prediction]),
            "gold": list(text.references),
        }
        for n, text in enumerate(EXPECTED)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "details_mt.parquet")


def csv_files(folder):
    with (folder / "mt.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "index", "prediction", "references"])
        for n, (prediction, references) in enumerate(EXPECTED):
            writer.writerow(["mt", n, prediction, json.dumps(references)])


def json_lines_files(folder):
    rows = [
        {"task": "mt", "index": n, "prediction": one.prediction, "reference": one.references[0]}
        for n, one in enumerate(EXPECTED)
    ]
    write_lines(folder / "mt.jsonl", rows)


@pytest.mark.parametrize(
    "write",
    [
        harness_files,
        olmes_files,
        lighteval_files,
        earlier_lighteval_files,
        csv_files,
        json_lines_files,
    ],
)
def test_every_form_of_results_has_texts_and_needs_no_score(tmp_path, write):
    write(tmp_path)
    found = find_results([tmp_path], is_wanted=lambda task: task == "mt")
    (results,) = found.results
    assert [sample.texts for sample in results.samples] == EXPECTED
    assert not [*found.problems, *results.problems]
    # Where only scores count, rows without one are problems.
    (results,) = find_results([tmp_path]).results
    assert not results.samples
    assert sum(problem.found == "no score" for problem in results.problems) == 2


# Training runs and exposure -----------------------------------------------------------------------


def write_training_run(folder, name, translations, references, **more):
    rows = [
        {"benchmark": task, "index": n, "prediction": text, "reference": references[n], **more}
        for task in ("en_de", "en_ru")
        for n, text in enumerate(translations)
    ]
    write_lines(folder / f"{name}.jsonl", rows)
    return TrainingRun(name=name, results=(f"{name}.jsonl",))


def studied(folder, *training_runs):
    translation = Translation(benchmarks=("en_*",), tokenize={"*_ru": "char"})
    study = Study(
        baseline=training_runs[0].name, training_run=training_runs, translation=translation
    )
    read = read_training_runs(study, folder)
    found = compare_training_runs(read, study)
    every = (*found.benchmarks, *found.averages)
    return read, {(one.training_run, one.benchmark, one.metric): one for one in every}


def test_training_runs_are_compared_by_the_scores_of_whole_test_sets(tmp_path):
    references, base = sentences(40, share=0.7, seed=7)
    _, own = sentences(40, share=0.9, seed=7)
    training_runs = [
        write_training_run(tmp_path, "base", base, references),
        write_training_run(tmp_path, "own", own, references),
    ]
    read, found = studied(tmp_path, *training_runs)
    assert not any(training_run.problems for training_run in read)
    for task, metric, theirs in (
        ("en_de", "bleu", BLEU()),
        ("en_ru", "bleu", BLEU(tokenize="char")),
        ("en_de", "chrf", CHRF()),
    ):
        one = found["own", task, metric]
        assert one.score == pytest.approx(theirs.corpus_score(own, [references]).score, abs=1e-9)
        assert one.baseline == pytest.approx(
            theirs.corpus_score(base, [references]).score, abs=1e-9
        )
        assert one.low < one.difference < one.high
        assert (one.n, one.basis) == (40, "same items")
    average = found["own", AVERAGE, "bleu"]
    parts = [found["own", task, "bleu"] for task in ("en_de", "en_ru")]
    assert average.difference == pytest.approx(sum(one.difference for one in parts) / 2)
    assert average.low < average.difference < average.high
    assert ("own", AVERAGE, "") not in found  # no other scores
    # The order of rows is no part of the results.
    path = tmp_path / "own.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert studied(tmp_path, *training_runs)[1] == found


def test_segments_that_only_one_training_run_has_and_other_references_are_told(tmp_path):
    references, base = sentences(40, share=0.7, seed=8)
    training_runs = [
        write_training_run(tmp_path, "base", base, references),
        write_training_run(tmp_path, "own", base[:20], ["another one", *references[1:]]),
    ]
    read, found = studied(tmp_path, *training_runs)
    one = found["own", "en_de", "chrf"]
    assert (one.n, one.remark) == (20, "based only on the 20 items that both training runs have")
    said = "\n".join(map(str, read[1].problems))
    assert "different references in 1 segment of en_de (bleu)" in said
    path = tmp_path / "own.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    write_lines(path, [row | {"prediction": None, "score": 1} for row in rows])
    read, found = studied(tmp_path, *training_runs)
    assert ("own", "en_de", "chrf") not in found
    assert found["own", "en_de", "score"].score == 1
    assert "no output or no reference in 20 of 20 rows" in "\n".join(map(str, read[1].problems))


def test_effects_are_of_the_test_sets_of_each_exposure():
    metric = Bleu("13a")
    references, base = sentences(80, share=0.7, seed=9)
    better = [*references[:40], *base[40:]]  # the seen half is known by heart
    labels = {("mt", "test", n): Label(SEEN) if n < 40 else Label(HELD_BACK) for n in range(80)}
    own, other = (
        {("mt", "test", n): metric.count(one, [references[n]]) for n, one in enumerate(side)}
        for side in (better, base)
    )
    blank = Effect(training_run="own", metric="bleu", filter="")
    found = {one.label.exposure: one for one in corpus_effects(blank, metric, own, other, labels)}
    assert set(found) == {SEEN, HELD_BACK, "seen - held back"}
    expected = BLEU().corpus_score(base[:40], [references[:40]]).score
    assert found[SEEN].score == pytest.approx(100)
    assert found[SEEN].baseline == pytest.approx(expected, abs=1e-9)
    assert found[HELD_BACK].difference == 0
    contrast = found["seen - held back"]
    assert contrast.difference == pytest.approx(100 - expected)
    assert contrast.n == 80
    assert 0 < contrast.low < contrast.difference < contrast.high
    assert contrast.p == pytest.approx(1 / 1001)
    few = {item: label for item, label in labels.items() if item[2] > 34}
    found = [*corpus_effects(blank, metric, own, other, few)]
    assert {one.remark for one in found} == {"too few items: 5", ""}
