"""Makes scores.csv: invented scores of two fictional models on every item of the sample world.

`gull` was trained on the corpus and does better on items that leaked into it; `heron` was not. Run
it after `make_sample_world.py`. It always writes the same bytes.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes

HERE = Path(__file__).parent
ABILITY = {"harbor_mc": 0.55, "ledger_math": 0.4, "almanac_rc": 0.6, "strait_mt": 0.5}
LIFT = {"gull": 0.35, "heron": 0.0}


def main() -> None:
    truth = map(json.loads, (HERE / "truth.jsonl").read_text(encoding="utf-8").splitlines())
    leaked = {
        (row["benchmark"], row["split"], row["instance_index"]) for row in truth if row["expected"]
    }
    rng = random.Random(1870)
    with (HERE / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "benchmark", "id", "score"])
        for name, recipe in load_recipes(HERE / "evals.yaml").items():
            items = {}
            for record in normalize(recipe, base=HERE).to_pylist():
                item = name, record["split"], record["instance_index"]
                items.setdefault(item, record["fingerprint"])
            for model, lift in LIFT.items():
                for item, fingerprint in items.items():
                    ability = ABILITY[name] + (lift if item in leaked else 0)
                    writer.writerow([model, name, fingerprint, int(rng.random() < ability)])


if __name__ == "__main__":
    main()
