"""Explain why a document is in a mixture or not: its matches, the detectors and the settings.

Everything is read from ledgers, scan results, and the lists of mixtures; no report is needed.
`made` is the path of a file: the command line finds the Dagster run that wrote it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl
import pyarrow.compute as pc

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.load import Report
from decon_core.config.mixtures import Mixture
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import read_shard
from decon_core.corpus.sketch.shard_sketch import has_blocks, open_blocks
from decon_core.corpus.string_kinds import kind_at
from decon_core.decisions.annotations import labels_of
from decon_core.decisions.calibration import LEAST_JUDGED, planted_step
from decon_core.decisions.judging import missing
from decon_core.errors import CorpusError, InputError, Problem, sentence
from decon_core.feature import all_features
from decon_core.index.term_weights import current_snapshot_fingerprint
from decon_core.mixtures.builder import Builder
from decon_core.report.excerpts import PARTS, agree_of, make_excerpt, spans_of
from decon_core.scan.coverage import gaps_of
from decon_core.schemas import REMOVED
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet
from decon_core.wording import render

SCHEMA = "decon-assets/why/1"

_STATUS = "`decon-assets status` counts shards; `decon-assets register` adds new ones"

# Limits of the text of an account; its JSON has all.
_MOST_MATCHES = 5
_MOST_DOCUMENTS = 100  # documents of a matched text
_MOST_TEXT = 400  # characters of each text
_NO_WORD = re.compile(r"[\W_]+")
_ENTRY_COLUMNS = (
    "kind", "searched_text", "slot_kind",
    "is_contaminated", "is_no_answer", "needs_review", "is_by_score", "detector",
    "benchmark", "config",
    "split", "instance_index", "record", "score", "base_score",
    "question_overlap", "answer_overlap", "passage_overlap", "text_id", "verdict",
    "is_judged_duplicate",
)  # fmt: skip

Json = dict[str, Any]


class Place(NamedTuple):
    """The position of a document in the corpus."""

    pack: Pack
    shard: Shard
    row: int


def places_of(
    builder: Builder,
    document: str,
    *,
    shard: str | None = None,
    is_everywhere: bool = False,
    on_unread: Callable[[Problem], None] = lambda _: None,
) -> list[Place]:
    """Return the documents with an id, or the one named as `shard:row`.

    Scan results and the lists of removed documents contain ids. If none has this one, or with
    `is_everywhere`, every row is read. `on_unread` is called for each shard that cannot be read to
    its end, which may contain the id further on; the other shards are still searched.

    Raise InputError if no registered shard has the name `shard`.
    """
    shards = [
        (pack, member)
        for pack, member in builder.shards
        if shard in (None, member.name, member.path)
    ]
    if not shards:
        if not any(pack.shards for pack in builder.packs):
            problem = Problem("corpus", "no registered shard", "at least one", "`decon-assets run`")
            raise InputError(problem)
        raise InputError(Problem("shard", repr(shard), "the name of a registered shard", _STATUS))
    name, _, row = document.rpartition(":")
    if row.isdecimal():
        named = [
            Place(pack, member, int(row))
            for pack, member in shards
            if name in (member.name, member.path)
        ]
        if named:
            return named
    known = [] if is_everywhere else [*_by_known_id(builder, shards, document)]
    return known or [*_by_reading(shards, document, on_unread)]


def _by_known_id(
    builder: Builder, shards: Sequence[tuple[Pack, Shard]], document: str
) -> Iterator[Place]:
    """Yield the documents of this id that have matches or are in a mixture's list."""
    has_id = pl.col("doc_id") == document
    matched = {*_rows_where(builder, shards, has_id, ["shard", "row"])}
    listed: dict[tuple[str, str], set[int]] = {}  # rows by pack and shard
    for pack_name in dict.fromkeys(pack.name for pack, _ in shards):
        for path in builder.store.removed_from(pack_name):
            table = read_parquet(path, schema=REMOVED, columns=["shard", "row", "doc_id"])
            for row in table.filter(pc.field("doc_id") == document).to_pylist():
                listed.setdefault((pack_name, row["shard"]), set()).add(row["row"])
    for pack, shard in shards:
        rows = {row for fingerprint, row in matched if fingerprint == shard.fingerprint}
        rows |= listed.get((pack.name, shard.name), set())
        yield from (Place(pack, shard, row) for row in sorted(rows))


def _rows_where(
    builder: Builder,
    shards: Iterable[tuple[Pack, Shard]],
    condition: pl.Expr,
    columns: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    """Yield distinct values of columns for the matches of these shards that meet a condition."""
    results = builder.reader.scan_results
    fingerprints = [*dict.fromkeys(shard.fingerprint for _, shard in shards)]
    for version in builder.versions:
        scanned = [shard for shard in fingerprints if results.has(shard, version.fingerprint)]
        found = pl.DataFrame(builder.reader.matches(scanned, version)).filter(condition)
        yield from found.select(columns).unique().iter_rows()


def _by_reading(
    shards: Sequence[tuple[Pack, Shard]], document: str, on_unread: Callable[[Problem], None]
) -> Iterator[Place]:
    for pack, shard in shards:
        if pack.source.id is None:
            continue
        try:
            for row in read_shard(shard, pack.source):
                if isinstance(row, Document) and row.id == document:
                    yield Place(pack, shard, row.row)
        except CorpusError as error:
            for problem in error.problems:
                on_unread(problem)


def _row_at(place: Place) -> Document | str | None:
    """Return the row, or why it cannot be read; None if the shard has no such row."""
    try:
        rows = read_shard(place.shard, place.pack.source)
        row = next((row for row in rows if row.row == place.row), None)
    except CorpusError as error:
        return str(error)
    return f"{row.reason} ({row.detail})" if isinstance(row, Unreadable) else row


def account(
    builder: Builder,
    place: Place,
    *,
    mixtures: Sequence[Mixture],
    of_features: Mapping[str, Sequence[Json]] = MappingProxyType({}),
    showing: Report,
) -> Json:
    """Return everything the store knows about a document, as a JSON object.

    `of_features`: what features add, by key.
    """
    row, policy = _row_at(place), builder.policy
    results, name = builder.reader.scan_results, place.shard.fingerprint
    is_scanned = results.is_read(name)
    scanned = [
        version
        for version in builder.versions
        if is_scanned and results.has(name, version.fingerprint)
    ]
    document = row if isinstance(row, Document) else None
    versions = {version.benchmark: version for version in scanned}
    found = [
        _entry(builder, place, match, versions[match["benchmark"]], document, showing)
        for match in _matches(builder, place, scanned)
    ]
    documents = documents_of(builder, [entry["text_id"] for entry in found])
    of_shard = replace(place.pack, shards=(place.shard,))
    gaps = gaps_of(results, [of_shard], builder.versions)
    why = (gaps[0].reason, sentence(gaps[0].cause.remedy)) if gaps else ()
    return {
        "schema": SCHEMA,
        "document": _document(builder, place, row),
        "scanned_against": [version.benchmark for version in scanned],
        "not_scanned_against": [
            version.benchmark for version in builder.versions if version not in scanned
        ],
        "answered_from_sketch": _answers(builder, place, scanned),
        "why_not_scanned": ". ".join(filter(None, why)) if why else None,
        "found": [{**entry, "documents": documents[entry["text_id"]]} for entry in found],
        "mixtures": [_in_mixture(builder, place, mixture) for mixture in mixtures],
        **of_features,
        "settings": {
            "scan": builder.reader.scan,
            "term_weights": current_snapshot_fingerprint(builder.store),
            "thresholds": policy.thresholds,
            "thresholds_by_benchmark": policy.benchmark,
            "lowest_recorded_score": policy.lowest_recorded_score,
            "policy": asdict(policy),
        },
    }


def _document(builder: Builder, place: Place, row: Document | str | None) -> Json:
    unread = row.unread if isinstance(row, Document) else {}
    n_tokens = None
    if builder.reader.scan_results.is_read(place.shard.fingerprint):
        documents = builder.reader.documents(place.shard)
        of_row = documents.filter(pc.field("row") == place.row)["n_tokens"].to_pylist()
        n_tokens = of_row[0] if of_row else None
    return {
        "id": row.id if isinstance(row, Document) else None,
        "source": place.pack.source.name,
        "pack": place.pack.name,
        "shard": place.shard.name,
        "path": place.shard.path,
        "shard_fingerprint": place.shard.fingerprint,
        "row": place.row,
        "n_tokens": n_tokens,
        "is_there": row is not None,
        "why_unreadable": row if isinstance(row, str) else None,
        "unread": {  # bytes by path
            path: n_bytes
            for path, (n, n_bytes) in unread.items()
            if not builder.unread.is_ignored(place.pack.source.name, path)
            and (kind_at(path).is_blocking or not n)
        },
    }


def _answers(builder: Builder, place: Place, scanned: Sequence[Version]) -> list[Json]:
    """Return the benchmarks that were answered from the sketch, and what of the shard was read."""
    store, shard = builder.store, place.shard.fingerprint
    answers = []
    for version in scanned:
        record = builder.reader.scan_results.answer(shard, version.fingerprint)
        if not record:
            continue
        answer = {"benchmark": version.benchmark, "n_blocks": record["n_blocks"]}
        answer |= {"n_blocks_read": len(record["blocks_read"]), "block": None, "is_excluded": None}
        if has_blocks(store, record["sketch"], shard):
            block = open_blocks(store, record["sketch"], shard).block_of(place.row)
            answer |= {"block": block, "is_excluded": block not in record["blocks_read"]}
        answers.append(answer)
    return answers


def _matches(builder: Builder, place: Place, scanned: Sequence[Version]) -> list[Json]:
    """Return the matches: leaks first, then those without the answer, then the rest by score."""
    entries = builder.reader.entries(place.shard, scanned, source=place.pack.source.name)

    def order(match: Json) -> tuple[object, ...]:
        classes = "is_contaminated", "is_no_answer", "needs_review"
        return *(not match[name] for name in classes), -match["score"], match["benchmark"]

    return sorted(entries.filter(pc.field("row") == place.row).to_pylist(), key=order)


def _entry(
    builder: Builder,
    place: Place,
    entry: Json,
    version: Version,
    document: Document | None,
    showing: Report,
) -> Json:
    """Describe a match; without a document there is no excerpt."""
    spans = spans_of(entry)
    results = builder.reader.scan_results
    scan_result_folder = results.folder(place.shard.fingerprint, version.fingerprint)
    verdict = builder.verdicts.by_text.get(entry["text_id"])
    judged = labels_of({}, builder.evidence.annotations).get(entry["text_id"])
    # If there are more judgements, the probability is that of the report, which has all texts.
    labels = labels_of(builder.verdicts.labels, builder.evidence.annotations).values()
    has_curve = sum(label.is_sd is not None for label in labels) >= LEAST_JUDGED
    step = planted_step(entry["detector"], entry["kind"], entry["score"])
    records = load_records(builder.store, version, columns=[*PARTS])
    (record,) = records.slice(entry["record"], 1).to_pylist()
    policy = builder.policy.for_benchmark(version.benchmark)
    texts = None
    if document and showing.has_snippets:
        form, agree = policy.form, agree_of(entry["detector"])
        excerpt = make_excerpt(
            document.text, spans, record, context=showing.context, form=form, agree=agree
        )
        texts = {"document": excerpt.text, "from_character": excerpt.start, "item": record}
        if excerpt.agreement:
            texts["agreement"] = excerpt.agreement
    return {
        **{name: entry[name] for name in _ENTRY_COLUMNS},
        "missing": [*missing(entry, policy, record)],
        "has_answer": bool(record["answer"]),
        "threshold": policy.thresholds.get(entry["detector"]),
        "characters": {part: [*span] for part, span in spans.items()},
        "slots": {  # the string of the row in which each part begins, and its place in it
            part: {"path": slot.path, "start": start - slot.start, "stop": stop - slot.start}
            for part, (start, stop) in spans.items()
            if document and (slot := document.part_at(start))
        },
        "said": asdict(verdict) if verdict else None,
        "judged": asdict(judged) if judged else None,  # whether or not it decides
        "planted": None if has_curve else step,
        "benchmark_version": version.fingerprint,
        "texts": texts,
        "made": str(scan_result_folder.scan_result(version.fingerprint)),
    }


def documents_of(builder: Builder, text_ids: Sequence[str]) -> dict[str, list[Json]]:
    """Return the documents that contain each matched text, by source, shard and row."""
    documents: dict[str, list[Json]] = {text_id: [] for text_id in text_ids}
    if not text_ids:
        return documents
    columns = ["row", "doc_id", "text_id", "shard"]
    rows = {*_rows_where(builder, builder.shards, pl.col("text_id").is_in([*documents]), columns)}
    in_order = sorted(rows, key=itemgetter(3, 0, 2))
    by_shard = {name: [*of_shard] for name, of_shard in groupby(in_order, itemgetter(3))}
    places = sorted(builder.shards, key=lambda place: (place[0].source.name, place[1].name))
    for pack, shard in places:  # two shards may have the same fingerprint
        for row, doc_id, text_id, _ in by_shard.get(shard.fingerprint, ()):
            place = {"source": pack.source.name, "shard": shard.name, "row": row, "id": doc_id}
            documents[text_id].append(place)
    return documents


def _in_mixture(builder: Builder, place: Place, mixture: Mixture) -> Json:
    """Return whether the mixture keeps, cuts, masks or removes the document, and the reasons."""
    folder = builder.store.mixture(mixture.name, place.pack.name)
    state: Json = {"mixture": mixture.name, "state": "kept", "reasons": [], "folder": str(folder)}
    is_taken = builder.effective(mixture).has_source(place.pack.source.name)
    path = builder.store.mixture_manifest(mixture.name, place.pack.name)
    if not is_taken or not path.is_file():
        why_not = "not built" if is_taken else "does not include this source"
        return {**state, "state": why_not, "is_todays": None, "made": None}
    manifest = read_json(path)
    removed = builder.store.removed(mixture.name, place.pack.name)
    if removed.is_file():
        is_here = rows_of_place("shard", "row", place)
        rows = read_parquet(removed, schema=REMOVED, filters=is_here)
        state["reasons"] = [
            {name: value for name, value in row.items() if value is not None}
            for row in rows.drop_columns(["shard", "row", "doc_id"]).to_pylist()
        ]
    if place.shard.name not in {shard["shard"] for shard in manifest["shards"]}:
        state["state"] = "the shard was not there when it was built"
    elif state["reasons"]:
        is_removed = any(reason["what"] == "document" for reason in state["reasons"])
        changed = "masked" if manifest["declared"]["write"] == "mask" else "cut"
        state["state"] = "removed" if is_removed else changed
    inputs = ("fingerprint", "scan", "term_weights", "benchmarks")
    return {
        **state,
        "is_todays": builder.is_current(mixture, place.pack),
        **{name: manifest[name] for name in inputs},
        "made": str(path),
    }


def rows_of_place(shard: str, row: str, place: Place) -> Any:
    """Return the condition on two columns, shard and row, that selects the rows of a place."""
    return (pc.field(shard) == place.shard.name) & (pc.field(row) == place.row)


def as_text(account: Json, *, width: int = 100, has_runs: bool = True) -> str:
    """Render an account, to which the runs that made its files were added (`run`).

    `has_runs`: with the runs, versions and settings.
    """
    templates = [f"features/{feature.name}/why.txt.j2" for feature in all_features() if feature.why]
    return render(
        "report/why.txt.j2",
        **account,
        of_features=[render(template, **account) for template in templates],
        most_matches=_MOST_MATCHES,
        most_documents=_MOST_DOCUMENTS,
        short=_short,
        both=partial(_both, width=width),
        text_of=_text_of,
        has_runs=has_runs,
    ).removesuffix("\n")


def _short(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= _MOST_TEXT:
        return text
    start = text[:_MOST_TEXT]
    return f"{start.rpartition(' ')[0] or start} …"


def _text_of(entry: Json) -> str:
    """Return the parts of an item that were found, in the order in which the document has them."""
    places, texts = entry["characters"], entry["texts"]["item"]
    return " ".join(texts[part] for part in sorted(places, key=places.get) if texts[part])


def _both(document: str, item: str, *, width: int) -> str:
    """Return two texts below each other, wrapped at words; words that differ are in brackets."""
    texts = [_short(text).split() for text in (document, item)]
    plain = [[_NO_WORD.sub("", word).casefold() for word in words] for words in texts]
    blocks = SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_matching_blocks()[:-1]
    for side, words in enumerate(texts):
        spans = [(block[side], block[side] + block.size) for block in blocks]
        # What is before the first equal word and after the last one is no part of the item.
        for (_, start), (stop, _) in pairwise(spans):
            words[start:stop] = [f"[{word}]" for word in words[start:stop]]
    named = zip(("document: ", "item:     "), texts, strict=True)
    return "\n".join(wrapped(f"    {name}{' '.join(words)}", width, 14) for name, words in named)


def wrapped(line: str, width: int, indent: int) -> str:
    """Wrap a line at spaces; the lines after the first are indented."""
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
