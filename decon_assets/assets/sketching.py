"""The `sketch` asset: filters of all n-grams of the corpus, from which later scans are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.inputs import corpus
from decon_assets.assets.metadata import PartitionReporter
from decon_assets.assets.stage import stage
from decon_assets.instance.cost import tag_cost
from decon_assets.partitions import packs, sorted_keys
from decon_core.errors import CorpusError
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.corpus.packs import Pack
    from decon_core.storage.store import Store

_TABLE = "[sketch]"


@stage(
    missing="decon_core.planner:unsketched_packs",
    deps=[corpus],
    partitions_def=packs,
    pool="scan",  # it uses all cores
    group="scan",
    kind="binary",
    table=_TABLE,
)
def sketch(context: dg.AssetExecutionContext, config: Config, store: Store) -> None:
    """Filters of all n-grams in each pack, one filter per block of documents.

    The asset is built only if decon.toml has a [sketch] table. The same pass over the shards also
    scans them against all benchmarks that have an index. A scan of a benchmark that is added later
    then reads only blocks that may contain a match.
    """
    from decon_core.corpus.registration import packs_of
    from decon_core.corpus.sketch.pack_sketch import build_pack_sketch, has_pack_sketch
    from decon_core.execution.choice import open_engine
    from decon_core.execution.cost import Cost
    from decon_core.execution.jobs import wanted_workers
    from decon_core.planner import Plan
    from decon_core.scan.scanner import scan_packs

    reporter = PartitionReporter(context)
    keys = sorted_keys(context)
    if config.sketch is None:  # "Materialize all" includes it
        for key in keys:
            reporter.report(key, {"sketch": f"off: decon.toml has no {_TABLE} table"})
        return
    plan = Plan(config, store)
    chosen = packs_of(store, keys)
    todo = [pack for pack in chosen if not has_pack_sketch(store, plan.sketch, pack)]
    costs: dict[str, Cost] = {}
    try:
        scan_packs(
            store,
            todo,
            [],
            config.policy,
            workers=wanted_workers(),
            engine=open_engine(config.tables, store, store_url=config.kept),
            along=plan.known_versions,
            sketch=config.sketch,
            fill_sketch=True,
            costs=costs,
        )
    except CorpusError as error:  # a failure of `scan`, which reads these shards as well
        for problem in error.problems:
            context.log.warning(f"not in the sketch: {problem}")
    finally:
        tag_cost(context, sum(costs.values(), Cost()))
    for pack in todo:
        build_pack_sketch(store, plan.sketch, pack)
    context.log.info(
        f"{counted(len(todo), 'pack')} sketched, {len(keys) - len(todo)} already existed"
    )
    for pack in chosen:
        if reporter.is_full:
            break
        reporter.report(pack.name, _described(store, plan.sketch, pack))


def _described(store: Store, fingerprint: str, pack: Pack) -> dict[str, object]:
    """Return the size of a pack's sketch."""
    from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, open_pack_sketch

    n_bytes = sum(shard.n_bytes for shard in pack.shards)
    if not has_pack_sketch(store, fingerprint, pack):
        return {"sketch": "missing: a shard could not be read", "fingerprint": fingerprint}
    opened = open_pack_sketch(store, fingerprint, pack)
    size = opened.path.stat().st_size
    return {
        "blocks": int(opened.log2_bits.size),
        "megabytes": round(size / 1e6, 3),
        "share_of_shards": round(size / max(n_bytes, 1), 4),
        "fingerprint": fingerprint,
    }
