"""Build the `matched_texts` table: a record and the words of it that were found, with both texts.

Documents that contain the same words of a record have one matched text, so they are reviewed once.
What is shown is the first document, read from its shard or reused from the previous report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.records import load_records
from decon_core.config.load import Report
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import values_of
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import DeconError
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import run_jobs, useful_workers, wanted_workers
from decon_core.execution.local import LOCAL
from decon_core.report.excerpts import (
    MOST_OF_PART,
    PARTS,
    Excerpt,
    agree_of,
    make_excerpt,
    spans_of,
)
from decon_core.report.tables import TABLES, filled
from decon_core.text.characters import Form

if TYPE_CHECKING:
    import duckdb

# Incremented when the same match would give another text or other marks.
_VERSION = 1

_OFF = "snippets are off"
_NOT_FIRST = "the limit `report.most_texts` was reached"
# Hundreds of items that share a template are found at one place of a document.
_MOST_AT_A_PLACE = 8
_NOT_BEST = f"only the {_MOST_AT_A_PLACE} best items at a place are kept with their text"
_GONE = "the row is no longer in its shard"

_EDGES = [f"{part}_char_{edge}" for part in PARTS for edge in ("start", "stop")]

_CHOSEN = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
_EARLIER = """
    SELECT evidence, text, text_start, text_marks, question_marks, answer_marks, passage_marks,
           agreement
    FROM matched_texts WHERE text IS NOT NULL
"""

Row = dict[str, Any]


def gather_matched_texts(
    reader: MatchReader,
    packs: Sequence[Pack],
    matches: Sequence[Path],
    showing: Report,
    *,
    earlier: Mapping[str, Row],
    engine: Engine = LOCAL,
) -> pa.Table:
    """Return all matched texts of these matches, the first `showing.most_texts` of them with texts.

    Of the items of a benchmark that are found at the same place, only the best ones have texts.

    `earlier`: `texts_in` the previous report, reused where their inputs are unchanged.
    """
    import duckdb
    import pyarrow.compute as pc

    schema = TABLES["matched_texts"].schema
    if not any(pq.read_metadata(path).num_rows for path in matches):
        return schema.empty_table()
    with duckdb.connect() as connection:
        values = {"files": [*map(str, matches)], "most_at_a_place": _MOST_AT_A_PLACE}
        chosen: pa.Table = connection.sql(_CHOSEN, params=values).to_arrow_table()
    is_best = pc.less_equal(chosen["rank_at_place"], _MOST_AT_A_PLACE)
    best, others = chosen.filter(is_best), chosen.filter(pc.invert(is_best))
    is_first = pc.less_equal(best["priority"], showing.most_texts)
    rows = _with_records(reader, best.filter(is_first))
    _add_texts(reader, packs, rows, showing, earlier, engine)
    tables = [pa.Table.from_pylist(rows, schema=schema)]
    for rest, why in ((best.filter(pc.invert(is_first)), _NOT_FIRST), (others, _NOT_BEST)):
        reason = pa.repeat(pa.scalar(why), rest.num_rows)
        tables.append(filled("matched_texts", rest.append_column("why_no_text", reason)))
    return pa.concat_tables(tables)


def _with_records(reader: MatchReader, chosen: pa.Table) -> list[Row]:
    """Return the matched texts with those of their records."""
    rows: list[Row] = chosen.to_pylist()
    by_benchmark: dict[str, list[Row]] = {}
    for row in rows:
        by_benchmark.setdefault(row["benchmark"], []).append(row)
    for version in reader.versions:
        of_version = by_benchmark.get(version.benchmark, [])
        records = load_records(reader.store, version, columns=list(PARTS))
        numbers = pa.array([row["record"] for row in of_version], pa.int64())
        for row, text in zip(of_version, records.take(numbers).to_pylist(), strict=True):
            for part, whole in text.items():
                is_long = whole and len(whole) > MOST_OF_PART
                row[part] = f"{whole[:MOST_OF_PART]} […]" if is_long else whole
    return rows


@dataclass(frozen=True)
class _Job:
    """Matched texts whose text is read from one shard."""

    shard: Shard
    source: Source
    rows: tuple[Row, ...]
    context: int
    form: Form


def _add_texts(
    reader: MatchReader,
    packs: Sequence[Pack],
    rows: Sequence[Row],
    showing: Report,
    earlier: Mapping[str, Row],
    engine: Engine,
) -> None:
    if not showing.has_snippets:
        for row in rows:
            row["why_no_text"] = _OFF
        return
    nominated = _nominated_texts(reader, rows)
    by_text: dict[str, Row] = {}  # those without a text
    for row in rows:
        row["evidence"] = _evidence(row, showing, reader.policy.form)
        if row["evidence"] in earlier:
            row.update(earlier[row["evidence"]])
        elif (text := nominated.get(row["text_id"])) is not None:
            whole, form = {"question": (0, len(text))}, reader.policy.form
            excerpt = make_excerpt(text, whole, row, context=0, form=form)
            row.update(_columns_of(replace(excerpt, start=row["question_char_start"])))
        else:
            by_text[row["text_id"]] = row
    jobs = [*_jobs(packs, [*by_text.values()], showing, reader.policy.form)]
    sizes = [job.shard.n_bytes for job in jobs]
    workers = useful_workers(wanted_workers(), sizes, engine=engine)
    name_of = attrgetter("shard.path")
    for _, future in run_jobs(_read_texts, jobs, workers=workers, engine=engine, name_of=name_of):
        for text_id, texts in future.result().items():
            by_text[text_id] |= texts


def _nominated_texts(reader: MatchReader, rows: Sequence[Row]) -> dict[str, str]:
    """Return the texts that were found beside the scan: their shards are not read."""
    texts: dict[str, str] = {}
    for nomination in reader.nominations:
        text_ids = [row["text_id"] for row in rows if row["detectors"] == nomination.detector]
        for version in reader.versions if text_ids else ():
            texts |= nomination.texts(text_ids, version.fingerprint)
    return texts


def _evidence(row: Row, showing: Report, form: Form) -> str:
    """Return a digest of all that text and marks depend on: place, record and settings."""
    place = [row[name] for name in ("shard", "row", "fingerprint", *_EDGES)]
    order_free = [name for name in row["detectors"].split(", ") if agree_of(name)]
    value = repr([_VERSION, showing.context, form, place, *order_free])
    return sha256(value.encode()).hexdigest()[:16]


def texts_in(report: duckdb.DuckDBPyConnection) -> Mapping[str, Row]:
    """Return texts and marks of a report by `evidence`."""
    texts: pa.Table = report.sql(_EARLIER).to_arrow_table()
    return {row["evidence"]: row for row in texts.to_pylist()}


def _jobs(
    packs: Sequence[Pack], rows: Sequence[Row], showing: Report, form: Form
) -> Iterator[_Job]:
    shards = {
        (pack.source.name, shard.name): (shard, pack.source)
        for pack in packs
        for shard in pack.shards
    }
    in_order = sorted(rows, key=itemgetter("source", "shard_name", "row"))
    for place, group in groupby(in_order, itemgetter("source", "shard_name")):
        yield _Job(*shards[place], tuple(group), showing.context, form)


def _read_texts(job: _Job) -> dict[str, Row]:
    """Return texts and marks by matched text, or why there are none."""
    by_row = {number: [*rows] for number, rows in groupby(job.rows, itemgetter("row"))}
    texts: dict[str, Row] = {row["text_id"]: {"why_no_text": _GONE} for row in job.rows}
    try:
        for number, value in values_of(job.shard, job.source, by_row):
            document = document_of(value, number, job.source)
            texts |= {row["text_id"]: _texts(document, row, job) for row in by_row[number]}
    except (DeconError, OSError) as error:
        why = f"{job.shard.name} can no longer be read as it was scanned ({error})"
        return {row["text_id"]: {"why_no_text": why} for row in job.rows}
    return texts


def _texts(document: object, row: Row, job: _Job) -> Row:
    if not isinstance(document, Document):
        return {"why_no_text": "the row can no longer be read as it was scanned"}
    of_detectors = [agree_of(name) for name in row["detectors"].split(", ")]
    agree, spans = of_detectors[0] if all(of_detectors) else None, spans_of(row)
    return _columns_of(
        make_excerpt(document.text, spans, row, context=job.context, form=job.form, agree=agree)
    )


def _columns_of(excerpt: Excerpt) -> Row:
    marks = {"text": excerpt.text_marks, **{part: excerpt.record_marks[part] for part in PARTS}}
    return {
        "agreement": excerpt.agreement,
        "text": excerpt.text,
        "text_start": excerpt.start,
        **{f"{name}_marks": [mark._asdict() for mark in marks[name]] for name in marks},
        "why_no_text": None,
    }
