"""Build the report from the current store; it is replaced as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.benchmarks.records import recorded_revision
from decon_core.config.load import Report
from decon_core.decisions.match_reader import require_scanned
from decon_core.errors import DeconError, MissingError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.local import LOCAL
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.card import digest_of_labels
from decon_core.report.database import schema_digest, write_database
from decon_core.report.gather import (
    common_in_report,
    mixture_tables,
    run_table,
    small_tables,
    verdict_table,
    write_matches,
)
from decon_core.report.matched_texts import gather_matched_texts, texts_in
from decon_core.report.open import opened, rows_of, state_of
from decon_core.report.publish.summary import read_headline
from decon_core.report.review.judged import judged_tables
from decon_core.report.tables import TABLES, ReportAddition, table_of
from decon_core.scan.coverage import Gap
from decon_core.storage.checksums import is_whole
from decon_core.storage.drafts import remove
from decon_core.storage.files import draft_folder

_SHOWING = Report()

_COUNTS = """
    SELECT (SELECT count(*) FROM items) AS items,
           coalesce(sum(n_leaked), 0)::BIGINT AS leaked_items,
           (SELECT count(*) FROM documents WHERE is_contaminated) AS contaminated_documents,
           coalesce(sum(n_no_answer), 0)::BIGINT AS no_answer_items,
           (SELECT count(*) FROM documents WHERE is_no_answer) AS no_answer_documents,
           coalesce(sum(n_review), 0)::BIGINT AS review_items,
           (SELECT count(*) FROM findings WHERE is_contaminated) AS leaks,
           (SELECT count(*) FROM unreadable) AS unreadable_rows
    FROM by_benchmark
"""

_MOST_REPORTS = 100  # reports whose rates are kept

# Reports made in the same second need a number. A report that is built again has the same state.
_EARLIER = """
    WITH earlier AS (
        FROM earlier_rates
        UNION ALL BY NAME
        SELECT 1 + coalesce((SELECT max(report) FROM earlier_rates), 0) AS report, *
        FROM rates_of_report WHERE (SELECT state FROM runs) <> $state
    )
    FROM earlier
    QUALIFY dense_rank() OVER (ORDER BY report DESC) <= $most
    ORDER BY report, benchmark
"""


@dataclass(frozen=True)
class BuiltReport:
    """The headline of a report."""

    counts: Mapping[str, int]  # by name, as in the metadata of the asset `report`
    gaps: Sequence[Gap]  # shards not scanned against every benchmark


def build_report(
    builder: Builder,
    showing: Report = _SHOWING,
    *,
    additions: Sequence[ReportAddition] = (),
    engine: Engine = LOCAL,
) -> BuiltReport:
    """Gather all tables into a new database and replace the previous report with it.

    Raise MissingError if no pack is registered or nothing was scanned.
    """
    store, packs, reader = builder.store, builder.packs, builder.reader
    if not packs:
        problem = Problem("corpus", "no registered pack", "at least one", "`decon-assets register`")
        raise MissingError(problem)
    gaps = builder.gaps
    n_shards = sum(len(pack.shards) for pack in packs)
    if n_shards and sum(not gap.is_read for gap in gaps) == n_shards:
        require_scanned(reader, packs, builder.versions)  # an empty report would look clean
    mixtures, n_without_mixture = mixture_tables(builder, showing)
    tables = {**small_tables(reader, packs, gaps, builder.not_read), **mixtures}
    report, drafts = store.report, store.drafts
    state = _state(builder, showing, gaps, additions)
    tables["runs"] = run_table(reader, showing, state, gaps)
    tables["not_covered"] = table_of("not_covered", [n._asdict() for n in builder.not_covered])
    tables["earlier_rates"], earlier_texts = read_earlier(report, state)
    for addition in additions:
        tables |= addition.tables()
    # Later runs remove the drafts of a killed process.
    with draft_folder(drafts, "matches") as folder:
        matches = write_matches(reader, packs, folder / "matches", gaps, engine=engine)
        tables["matched_texts"] = gather_matched_texts(
            reader, packs, matches, showing, earlier=earlier_texts, engine=engine
        )
        verdicts, evidence = builder.verdicts, builder.evidence
        tables["verdicts"] = verdict_table(verdicts, tables["matched_texts"])
        tables |= judged_tables(matches, verdicts, evidence, has_snippets=showing.has_snippets)
        # The page of the previous report may show texts that this report must not contain.
        for path in (*store.report_files, store.report_figures):
            remove(path)
        noted = write_database(
            report,
            tables,
            {"matches": matches},
            drafts=drafts,
            empty=store.empty_report(schema_digest()),
            note=lambda connection: {
                "state": state,
                "counts": rows_of(connection, _COUNTS)[0],
                "headline": read_headline(connection),
            },
        )
    return BuiltReport({**noted["counts"], "shards_without_mixture": n_without_mixture}, gaps)


def is_current(
    builder: Builder,
    showing: Report = _SHOWING,
    *,
    additions: Sequence[ReportAddition] = (),
) -> bool:
    """Return whether a report exists and was made from these packs, versions and settings."""
    store = builder.store
    if not store.report.is_file() or not store.current_snapshot.is_file():
        return False
    if not is_whole(store.report) or (state := state_of(store.report)) is None:
        return False
    return state == _state(builder, showing, builder.gaps, additions)


def _state(
    builder: Builder,
    showing: Report,
    gaps: Sequence[Gap],
    additions: Sequence[ReportAddition],
) -> str:
    """Return a digest of all inputs of a report and of the state of each product."""
    current = {mixture.name: builder.current_packs(mixture) for mixture in builder.mixtures}
    products = [
        f"{builder.fingerprint(mixture, pack)} {pack.name in current[mixture.name]}"
        for pack in builder.packs
        for mixture in builder.mixtures
    ]
    names = [version.benchmark for version in builder.versions]
    versions = [
        f"{name} {version.fingerprint} {recorded_revision(builder.store, name)}"
        for name, version in zip(names, builder.versions, strict=True)
    ]
    policy, common = builder.policy, common_in_report(builder.reader, builder.packs, gaps)
    of_common = [policy.common_share, policy.common_least_documents, policy.leave_out_common]
    decisions = json.dumps([policy.decision_settings(names), *of_common, common])
    shards = [f"{shard.fingerprint} {shard.name}" for _, shard in builder.shards]
    value = [
        schema_digest(),
        builder.reader.scan,
        builder.verdicts.digest,
        builder.evidence.digest,
        *(f"{nomination.key} {nomination.review_from}" for nomination in builder.nominations),
        decisions,
        repr(showing),
        repr(builder.unread),
        repr(builder.not_covered),
        repr(builder.skipped),
        *sorted(versions),
        *sorted(shards),
        *sorted(products),
        digest_of_labels(builder.labels),
        *(addition.key for addition in additions),
        *sorted(f"{gap.shard.fingerprint} {gap.lacking} {gap.reason}" for gap in gaps),
    ]
    return sha256(" ".join(value).encode()).hexdigest()[:16]


def read_earlier(report: Path, state: str) -> tuple[pa.Table, Mapping[str, dict[str, Any]]]:
    """Return what is kept of the report that one with this state replaces: rates and texts.

    The rates are also those of the reports before it. Of a report that is damaged, or was made by a
    version without these tables, nothing is kept.
    """
    values = {"state": state, "most": _MOST_REPORTS}
    with suppress(DeconError), opened(report) as connection:
        rates = connection.sql(_EARLIER, params=values).to_arrow_table()
        return rates, texts_in(connection)
    return TABLES["earlier_rates"].schema.empty_table(), {}
