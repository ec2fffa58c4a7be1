"""Assets that people use: mixtures, clean benchmarks, the report, and its page with other files."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.check_results import inspect_mixtures, report_before_failure
from decon_assets.assets.inputs import corpus
from decon_assets.assets.metadata import (
    ITEM,
    Metadata,
    PartitionReporter,
    cost_metadata,
    pictures,
    preview,
    same,
)
from decon_assets.assets.report_server import link_to
from decon_assets.assets.scanning import common_ngrams, scan
from decon_assets.assets.stage import stage
from decon_assets.instance.cost import cost_of_scans
from decon_assets.partitions import (
    BENCHMARK,
    PACK,
    all_of,
    benchmarks,
    by_dimension,
    pack_and_other,
    share,
    shares,
    sorted_keys,
)
from decon_core.errors import DeconError, IncompleteError
from decon_core.feature import all_features, feature_objects
from decon_core.report.tables import TABLES
from decon_core.schemas import COLUMNS
from decon_core.wording import counted, part_of

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.config.mixtures import Mixture
    from decon_core.corpus.packs import Pack
    from decon_core.mixtures.manifest import Built
    from decon_core.storage.store import Store

GROUP = "products"

# A share depends on its pack's row of the scan, for all benchmarks.
_PACK_IN_GRID = dg.MultiPartitionMapping(
    {PACK: dg.DimensionPartitionMapping(PACK, dg.IdentityPartitionMapping())}
)

_MAX_BENCHMARKS_SHOWN = 100
_ABOUT_WIDTH = 200
_REASON_WIDTH = 400
_RATES = (
    "benchmark",
    "n_items",
    "n_leaked",
    "n_checkable",
    "n_leaked_checkable",
    "leak_rate",
    "low",
    "high",
    "at_least",
    "at_most",
    "n_no_answer",
    "n_review",
)
_REPORT_COLUMNS = [
    column._replace(name=f"{name}.{column.name}")
    for name, table in TABLES.items()
    for column in table.columns
]
_COLUMNS_OF = {
    "records": COLUMNS["RECORDS"],
    "scan": COLUMNS["MATCHES"],
    "common_ngrams": COLUMNS["COMMON"],
    "mixture": COLUMNS["REMOVED"],
    **feature_objects("columns"),
}
# Assets of features that find places beside the scan, of those with tables in the report, and of
# those with a section of its page.
_NOMINATING = [
    name for feature in all_features() if feature.nominations for name in feature.products
]
_ADDED = [name for feature in all_features() if feature.report for name in feature.products]
_ON_PAGE = [name for feature in all_features() if feature.page for name in feature.products]

_REPORT_ORIGINS = {
    f"{name}.{column}": (table.origin, column)
    for name, table in TABLES.items()
    for column in (column.name for column in table.columns)
    if table.origin and column in {other.name for other in _COLUMNS_OF[table.origin]}
} | {
    f"{name}.{column}": (asset, origin)
    for name, table in TABLES.items()
    for column, (asset, _, origin) in (
        (column, origin.partition(".")) for column, origin in table.origins.items()
    )
}
_MIXTURE_COLUMNS = (
    "mixture",
    "is_current",
    "n_documents_in",
    "n_documents_out",
    "n_cut",
    "n_tokens_out",
)


@stage(
    missing="decon_core.planner:missing_shares",
    deps=[
        dg.AssetDep(scan, partition_mapping=_PACK_IN_GRID),
        common_ngrams,
        by_dimension(corpus, PACK),
        *_NOMINATING,
    ],
    partitions_def=shares,
    group=GROUP,
    kind="file",
    code_version="2",
    schema=COLUMNS["REMOVED"],
    origins={**same("scan", "row", "doc_id", *ITEM, "detector"), "score": ("scan", "base_score")},
)
def mixture(context: dg.AssetExecutionContext, config: Config, store: Store) -> None:
    """Filtered variants of the corpus, as declared in decon.toml, with manifests of all rows.

    One partition is what one mixture takes from one pack. A partition is not built if a shard of
    the pack changed after it was registered, has not been scanned against every benchmark that the
    mixture needs, or has rows that could not be read (unless the policy drops such rows). For a
    control, all packs of a source must be scanned, because its documents are drawn from the whole
    source. The other partitions of the run are still built.
    """
    from decon_core.config.mixtures import mixture_named
    from decon_core.corpus.registration import packs_of
    from decon_core.execution.choice import open_engine
    from decon_core.execution.jobs import wanted_workers
    from decon_core.mixtures.build import build_shares
    from decon_core.mixtures.preconditions import require_unchanged
    from decon_core.planner import Plan

    plan = Plan(config, store)
    builder = plan.builder
    keys = [pack_and_other(shares, key) for key in sorted_keys(context)]
    packs = {pack.name: pack for pack in packs_of(store, sorted({name for name, _ in keys}))}
    wanted = [(mixture_named(config.mixtures, name), packs[pack]) for pack, name in keys]
    chosen: list[tuple[Mixture, Pack]] = []
    errors: list[DeconError] = []
    gone = {*plan.changes.gone}
    for declared, pack in wanted:
        try:
            require_unchanged(builder.effective(declared), pack, gone)
        except DeconError as error:
            errors.append(error)
        else:
            chosen.append((declared, pack))
    built: dict[str, Built] = {}
    reporter = PartitionReporter(context)
    made_from = {
        "policy": config.policy.thresholds,
        "scan": builder.reader.scan,
        "scan_results": dg.MetadataValue.path(store.scan_results(builder.reader.scan)),
    }
    engine = open_engine(config.tables, store)
    with closing(build_shares(builder, chosen, workers=wanted_workers(), engine=engine)) as done:
        for declared, pack, future in done:
            try:
                share_of_pack = future.result()
            except DeconError as error:
                errors.append(error)
                continue
            n = share_of_pack.counts
            n_kept = f"kept {n['n_documents_out']} of {n['n_documents_in']} documents"
            context.log.debug(f"{declared.name}, {pack.name}: {n_kept}, {n['n_cut']} of them cut")
            key = share(pack=pack.name, mixture=declared.name)
            removed = {
                "list_of_removed": dg.MetadataValue.path(store.removed(declared.name, pack.name))
            }
            reporter.report(key, {**_share_metadata(share_of_pack), **removed, **made_from})
            built[key] = share_of_pack
    n_packs, n_mixtures = (len({*names}) for names in zip(*keys, strict=True))
    of_mixtures = part_of(n_mixtures, len(builder.mixtures), "mixture")
    scope = f"{of_mixtures} from {part_of(n_packs, len(builder.packs), 'pack')}"
    if errors:
        scope = f"{scope}, {len(built)} of {counted(len(keys), 'partition')} built"
    total = sum((product.counts for product in built.values()), Counter[str]())
    n_kept = f"{total['n_documents_out']:,} of {counted(total['n_documents_in'], 'document')} kept"
    context.log.info(f"{scope}, {n_kept}, {total['n_cut']:,} of them cut")
    if errors:
        report_before_failure(context, built, mixture_adds_up=inspect_mixtures(plan))
    if len(errors) > 1:
        raise IncompleteError(
            dict.fromkeys(problem for error in errors for problem in error.problems)
        )
    if errors:
        raise errors[0]


def _share_metadata(built: Built) -> dict[str, object]:
    n = built.counts
    return {
        "dagster/row_count": n["n_documents_out"],
        "documents_in": n["n_documents_in"],
        "documents_removed": n["n_documents_in"] - n["n_documents_out"],
        "documents_cut": n["n_cut"],
        "tokens_in": n["n_tokens_in"],
        "tokens_out": n["n_tokens_out"],
        "unreadable_left_out": n["n_unreadable_left_out"],
        "was_there_already": built.was_there,
        "folder": dg.MetadataValue.path(built.folder),
    }


@stage(
    missing="decon_core.planner:missing_clean_benchmarks",
    deps=[by_dimension(scan, BENCHMARK), common_ngrams, *_NOMINATING],
    partitions_def=benchmarks,
    group=GROUP,
    kind="file",
    schema=COLUMNS["RECORDS"],
    origins=same("records", *(column.name for column in COLUMNS["RECORDS"])),
)
def clean_benchmark(context: dg.AssetExecutionContext, config: Config, store: Store) -> None:
    """A benchmark without its leaked items, and the evidence for each removed item.

    The asset fails if any shard has not been scanned against the benchmark, or has rows that could
    not be read.
    """
    from decon_core.benchmarks.records import current_version
    from decon_core.mixtures.clean_evals import build_clean_benchmarks
    from decon_core.planner import Plan

    builder = Plan(config, store).builder
    n_benchmarks = len(builder.versions)
    reporter = PartitionReporter(context)
    total, n_questions, n_review, names = Counter[str](), 0, 0, sorted_keys(context)
    versions = (current_version(builder.store, name) for name in names)
    for name, benchmark in zip(names, build_clean_benchmarks(builder, versions), strict=True):
        n = benchmark.counts
        context.log.debug(f"{name}: {n['n_items_left']} of {counted(n['n_items'], 'item')} left")
        total += n
        n_questions += len(benchmark.manifest["no_answer"])
        n_review += len(benchmark.manifest["review"])
        metadata = {
            "items": n["n_items"],
            "items_left": n["n_items_left"],
            "items_left_that_cannot_be_found": n["n_items_not_checkable"],
            "was_there_already": benchmark.was_there,
            "folder": dg.MetadataValue.path(benchmark.folder),
        }
        reporter.report(name, metadata)
    left = f"{total['n_items_left']:,} of {counted(total['n_items'], 'item')} left"
    others = (
        f"among these, {n_questions:,} found without the answer, {n_review:,} that need review, "
        f"{total['n_items_not_checkable']:,} that no chosen detector can find"
    )
    context.log.info(f"{part_of(len(names), n_benchmarks, 'benchmark')}, {left}; {others}")


@stage(
    missing="decon_core.planner:needs_report",
    priority=1,
    deps=[all_of(scan), all_of(mixture), *_ADDED],
    group=GROUP,
    kind="duckdb",
    schema=_REPORT_COLUMNS,
    origins=_REPORT_ORIGINS,
)
def report(context: dg.AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """All matches, findings and removed documents in one DuckDB file.

    Shards that could not be scanned are listed in it, and the report is then marked as incomplete.
    """
    from decon_core.execution.choice import open_engine
    from decon_core.planner import Plan
    from decon_core.report.build import build_report
    from decon_core.report.open import incomplete_notice

    plan = Plan(config, store)
    engine = open_engine(config.tables, store)
    built = build_report(plan.builder, config.report, additions=plan.additions, engine=engine)
    n = built.counts
    context.log.info(
        f"{'at least ' if built.gaps or n['unreadable_rows'] else ''}"
        f"{n['leaked_items']:,} of {counted(n['items'], 'item')} leaked, "
        f"{n['no_answer_items']:,} found without the answer, "
        f"{n['review_items']:,} that need review; "
        f"{counted(n['contaminated_documents'], 'document')} with a leak, "
        f"{n['no_answer_documents']:,} with a question but not its answer"
    )
    if built.gaps:
        reasons = [gap.reason for gap in built.gaps]
        context.log.warning(incomplete_notice(reasons, plan.n_shards))
    n_runs, cost = cost_of_scans(context.instance, context.asset_key.path[:-1])
    not_scanned = [
        {"shard": gap.shard.path, "reason": gap.reason, "remedy": gap.cause.remedy}
        for gap in built.gaps
    ]
    return {
        "dagster/row_count": n["items"],
        "is_complete": not built.gaps,
        "scan_runs": n_runs,
        **cost_metadata("scan", cost),
        "not_scanned": preview(not_scanned, width=_REASON_WIDTH),
        "database": dg.MetadataValue.path(store.report),
        **n,
        **_report_metadata(store),
    }


def _report_metadata(store: Store) -> dict[str, object]:
    """Return the main results as tables, and the paths of scan results and mixtures."""
    from decon_core.report.publish.summary import summary_of

    summary = summary_of(store.report)
    rates = [{name: row[name] for name in _RATES} for row in summary["benchmarks"]]
    mixtures = [
        {name: row[name] for name in _MIXTURE_COLUMNS}
        | {"folder": str(store.mixtures(row["mixture"]))}
        for row in summary["mixtures"]
    ]
    tables = [{"table": name, "about": table.about} for name, table in TABLES.items()]
    return {
        "by_benchmark": preview(rates, most=_MAX_BENCHMARKS_SHOWN),
        "mixtures": preview(mixtures, width=_ABOUT_WIDTH),
        "tables": preview(tables, width=_ABOUT_WIDTH, most=len(TABLES)),
        "scan_results": dg.MetadataValue.path(store.scan_results(summary["scan_fingerprint"])),
    }


@stage(
    missing="decon_core.planner:needs_page",
    priority=1,
    deps=[report, *_ON_PAGE],
    group=GROUP,
    kind="html",
)
def report_page(context: dg.AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """The report as an HTML page, figures, a dataset card section and a JSON summary."""
    from decon_core.report.html.build import write_page
    from decon_core.report.html.still import figures, write_figures
    from decon_core.report.page_additions import additions_of
    from decon_core.report.publish.summary import CARD, SUMMARY, summary_of, write_published

    folder = store.report.parent
    facts = write_page(store.report, store.report_page, additions=additions_of(config, store))
    drawn = figures(facts)
    write_figures(drawn, store.report_figures)
    write_published(summary_of(store.report), folder)
    context.log.info(f"{store.report_page.name}, {CARD}, {SUMMARY}, {store.report_figures.name}/")
    return {
        **{name: pictures(charts) for name, charts in drawn.items()},
        "figures": dg.MetadataValue.path(store.report_figures),
        "page": dg.MetadataValue.path(store.report_page),
        "link": dg.MetadataValue.url(link_to(store.report_page)),
        "card": dg.MetadataValue.md((folder / CARD).read_text(encoding="utf-8")),
        "summary": dg.MetadataValue.path(folder / SUMMARY),
    }
