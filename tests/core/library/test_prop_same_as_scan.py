"""The library finds and decides what a scan finds and decides of the same texts."""

import json
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decon_core as dc
from decon_core.config.detector_registry import BUILT_IN
from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.decisions.calibration import NO_CALIBRATION
from decon_core.decisions.match_reader import MatchReader
from decon_core.library import index as library_index
from decon_core.library.findings import FINDINGS
from decon_core.library.results import MATCHES_FILE
from decon_core.library.scan import Request, pack_of, scan_folder
from decon_core.library.stored_index import open_folder
from decon_core.library.texts import blocks_of
from decon_core.mixtures.choice import counted_leaks
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.scanner import scan_packs
from tests.core.detectors.test_prop_other_detectors import document_of, world_of
from tests.core.library.samples import ITEMS, TEXTS, data_set
from tests.uncompiled import fewer

Row = dict[str, Any]
Texts = list[str | None]
FORMS = {
    "strings": iter,
    "string": lambda texts: pa.array(clean(texts), pa.string()),
    "chunked": lambda texts: pa.chunked_array([clean(texts[:2]), clean(texts[2:])], pa.string()),
    "dictionary": lambda texts: pa.array(clean(texts), pa.string()).dictionary_encode(),
    "polars": lambda texts: pl.Series(clean(texts), dtype=pl.String),
}


def clean(texts: Texts) -> Texts:
    """With U+FFFD for lone surrogates, which Arrow cannot hold."""
    return [
        text and text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for text in texts
    ]


def sample_of(seed: int) -> tuple[list[Row], Texts, Policy]:
    """Records of several benchmarks, texts with pieces of them, and settings for all detectors."""
    rng = random.Random(seed)
    world = world_of(seed, rng.choice(["words", "cl100k"]))
    rows = [
        {"benchmark": name, **row} for name, made in world.benchmarks.items() for row in made
    ] + [{"benchmark": "fixed", "split": "test", **item} for item in ITEMS]
    pieces = [text for row in rows for text in (row["question"], row.get("answer") or "") if text]
    texts: Texts = [*TEXTS, *(document_of(rng, pieces) for _ in range(6))]
    texts += rng.choices([None, "", "\ud800 before " + TEXTS[0], "\ud83d\ude00 " + TEXTS[2]], k=2)
    rng.shuffle(texts)
    floor = rng.choice([0.3571, 0.6173])
    return (
        rows,
        texts,
        replace(
            world.policy,
            detectors=BUILT_IN,
            shared_ngram_size=rng.choice(
                [5, 8]
            ),  # of fewer tokens some texts have none to screen by
            lowest_recorded_score=floor,
            contamination_score_threshold=rng.choice([floor, 0.8]),
            keep_no_answer=rng.random() < 0.7,
            sampling=rng.choice(["exhaustive", "reference"]),
            strip_markup=rng.random() < 0.5,
            normalize_unicode=rng.random() < 0.5,
            word_table_mb=1,
        ),
    )


def scanned(folder: Path, rows: list[Row], texts: Texts, policy: Policy) -> pa.Table:
    """The matches that a scan of one shard with these texts writes."""
    evals, corpus = folder / "evals.jsonl", folder / "corpus.jsonl"
    evals.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    corpus.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    out = folder / "out"
    source = Source(name="corpus", path=str(corpus), text="text", id="id")
    request = Request(evals=evals, source=source, out=out, policy=policy)
    outcome = scan_folder(request)
    assert outcome.n_unreadable == texts.count(None)
    return pq.read_table(out / MATCHES_FILE)


def built(rows: list[Row], policy: Policy) -> dc.Index:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some random items cannot be found
        return dc.build_index(rows, policy=policy)


@settings(max_examples=fewer(4))
@given(
    st.integers(0, 1 << 60),
    st.sampled_from([*FORMS]),
    st.sampled_from([1, 300, 1 << 20]),
    st.sampled_from([1, 3]),
)
def test_findings_and_decisions_are_those_of_a_scan(seed, form, block_bytes, threads):
    rows, texts, policy = sample_of(seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        expected = scanned(Path(folder), rows, texts, policy)
        index = built(rows, policy)
        small = partial(blocks_of, block_bytes=block_bytes)
        patch.setattr(library_index, "blocks_of", small)
        found = [*index.check_all(FORMS[form](texts), threads=threads)]
    assert [findings.row for findings in found] == [*range(len(texts))]
    table = pa.concat_tables(findings.to_arrow() for findings in found)
    assert table.to_pylist() == expected.select(FINDINGS.names).to_pylist()
    assert {*table["detector"].to_pylist()} == {*BUILT_IN}

    read = [one for one in found if not one.unreadable]
    assert len(found) - len(read) == texts.count(None)
    leaked = expected.filter(expected["is_contaminated"])["row"].to_pylist()
    assert [one.row for one in read if one.is_leaked] == sorted({*leaked})
    mixture = Mixture(name="clean")
    removed = {entry["row"] for entry in counted_leaks(expected, mixture, NO_CALIBRATION)}
    assert [one.row for one in read if not one.is_kept] == sorted(removed)

    assert Counter(one.row for one in found for _ in one) == Counter(expected["row"].to_pylist())
    for one in read:
        alone = index.check(texts[one.row])
        assert [*alone] == [*one]
        for finding in one:
            assert one.text == clean(texts)[one.row]
            record = index.record(finding)
            names = ("benchmark", "split", "instance_index")
            assert [record[name] for name in names] == [getattr(finding, name) for name in names]
            for span in (finding.question_span, finding.answer_span, finding.passage_span):
                assert span is None or 0 <= span[0] < span[1] <= len(one.text)


# Rows of several layouts with two texts in them.
LAYOUTS: list[Callable[[str, str], Row]] = [
    lambda a, b: {
        "messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]
    },
    lambda a, b: {
        "messages": [{"role": "assistant", "tool_calls": [{"arguments": json.dumps({"q": a})}]}],
        "reference_answer": b,
        "tools": json.dumps([{"description": b}]),
    },
    lambda a, b: {"prompt": a, "chosen": [{"content": a + b}], "rejected": [{"content": b}]},
    lambda a, b: {"text": a, "metadata": {"title": b, "license": "CC0"}},
    lambda a, b: {"id": "7", "zzz": [{"y": [a], "output": b}], "steps": [a, b, a]},
]
ROW_FORMS: dict[str, Callable[[list[Row]], Any]] = {
    "dictionaries": iter,
    "table": pa.Table.from_pylist,
    "structs": pa.array,
    "polars": lambda rows: pl.DataFrame(pa.Table.from_pylist(rows)),
    "dataset": data_set,
}


def scanned_rows(folder: Path, rows: list[Row], index: dc.Index, column: str | None) -> pa.Table:
    """The decided matches of a scan of one shard with these rows."""
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines)
    source = Source(name="rows", path=str(folder / "rows.jsonl"), text=column)
    opened = open_folder(index.folder)
    pack, _ = pack_of(source, out=folder / "out", known={})
    scan_packs(opened.store, [pack], opened.versions, opened.policy)
    reader = MatchReader(opened.store, opened.versions, opened.policy, opened.scan)
    (shard,) = pack.shards
    kept_scanners.cache_clear()
    return reader.entries(shard, opened.versions, source="rows")


@settings(max_examples=fewer(2))
@given(
    st.integers(0, 1 << 60),
    st.sampled_from([*ROW_FORMS]),
    st.sampled_from([1, 900, 1 << 20]),
    st.booleans(),
)
def test_rows_are_read_as_a_scan_reads_them(seed, form, block_bytes, has_column):
    evals, texts, policy = sample_of(seed)
    rng = random.Random(seed)
    pairs = [rng.choices([text or "" for text in clean(texts)], k=2) for _ in range(8)]
    column = None
    if form == "dictionaries":
        rows = [rng.choice(LAYOUTS)(*pair) for pair in pairs]
    else:
        layout = rng.choice(LAYOUTS)
        rows = [layout(*pair) for pair in pairs]
        column = [*rows[0]][-1] if has_column else None
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        index = built(evals, policy)
        expected = scanned_rows(Path(folder), rows, index, column)
        patch.setattr(library_index, "blocks_of", partial(blocks_of, block_bytes=block_bytes))
        found = [*index.check_all(ROW_FORMS[form](rows), column=column, ignore="*")]
    assert len(found) == len(rows)
    table = pa.concat_tables(findings.to_arrow() for findings in found)
    assert table.to_pylist() == expected.select(FINDINGS.names).to_pylist()
    for findings in found:
        for finding in findings:
            for part in ("question", "answer", "passage"):
                span = getattr(finding, f"{part}_span")
                path = getattr(finding, f"{part}_part")
                assert (span is None) == (path is None)
                # A span may begin at the blank line before a string.
                slots = [] if span is None else findings.slots((span[0] - 2, span[1]))
                assert path in {None, *(slot for slot, _ in slots)}
