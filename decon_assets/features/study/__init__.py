"""The asset `study` and its check: models compared with a baseline."""

from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.check_results import result_of
from decon_assets.assets.metadata import Metadata, picture
from decon_assets.assets.products import GROUP, report
from decon_assets.assets.stage import stage
from decon_assets.resources import Decon
from decon_core.features.study.schemas import DIFFERENCES
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store


@stage(priority=1, deps=[report], group=GROUP, kind="duckdb", schema=DIFFERENCES)
def study(context: dg.AssetExecutionContext, config: "Config", store: "Store") -> Metadata:
    """Scores of models that were trained on variants of the data, compared with a baseline.

    Built if decon.toml has a [study] table. Results by item also give the effects on planted,
    held-back, leaked and clean items.
    """
    from decon_core.features.study.build import PAGE, build_study
    from decon_core.features.study.product import DATABASE, study_folder, study_inputs

    inputs = study_inputs(config, store)
    if inputs is None:  # "Materialize all" includes it
        return {"study": "off: decon.toml has no [study] table"}
    found = build_study(inputs)
    n_benchmarks = len({row.benchmark for row in found.comparison.benchmarks})
    context.log.info(
        f"{counted(len(found.training_runs), 'training run')}, "
        f"{counted(n_benchmarks, 'benchmark')}, "
        f"{counted(len(found.effects), 'effect')} by exposure"
    )
    if found.problems:
        n_problems = counted(len(found.problems), "problem")
        context.log.warning(f"{n_problems} with results, listed in {study_folder(store) / PAGE}")
    return {
        "dagster/row_count": len(found.comparison.all),
        "effects": len(found.effects),
        "problems": len(found.problems),
        "database": dg.MetadataValue.path(study_folder(store) / DATABASE),
        **{
            drawing.stem: picture(drawing.stem, drawing.read_text(encoding="utf-8"))
            for drawing in sorted(study_folder(store).glob("*[a-z].svg"))  # the first of its kind
        },
        "page": dg.MetadataValue.md((study_folder(store) / PAGE).read_text(encoding="utf-8")),
    }


@dg.asset_check(asset=study)
def results_are_read(decon: Decon) -> dg.AssetCheckResult:
    """All results that the study names could be read and compared."""
    from decon_core.features.study.build import faults_of_study
    from decon_core.features.study.product import study_folder

    _, store = decon.open_store()
    return result_of([*faults_of_study(study_folder(store))], is_warning=True)
