"""Table 9 of the Apertus study, as a scan finds it: one formula, instructions in two scripts.

The arithmetic alone is held to the same numbers in `tests/oracle/test_other_detectors.py`.
"""

import pytest

from decon_core.config.policy import Policy
from decon_core.decisions.decide import decide
from decon_core.scan.scanner import scan_packs

FORMULA = " 4 / (sqrt(108) + 2*sqrt(12) + 2*sqrt(27))."
ENGLISH = "Simplify the fraction by rationalizing the denominator:" + FORMULA
URDU = "مخرج کو ناطق بنا کر کسر کو آسان کریں:" + FORMULA


@pytest.mark.parametrize(
    ("tokenizer", "ratio", "is_leak"),
    [("llama3", 25 / 40, True), ("o200k", 25 / 38, True), ("cl100k", 25 / 54, False)],
)
def test_a_translated_instruction_is_found_by_its_formula(bench, tokenizer, ratio, is_leak):
    bench.policy = Policy(tokenizer_str=tokenizer, detectors=("decon", "ratcliff"))
    versions = bench.prepare({"math": [(URDU, None, None)]})
    pack = bench.pack({"a.jsonl": [ENGLISH, "Simplify your life by rationalizing the wardrobe."]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    shards = [pack.shards[0].fingerprint]
    matches = bench.results.matches(shards, versions[0].fingerprint)
    (entry,) = decide(matches, bench.policy).to_pylist()
    assert (entry["detector"], entry["row"], entry["score"]) == ("ratcliff", 0, ratio)
    assert entry["is_contaminated"] is is_leak
    found = ENGLISH[entry["question_char_start"] : entry["question_char_stop"]]
    assert found == ":" + FORMULA
