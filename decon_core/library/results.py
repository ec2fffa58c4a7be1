"""What a scan of a folder writes: matches, ledger, counts and summary.

<out>/matches.parquet   every match down to the lowest recorded score, with score and classification
<out>/ledger.jsonl      per shard: counts of rows and matches, unreadable rows
<out>/not_read.jsonl    the account of all that was not read (`decisions/not_read.py`)
<out>/skipped.jsonl     files, folders and links that were not read, and why
<out>/visibility.parquet   which items each detector can find, and why not the others
<out>/common.parquet    n-grams of the benchmarks that are in many documents
<out>/summary.json      the counts; written last, when everything else is complete
<out>/sample.csv        estimates for the whole corpus, if only a sample was scanned; the page of
                        such a scan comes with figures, sample.svg and sample_items.svg
<out>/compat/           leaks as reports of the reference implementation (optional)
<out>/clean/            the benchmarks without leaked items (optional)
<out>/.store/           records, index and scan results, reused by the next scan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.named import named_rows, rows_of_benchmarks
from decon_core.benchmarks.records import NotCovered
from decon_core.config.sources import ONLY_SOURCE, Source
from decon_core.corpus.formats import format_of
from decon_core.corpus.formats.lines import LineFormat
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sample import Sample, ShardSample
from decon_core.corpus.shard_head import no_row_read
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.not_read import (
    Account,
    UnreadRule,
    account_of,
    has_no_row,
    with_file,
)
from decon_core.errors import Problem
from decon_core.library.benchmark_counts import BenchmarkCount, count_matches
from decon_core.library.estimates import Rate, Stratum, source_of
from decon_core.scan.coverage import gaps_of
from decon_core.scan.scan_results import with_text
from decon_core.schemas import ENTRIES
from decon_core.storage.files import atomic_path
from decon_core.storage.listing import Skipped
from decon_core.storage.paths import parse_path

if TYPE_CHECKING:
    from decon_core.mixtures.clean_evals import LeakedItems

MATCHES_FILE = "matches.parquet"
LEDGER_FILE = "ledger.jsonl"
NOT_READ_FILE = "not_read.jsonl"
SKIPPED_FILE = "skipped.jsonl"
SUMMARY_FILE = "summary.json"
COMMON_FILE = "common.parquet"
VISIBILITY_FILE = "visibility.parquet"
COMPAT_FOLDER = "compat"
CLEAN_FOLDER = "clean"
STORE_FOLDER = ".store"

_FILE = pa.field("file", pa.string(), nullable=False, metadata={"description": "name of the shard"})
MATCHES_SCHEMA = pa.schema([_FILE, *ENTRIES])


@dataclass
class Outcome:
    """The results of a scan of a folder."""

    benchmarks: list[BenchmarkCount] = field(default_factory=list)
    n_shards: int = 0
    n_shards_read: int = 0  # shards read in this scan; the scan results of the others exist already
    n_rows: int = 0
    n_documents: int = 0
    n_characters: int = 0
    n_bytes: int = 0  # bytes of text
    n_too_short: int = 0
    n_without_text: int = 0
    n_unreadable: int = 0
    n_invalid_utf8: int = 0  # documents with bytes that are not UTF-8
    n_matches: int = 0
    n_leaks: int = 0
    n_contaminated_documents: int = 0
    n_no_answer: int = 0  # findings: an item and a document without a leak of it
    n_no_answer_documents: int = 0  # without a leak, but with a question without its answer
    n_review: int = 0  # findings that are neither
    n_review_documents: int = 0  # documents that are neither, but need review
    n_common: int = 0  # n-grams that are in many documents
    # Items that a detector cannot find, by detector.
    n_unseen: dict[str, int] = field(default_factory=dict)
    # Items that no chosen detector can find, by benchmark and by another detector that could.
    checkable_by_others: dict[str, dict[str, int]] = field(default_factory=dict)
    # Benchmarks in a script that the tokenizer splits into letters.
    split_scripts: list[Problem] = field(default_factory=list)
    failed: list[Problem] = field(default_factory=list)  # why shards could not be read
    not_read: Account = field(default_factory=Account)
    skipped: list[Skipped] = field(default_factory=list)  # what is no shard
    not_covered: list[NotCovered] = field(default_factory=list)  # benchmarks not searched for
    revisions: dict[str, str] = field(default_factory=dict)  # revision of each downloaded benchmark
    origins: list[dict[str, Any]] = field(default_factory=list)  # rows that name a benchmark
    sample: Sample | ShardSample | None = None  # None: all documents were scanned
    n_not_sampled: int = 0  # documents of shards that were read
    not_drawn: list[Skipped] = field(default_factory=list)  # shards that are not in the sample
    n_documents_of_shards: dict[str, int] = field(default_factory=dict)  # if a row was readable
    strata: dict[str, Stratum] = field(default_factory=dict)  # strata of the sample, by source
    rates: list[Rate] = field(default_factory=list)  # estimated from the sample

    @property
    def unavailable(self) -> list[NotCovered]:
        """Benchmarks that could not be downloaded, without those that are not available at all."""
        return [entry for entry in self.not_covered if not entry.is_refused]

    @property
    def finds_nothing(self) -> bool:
        """Whether no item can be found, or was: nothing is known of any benchmark."""
        return not any(count.n_known_items for count in self.benchmarks)


@dataclass(frozen=True)
class ScannedPack:
    """The scanned shards, and the reader of their scan results."""

    reader: MatchReader
    pack: Pack
    unread: set[str]  # names of shards without scan results

    @property
    def shards(self) -> list[Shard]:
        """All shards, sorted by path."""
        return sorted(self.pack.shards, key=lambda shard: Path(shard.path))

    def entries(self, shard: Shard) -> pa.Table:
        return self.reader.entries(shard, self.reader.versions, source=self.pack.source.name)


def write_matches(
    out: Path, scanned: ScannedPack, outcome: Outcome, leaked: LeakedItems | None
) -> None:
    """Write matches and ledger, and add what they count to the outcome and to the leaked items."""
    source, reader = scanned.pack.source, scanned.reader
    by_name: dict[str, Mapping[str, Any]] = {}
    with (
        atomic_path(out / MATCHES_FILE) as matches,
        atomic_path(out / LEDGER_FILE) as ledger_file,
        pq.ParquetWriter(matches, MATCHES_SCHEMA, compression="zstd") as writer,
        ledger_file.open("wb") as lines,
    ):
        for shard in scanned.shards:
            if shard.name in scanned.unread:
                line = _line_of_unread(shard, outcome.failed)
            else:
                entries, ledger = scanned.entries(shard), reader.ledger(shard)
                names = pa.repeat(pa.scalar(shard.name), entries.num_rows)
                writer.write_table(entries.add_column(0, _FILE, names).cast(MATCHES_SCHEMA))
                line = _line_of(shard, ledger, entries)
                if leaked:
                    leaked.add(shard.name, entries)
                _add_up(outcome, line, shard, source, is_read=not has_no_row(ledger))
                by_name[shard.name] = with_file(ledger, shard)
                if shard.sample:
                    stratum = outcome.strata.setdefault(source_of(shard.name), Stratum())
                    n = with_text(ledger)
                    stratum.n_documents += n["n_documents"] + n["n_left_out"]
                    stratum.n_sampled += n["n_documents"]
                    stratum.n_draws += shard.sample.n_draws(ledger["n_rows_with_blank"])
            lines.write(orjson.dumps(line) + b"\n")
        for not_drawn in outcome.not_drawn:
            line = {"file": not_drawn.path, "is_read": False, "is_drawn": False}
            lines.write(orjson.dumps({**line, "file_bytes": not_drawn.n_bytes}) + b"\n")
    files = out / MATCHES_FILE, out / VISIBILITY_FILE
    outcome.benchmarks = count_matches(*files, reader.versions, reader.policy)
    ledgers = [(source.name, ledger) for ledger in by_name.values()]
    gaps = gaps_of(reader.scan_results, [scanned.pack], reader.versions)
    rule = UnreadRule(((source.name, source.ignore),))
    outcome.not_read = account_of(ledgers, rule, outcome.skipped, gaps)
    with atomic_path(out / NOT_READ_FILE) as path:
        rows = (orjson.dumps(row._asdict()) + b"\n" for row in outcome.not_read.rows)
        path.write_bytes(b"".join(rows))
    searched = [version.benchmark for version in reader.versions]
    outcome.origins = rows_of_benchmarks(
        (shard, named_rows(ledger, searched)) for shard, ledger in by_name.items()
    )


# Counts of the ledger that the outcome sums up under the same names.
COUNTS_READ = ("n_rows", "n_documents", "n_characters", "n_bytes", "n_too_short", "n_without_text")
_COUNTS_FOUND = (
    "n_matches",
    "n_leaks",
    "n_contaminated_documents",
    "n_no_answer",
    "n_no_answer_documents",
    "n_review",
    "n_review_documents",
)
_NOT_SAMPLED = "n_documents_not_sampled"  # key in the ledger of a sample


def _line_of_unread(shard: Shard, failed: Sequence[Problem]) -> dict[str, Any]:
    problems = [
        str(problem)
        for problem in failed
        if problem.where == shard.path or problem.where.startswith(f"{shard.path}:")
    ]
    return {"file": shard.name, "is_read": False, "problems": problems}


def _line_of(shard: Shard, ledger: Mapping[str, Any], entries: pa.Table) -> dict[str, Any]:
    leaks = _findings(entries, "is_contaminated")
    questions = _findings(entries, "is_no_answer") - leaks
    to_review = _findings(entries, "needs_review") - leaks - questions
    rows_of_leaks, rows_of_questions, rows_to_review = (
        {row for row, *_ in findings} for findings in (leaks, questions, to_review)
    )
    rows_of_questions -= rows_of_leaks
    rows_to_review -= rows_of_leaks | rows_of_questions
    has_lines = isinstance(format_of(Path(shard.path)), LineFormat)
    of_text = with_text(ledger)
    n_left_out = of_text.pop("n_left_out")
    return {
        "file": shard.name,
        "is_read": True,
        **{name: ledger[name] for name in COUNTS_READ},
        **of_text,
        **({_NOT_SAMPLED: n_left_out} if shard.sample else {}),
        "n_matches": entries.num_rows,
        "n_leaks": len(leaks),
        "n_contaminated_documents": len(rows_of_leaks),
        "n_no_answer": len(questions),
        "n_no_answer_documents": len(rows_of_questions),
        "n_review": len(to_review),
        "n_review_documents": len(rows_to_review),
        **{
            name: [{"line": row["row"] + 1, **row} if has_lines else row for row in ledger[name]]
            for name in ("unreadable", "invalid_utf8")
        },
        "unread": ledger["unread"],
        "origins": ledger["origins"],
    }


def _findings(entries: pa.Table, what: str) -> set[tuple[object, ...]]:
    """Return the documents and items of the matches for which a flag is set.

    Several matches of an item in a document are one finding, as in `benchmark_counts`.
    """
    columns = ("row", "benchmark", "split", "instance_index")
    matches = entries.filter(entries[what]).select(columns)
    return {*zip(*(matches[name].to_pylist() for name in columns), strict=True)}


def _add_up(
    outcome: Outcome, line: Mapping[str, Any], shard: Shard, source: Source, *, is_read: bool
) -> None:
    outcome.n_not_sampled += line.get(_NOT_SAMPLED, 0)
    if not is_read:
        first = line["unreadable"][0]
        why = f"the first: {first['reason']} ({first['detail']})"
        outcome.failed.append(no_row_read(parse_path(shard.path), source, line["n_rows"], why))
    else:
        outcome.n_documents_of_shards[shard.name] = line["n_documents"]
    for name in (*COUNTS_READ, *_COUNTS_FOUND):
        setattr(outcome, name, getattr(outcome, name) + line[name])
    outcome.n_unreadable += len(line["unreadable"])
    outcome.n_invalid_utf8 += len(line["invalid_utf8"])


_IN_SUMMARY = (
    *COUNTS_READ,
    *_COUNTS_FOUND,
    "n_shards",
    "n_unreadable",
    "n_invalid_utf8",
)


def summary_of(outcome: Outcome) -> dict[str, Any]:
    """Return the counts in summary.json, without times: the same scan gives the same file."""
    account = outcome.not_read
    files, shards = account.open("file"), account.open("shard")
    without_rows, unread = [shard for shard in shards if shard.n], account.sizes(ONLY_SOURCE)
    benchmarks = [asdict(count) for count in outcome.benchmarks]
    summary = {
        **{name: getattr(outcome, name) for name in _IN_SUMMARY},
        "n_common_ngrams": outcome.n_common,
        "n_items_not_visible": outcome.n_unseen,
        "n_items_checkable_by_others": outcome.checkable_by_others,
        "n_shards_unread": len(shards) - len(without_rows),
        "not_looked_at": [file.place for file in files],
        "unread": [{"path": path, "n_bytes": n} for path, n in unread.items()],
        "without_text": [*dict.fromkeys(row.place for row in account.open("no text"))],
        "origins": outcome.origins,
        "n_shards_without_a_readable_row": len(without_rows),
        "n_bytes_not_looked_at": sum(row.n_bytes for row in (*files, *shards)),
        "set_aside": [skipped.path for skipped in outcome.skipped if skipped.is_on_purpose],
        "benchmarks": {count.pop("benchmark"): count for count in benchmarks},
        "not_covered": [entry._asdict() for entry in outcome.not_covered],
        "revisions": outcome.revisions,
    }
    if sample := outcome.sample:
        n_drawn = outcome.n_shards - len(outcome.not_drawn)
        summary["sample"] = {
            "about": sample.words,
            "share": sample.share if isinstance(sample, Sample) else n_drawn / outcome.n_shards,
            "seed": sample.seed,
            "n_documents_not_sampled": None if outcome.not_drawn else outcome.n_not_sampled,
            "n_shards_not_sampled": len(outcome.not_drawn),
            "n_bytes_not_sampled": sum(shard.n_bytes for shard in outcome.not_drawn),
            "estimates": [asdict(rate) for rate in outcome.rates],
        }
    return summary
