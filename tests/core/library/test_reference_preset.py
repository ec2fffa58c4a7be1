"""The preset `reference` finds in the sample world what was found before it was one.

The digests are of the rows of commit 0587602, the last one without `normalize_unicode`,
`strip_markup` and no answer, with the `searched_text` column of today, which `ratcliff` fills,
too. Its `ratcliff` and `longest_match` missed the first and the last token of a text in
mid-sentence with cl100k; with words, where that cannot be, they are held to the same rows.
"""

import json
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.library.scan import Request, scan_folder

DATA = Path(__file__).resolve().parents[3] / "data"
ALL = ["decon", "exact", "ngram_any", "ratcliff", "longest_match"]
# Fingerprints name the settings, too; no answer, candidates, judgements, and paths came later.
NEW = {
    *("detector_fingerprint", "shard", "needs_review", "is_no_answer", "slot_kind", "kind"),
    *("question_part", "answer_part", "passage_part", "is_judged_duplicate"),
}


@pytest.mark.parametrize(
    ("tokenizer", "detectors", "n_rows", "digest"),
    [
        ("words", ALL, 244, "569a3c0f0da98ded"),
        ("cl100k", ALL[:3], 137, "964fea1199335dee"),
    ],
)
def test_the_reference_preset_finds_what_was_found_before(
    tmp_path, tokenizer, detectors, n_rows, digest
):
    policy = Policy.from_mapping(
        {"preset": "reference", "tokenizer_str": tokenizer, "detectors": detectors}
    )
    rows = []
    for shards, fields in (
        ("shelf*", {"text": "text"}),
        ("parlor*", {"text": None, "messages": "messages"}),
    ):
        request = Request(
            evals=DATA / "evals.yaml",
            source=Source(name="corpus", path=str(DATA / "corpus" / shards), id="id", **fields),
            out=tmp_path / shards[:-1],
            policy=policy,
        )
        scan_folder(request)
        rows += pq.read_table(request.out / "matches.parquet").to_pylist()
    assert len(rows) == n_rows
    for row in rows:
        row["pair"] = row.pop("text_id")  # as the column was called then
    lines = sorted(
        json.dumps({name: row[name] for name in sorted(row.keys() - NEW)}, default=bytes.hex)
        for row in rows
    )
    assert sha256("\n".join(lines).encode()).hexdigest()[:16] == digest
