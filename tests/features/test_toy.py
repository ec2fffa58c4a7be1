"""A new feature is a folder, a file and a line: settings, asset, check, command, page section."""

import re

import pytest

from tests.features.test_removal import FEATURES, PROGRAM, copy_without, run

pytestmark = pytest.mark.release

FEATURE = """
from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="toy",
    tables={"toy": "decon_core.features.toy.count:Toy"},
    products={"toy": "decon_core.features.toy.count:is_missing"},
    folders={"toy": ""},
    commands={
        "toy": Command(
            function="toy_command",
            group="Studies",
            about="count items",
            examples=("toy    how many items there are",),
            reads_store=True,
        )
    },
    page="decon_core.features.toy.count:on_page",
)
"""
COUNT = '''
from collections.abc import Sequence

from pydantic.dataclasses import dataclass

from decon_core.config.feature_table import FeatureTable
from decon_core.config.validation import TABLE, Name, Names
from decon_core.report.html.build import Addition
from decon_core.report.html.sections import Section


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Toy(FeatureTable):
    """[toy]: a count of items."""

    benchmarks: Names[Name] = ()
    """Benchmarks whose items are counted."""

    @property
    def named_benchmarks(self) -> Sequence[str]:
        return self.benchmarks


def is_missing(plan):
    return not (plan.store.root / "toy/count.txt").is_file()


def on_page(config, store):
    count = store.root / "toy/count.txt"
    if config.table(Toy) is None or not count.is_file():
        return None
    return Addition("7", lambda: Section("toy", "Items", [count.read_text()], (), ()))
'''
ASSETS = '''
"""The asset `toy`, its check and its command."""

import dagster as dg

from decon_assets.assets.benchmarks import records
from decon_assets.assets.check_results import result_of
from decon_assets.assets.products import GROUP
from decon_assets.assets.stage import stage
from decon_assets.partitions import all_of
from decon_assets.resources import Decon
from decon_assets.terminal.options import ConfigPath
from decon_assets.terminal.output import say
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.features.toy.count import Toy, is_missing
from decon_core.inventory import current_versions
from decon_core.storage.files import atomic_path


@stage(
    missing=is_missing,
    deps=[all_of(records)],
    group=GROUP,
    kind="text",
    not_configured=lambda config: None if config.table(Toy) else "[toy]",
)
def toy(context, config, store):
    """The number of items."""
    n_items = sum(version.n_records for version in current_versions(config, store))
    with atomic_path(store.root / "toy/count.txt") as draft:
        draft.write_text(f"{n_items} items in all benchmarks")
    return {"items": n_items}


@dg.asset_check(asset=toy)
def toy_is_counted(decon: Decon) -> dg.AssetCheckResult:
    """There is a count."""
    return result_of([])


def toy_command(*, config: ConfigPath) -> int:
    """Print the count."""
    say((open_store(load_config(config)).root / "toy/count.txt").read_text())
    return 0
'''


@pytest.fixture
def with_toy(tmp_path):
    environment = copy_without(tmp_path, {*FEATURES})
    (tmp_path / "decon_core/features/toy").mkdir()
    (tmp_path / "decon_core/features/toy/__init__.py").write_text(FEATURE)
    (tmp_path / "decon_core/features/toy/count.py").write_text(COUNT)
    (tmp_path / "decon_core/features/toy/decon.toml").write_text("# [toy]\n")
    (tmp_path / "decon_assets/features/toy.py").write_text(ASSETS)
    path = tmp_path / "decon_core/features/__init__.py"
    path.write_text(path.read_text().replace("= ()", '= ("toy",)'))
    return tmp_path, environment


def test_a_toy_feature_has_table_asset_check_command_and_section_of_the_page(world, with_toy):
    folder, environment = with_toy
    (folder / "home").mkdir()
    given = ("--config", str(world.config_path))
    world.mixtures = '[toy]\nbenchmarks = ["harbour"]\n'
    world.write_config()
    refused = run(folder, environment, *PROGRAM, "status", *given, code=2)
    assert "toy.benchmarks: found 'harbour'; expected one of" in refused
    assert "did you mean 'harbor'" in refused
    world.mixtures = "[toy]\n"
    world.write_config()
    told = run(folder, environment, *PROGRAM, "run", "--workers", "1", *given)
    assert re.search(r"^toy: ", told, re.MULTILINE)
    assert "toy: up to date" in run(folder, environment, *PROGRAM, "status", *given)
    assert "items in all benchmarks" in run(folder, environment, *PROGRAM, "toy", *given)
    assert "how many items there are" in run(folder, environment, *PROGRAM, "--help")
    assert 'content="7"' in world.store.report_page.read_text()
