"""Rates, simulated: what they say of all items, and of items like those that can be found."""

from random import Random

import duckdb
import pytest

from tests.core.report.reports import write_report

N_SEEDS, N_ITEMS, LEAK_RATE, CHECKABLE = 300, 500, 0.06, 0.6


def simulated(path, leak_rate_of):
    """A benchmark for each seed, 40 % of whose items cannot be found; and its true leak rates.

    A leak of an item that can be found is found, as it is verbatim.
    """
    tables = {"benchmarks": [], "items": [], "matches": []}
    truth = {}
    for seed in range(N_SEEDS):
        random, name = Random(f"rates {seed}"), f"seed-{seed}"
        checkable = [random.random() < CHECKABLE for _ in range(N_ITEMS)]
        leaked = [random.random() < leak_rate_of(one) for one in checkable]
        truth[name] = (sum(leaked) / N_ITEMS, sum(checkable))
        place = {"benchmark": name, "split": "test"}
        tables["benchmarks"].append({"benchmark": name, "n_items": N_ITEMS})
        for number, is_checkable in enumerate(checkable):
            item = {**place, "instance_index": number}
            tables["items"].append({**item, "is_indexed": is_checkable})
            if leaked[number] and is_checkable:
                match = {"source": "web", "shard_name": "a", "row": number, "detector": "decon"}
                tables["matches"].append({**item, **match, "score": 1.0, "is_contaminated": True})
    write_report(path, **tables)
    with duckdb.connect(str(path), read_only=True) as connection:
        rates = connection.execute(
            "SELECT benchmark, at_least, at_most, low, high FROM by_benchmark"
        ).fetchall()
    assert len(rates) == N_SEEDS
    return rates, truth


def n_covered(rates):
    return sum(low <= LEAK_RATE <= high for *_, low, high in rates)


@pytest.mark.parametrize("of_blind", [LEAK_RATE, 0.0, 0.3, 1.0])
def test_the_bounds_hold_the_truth_whatever_leaked_of_what_cannot_be_found(tmp_path, of_blind):
    rates, truth = simulated(tmp_path / "r.duckdb", lambda seen: LEAK_RATE if seen else of_blind)
    for name, at_least, at_most, *_ in rates:
        leaked, n_checkable = truth[name]
        assert at_least <= leaked <= at_most
        assert at_most - at_least == pytest.approx((N_ITEMS - n_checkable) / N_ITEMS)


def test_the_interval_covers_the_rate_of_all_items_if_leaking_does_not_depend_on_being_checkable(
    tmp_path,
):
    rates, _ = simulated(tmp_path / "r.duckdb", lambda _: LEAK_RATE)
    assert n_covered(rates) >= 0.93 * N_SEEDS


def test_the_interval_says_nothing_of_other_items_if_it_does(tmp_path):
    """Short items, which cannot be found, may leak more often: 3 % and 10.5 % are 6 % of all."""
    rates, _ = simulated(tmp_path / "r.duckdb", lambda seen: 0.03 if seen else 0.105)
    assert n_covered(rates) < 0.5 * N_SEEDS
