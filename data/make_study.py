"""Makes study/*.csv: invented scores of models trained on variants of the sample world.

There are three fictional models: `clean` was trained on the mixture without leaks, `original` on
everything, and `swapped` on the blend of that name. The true effects are known: leaked items gain
LEAKED, planted items gain SEEN, and the other items of a planted benchmark gain HELD_BACK.
Translations are the reference with words left out: few words in correct ones, many in wrong ones.
Each model has three checkpoints. Ability grows from one to the next, and the effect of planted
items is largest at the second. Run it after `make demo`, which builds the blend. It always writes
the same bytes.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pyarrow.parquet as pq

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes

HERE = Path(__file__).parent
ABILITY = {"harbor_mc": 0.55, "ledger_math": 0.4, "almanac_rc": 0.45, "strait_mt": 0.5}
LEAKED, SEEN, HELD_BACK = 0.35, 0.45, 0.1
LAST = 3000
GROWTH = {1000: 0.6, 2000: 0.85}  # abilities at earlier steps, as shares of those at the last
EFFECT = {1000: 0.4, 2000: 1.4}  # effects likewise
KEPT = {1: 0.97, 0: 0.75}  # share of the words of right and of wrong translations
BLEND = "swapped"
TRANSLATION = "strait_mt"

Item = tuple[str, str, int]


def main() -> None:
    truth = map(json.loads, (HERE / "truth.jsonl").read_text(encoding="utf-8").splitlines())
    leaked = {_item(row) for row in truth if row["expected"]}
    listed = pq.read_table(HERE / f".decon/manifests/blends/{BLEND}/items.parquet").to_pylist()
    is_seen = {_item(row): row["is_seen"] for row in listed}
    lifts = {
        "clean": lambda _: 0.0,
        "original": lambda item: LEAKED if item in leaked else 0.0,
        "swapped": lambda item: (SEEN if is_seen[item] else HELD_BACK) if item in is_seen else 0.0,
    }
    (HERE / "study").mkdir(exist_ok=True)
    records = _records()
    for number, (training_run, lift) in enumerate(lifts.items()):
        rng = random.Random(1877 + number)
        with (HERE / f"study/{training_run}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(
                ["model", "step", "benchmark", "id", "score", "prediction", "reference"]
            )
            for step in (LAST, *GROWTH):
                growth, effect = GROWTH.get(step, 1.0), EFFECT.get(step, 1.0)
                name = training_run if step == LAST else f"{training_run} {step}"
                for item, record in records.items():
                    chance = growth * ABILITY[item[0]] + effect * lift(item)
                    is_right = int(rng.random() < chance)
                    is_translation = item[0] == TRANSLATION
                    texts = _texts(name, record, is_right) if is_translation else ("", "")
                    cells = item[0], record["fingerprint"], is_right, *texts
                    writer.writerow([training_run, step, *cells])


def _texts(training_run: str, record: dict[str, str], is_right: int) -> tuple[str, str]:
    """Return a translation and the reference."""
    rng = random.Random(f"{training_run} {record['fingerprint']}")
    words = record["answer"].split()
    return " ".join(word for word in words if rng.random() < KEPT[is_right]), record["answer"]


def _item(row: dict[str, object]) -> Item:
    return str(row["benchmark"]), str(row["split"]), int(str(row["instance_index"]))


def _records() -> dict[Item, dict[str, str]]:
    """Return a record of each test item."""
    found: dict[Item, dict[str, str]] = {}
    for name, recipe in load_recipes(HERE / "evals.yaml").items():
        for record in normalize(recipe, base=HERE).to_pylist():
            if record["split"] != "train":
                found.setdefault(_item({**record, "benchmark": name}), record)
    return found


if __name__ == "__main__":
    main()
