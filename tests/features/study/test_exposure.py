"""Effects on items that were planted and on those held back: printed tables, and known effects."""

import numpy as np
import pytest

from decon_core.decisions import statistics
from decon_core.features.study.exposure import HELD_BACK, NOT_PLANTED, SEEN, Effect, Label, effects

# Soft contamination, table 11: accuracy on the 125 seen and the 125 unseen items of MuSR, of the
# model before training, trained on clean data, and on data with duplicates of the seen items.
TABLE_11 = {
    "Olmo3": {"baseline": (44.0, 41.6), "clean": (51.2, 48.8), "contaminated": (66.4, 54.4)},
    "Qwen3": {"baseline": (39.2, 41.6), "clean": (48.0, 59.2), "contaminated": (65.6, 52.0)},
}
N = 125
SEEN_LEVEL_2 = Label(SEEN, "reworded", "4 copies", "uniform")


def items_of(seen, unseen, seed):
    """Scores of items that give these percentages; which items are right is drawn."""
    rng = np.random.default_rng(seed)
    scores = {}
    for start, percentage in ((0, seen), (N, unseen)):
        n_right = round(percentage / 100 * N)
        assert n_right / N * 100 == pytest.approx(percentage)
        right = set(rng.permutation(N)[:n_right].tolist())
        scores |= {("musr", "test", start + n): float(n in right) for n in range(N)}
    return scores


LABELS = {("musr", "test", n): SEEN_LEVEL_2 if n < N else Label(HELD_BACK) for n in range(2 * N)}


def blank(training_run):
    return Effect(training_run=training_run, metric="score", filter="")


def found_of(model, training_run, baseline):
    table = TABLE_11[model]
    scores = items_of(*table[training_run], seed=1) | {
        ("other", "test", n): n % 2 for n in range(40)
    }
    others = items_of(*table[baseline], seed=2) | {("other", "test", n): n % 2 for n in range(40)}
    return {
        (one.benchmark, one.label.exposure): one
        for one in effects(blank(training_run), scores, others, LABELS)
    }


def test_the_table_of_seen_and_unseen_items():
    found = found_of("Olmo3", "contaminated", "clean")
    seen, unseen = found["musr", SEEN], found["musr", HELD_BACK]
    assert (seen.score, seen.baseline) == pytest.approx((0.664, 0.512))
    assert (unseen.score, unseen.baseline) == pytest.approx((0.544, 0.488))
    # "5.6 % higher" on the unseen items is the difference on the same items, as here; "12 % higher"
    # on the seen ones is 66.4 - 54.4, the seen against the unseen items. On the same items: 15.2.
    assert unseen.difference == pytest.approx(0.056)
    assert seen.difference == pytest.approx(0.152)
    assert seen.score - unseen.score == pytest.approx(0.12)
    assert seen.low > 0
    assert unseen.low < 0 < unseen.high
    contrast = found["musr", "seen - held back"]
    assert contrast.difference == pytest.approx(0.096)
    assert contrast.low < 0 < contrast.high  # 125 items on a side do not tell 9.6 points from 0
    assert contrast.n == 2 * N
    other = found["other", NOT_PLANTED]
    assert (other.n, other.difference, other.p) == (40, 0.0, 1.0)


def test_the_other_model_of_that_table():
    found = found_of("Qwen3", "contaminated", "baseline")
    seen, unseen = found["musr", SEEN], found["musr", HELD_BACK]
    # As the text says: seen items 13.6 above unseen ones.
    assert seen.score - unseen.score == pytest.approx(0.136)
    assert seen.label == SEEN_LEVEL_2
    clean = found_of("Qwen3", "clean", "baseline")
    assert clean["musr", HELD_BACK].difference == pytest.approx(0.176)


def test_a_known_effect_is_in_its_interval_in_95_of_100_studies(monkeypatch):
    """Training on an item raises its score by 0.2, on others of the benchmark by 0.05."""
    monkeypatch.setattr(statistics, "N_DRAWS", 1_000)  # the suite is long enough
    n, hits = 300, np.zeros(3)
    labels = {("quiz", "test", i): Label(SEEN) if i < n else Label(HELD_BACK) for i in range(2 * n)}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        difficulty = rng.beta(2, 2, 2 * n) * 0.75
        lift = np.where(np.arange(2 * n) < n, 0.2, 0.05)
        drawn = [rng.random(2 * n) < chance for chance in (difficulty, difficulty + lift)]
        base, training_run = (
            {("quiz", "test", i): float(right) for i, right in enumerate(one)} for one in drawn
        )
        found = {
            one.label.exposure: one
            for one in effects(blank(f"training run {seed}"), training_run, base, labels)
        }
        for number, (name, effect) in enumerate(
            ((SEEN, 0.2), (HELD_BACK, 0.05), ("seen - held back", 0.15))
        ):
            hits[number] += found[name].low <= effect <= found[name].high
    assert hits.min() >= 90
    assert hits.sum() >= 282


def test_items_that_only_one_training_run_has_are_left_out():
    labels = {("quiz", "test", n): Label(SEEN if n % 2 else HELD_BACK) for n in range(30)}
    training_run = {("quiz", "test", n): 1.0 for n in range(25)}
    base = {("quiz", "test", n): 0.0 for n in range(5, 30)}
    found = {
        one.label.exposure: one
        for one in effects(blank("training_run"), training_run, base, labels)
    }
    assert found[SEEN].n + found[HELD_BACK].n == 20
    assert found[SEEN].difference == 1.0
    base = {("quiz", "test", 7): 0}
    few = {
        one.label.exposure: one
        for one in effects(blank("training_run"), training_run, base, labels)
    }
    assert few[SEEN].remark == "too few items: 1"
