"""The asset `study`: arms compared with a baseline, and effects by exposure."""

import dagster as dg

from decon_assets.assets.metadata import Metadata, preview
from decon_assets.assets.products import GROUP, report
from decon_assets.assets.stage import stage
from decon_core import inventory, missing
from decon_core.config.load import Config
from decon_core.schemas import STUDY_DIFFERENCES
from decon_core.storage.store import Store
from decon_core.wording import counted

_SHOWN = ("arm", "benchmark", "score", "difference", "low", "high", "p")
_MOST_SHOWN = 50


@stage(
    missing=missing.needs_study,
    priority=1,
    deps=[report],
    group=GROUP,
    kind="duckdb",
    schema=STUDY_DIFFERENCES,
    not_configured=lambda config: None if config.study else "[study]",
)
def study(context: dg.AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """Scores of models that were trained on variants of the data, compared with a baseline.

    Made if decon.toml has a table [study]. Where results are by item, also the effects on planted,
    held-back, leaked and clean items.
    """
    from decon_core.studies.study import DATABASE, PAGE, build_study

    inputs = inventory.study_inputs(config, store)
    if inputs is None:  # "Materialize all" includes it
        return {"study": "off: decon.toml has no table [study]"}
    found = build_study(inputs)
    compared = [*found.comparison.averages, *found.comparison.benchmarks]
    n_benchmarks = len({one.benchmark for one in found.comparison.benchmarks})
    context.log.info(
        f"{counted(len(found.arms), 'arm')}, {counted(n_benchmarks, 'benchmark')}, "
        f"{counted(len(found.effects), 'effect')} by exposure"
    )
    if found.problems:
        n_problems = counted(len(found.problems), "problem")
        context.log.warning(f"{n_problems} of results, listed in {store.study / PAGE}")
    rows = [{name: getattr(one, name) for name in _SHOWN} for one in compared]
    return {
        "dagster/row_count": len(compared),
        "differences": preview(rows, most=_MOST_SHOWN),
        "effects": len(found.effects),
        "problems": len(found.problems),
        "database": dg.MetadataValue.path(store.study / DATABASE),
        "page": dg.MetadataValue.md((store.study / PAGE).read_text(encoding="utf-8")),
    }
