"""How many files a toy takes: a feature with all that it may have, a format, a key, a column."""

import inspect
import json
import re

import pytest

from tests.core.corpus import test_formats
from tests.features.test_removal import CONTRACTS, FEATURES, copy_without, run

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
from decon_core.report.page_additions import Addition
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
"""The `toy` asset, its check and its command."""

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
from decon_core.planner import Plan
from decon_core.storage.files import atomic_path


@stage(deps=[all_of(records)], group=GROUP, kind="text")
def toy(context, config, store):
    """The number of items."""
    n_items = sum(version.n_records for version in Plan(config, store).current_versions)
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


FORMAT_IMPORTS = """
from itertools import islice

from decon_core.corpus.documents import Unreadable, document_of
from decon_core.corpus.formats.lines import LineBlock, LineFormat
from decon_core.storage.compression import open_bytes
"""
OF_FORMAT = (test_formats.cells_of, test_formats.TabBlock, test_formats.TabText)


def add_feature(folder):
    """A folder, a file and a line."""
    (folder / "decon_core/features/toy").mkdir()
    (folder / "decon_core/features/toy/__init__.py").write_text(FEATURE)
    (folder / "decon_core/features/toy/count.py").write_text(COUNT)
    (folder / "decon_core/features/toy/decon.toml").write_text("# [toy]\n")
    (folder / "decon_assets/features/toy.py").write_text(ASSETS)
    path = folder / "decon_core/features/__init__.py"
    path.write_text(path.read_text().replace("= ()", '= ("toy",)'))


def add_format(folder):
    """One file."""
    parts = [FORMAT_IMPORTS, *map(inspect.getsource, OF_FORMAT), "SHARD_FORMATS = (TabText(),)\n"]
    (folder / "decon_core/corpus/formats/tab.py").write_text("\n\n".join(parts))


def add_key(folder):
    """One file, beside the one that uses it."""
    new = '    colour: Literal["red", "blue"] = "red"\n    """Colour of the toy."""\n'
    insert_before(folder / "decon_core/config/load.py", "    drift: Share", new)


def add_column(folder):
    """Two files: what the column means, and what fills it."""
    path, new = folder / "decon_core/report/tables.toml", '  ["n_toys", "whole", "toys"],\n'
    insert_before(path, '  ["n_indexed_records",', new)
    path = folder / "decon_core/report/gather.py"
    insert_before(path, '            "n_indexed_records"', '"n_toys": 7,\n')


def insert_before(path, line, new):
    text = path.read_text()
    assert text.count(line) == 1, path
    path.write_text(text.replace(line, new + line))


@pytest.fixture
def with_toys(tmp_path):
    environment = copy_without(tmp_path, {*FEATURES})
    for add in (add_feature, add_format, add_key, add_column):
        add(tmp_path)
    (tmp_path / "home").mkdir()
    return tmp_path, environment


TAB_SOURCE = """
[[corpus.source]]
name = "tabs"
path = "corpus/*.tab"
"""


# Commands in one process, which imports Dagster once: their codes, and what they say.
SESSION = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from decon_assets.cli.main import main

ended = []
for command in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
        code = main(command)
    ended.append([code, said.getvalue()])
print(json.dumps(ended))
"""


def test_a_toy_feature_format_key_and_column_are_all_that_they_should_be(world, with_toys):
    folder, environment = with_toys
    run(folder, environment, *CONTRACTS)
    (leak,) = world.benchmarks["harbor"][:1]
    line = f"one\t{leak['question']} {leak['answer']}\n"
    (world.folder / "corpus/a.tab").write_text(line)
    configs = []
    for tables in (
        '[toy]\nbenchmarks = ["harbour"]\n',
        '[report]\ncolour = "green"\n',
        f'[toy]\n[report]\ncolour = "blue"\n{TAB_SOURCE}',
    ):
        world.mixtures = tables
        world.write_config()
        configs.append(world.config_path.rename(world.folder / f"decon-{len(configs)}.toml"))
    unknown_benchmark, unknown_colour, right = (("--config", str(path)) for path in configs)
    in_findings = "SELECT source FROM findings WHERE is_contaminated AND source = 'tabs'"
    commands = [
        ("status", *unknown_benchmark),
        ("status", *unknown_colour),
        ("run", "--workers", "1", *right),
        ("status", *right),
        ("toy", *right),
        ("--help",),
        ("report", "--query", "SELECT n_toys FROM benchmarks LIMIT 1", *right),
        ("report", "--query", in_findings, *right),
    ]
    ended = json.loads(run(folder, environment, "-c", SESSION, json.dumps(commands)))
    codes, (benchmark, colour, built, status, toy, about, column, findings) = zip(
        *ended, strict=True
    )
    assert codes == (2, 2, 0, 0, 0, 0, 0, 0)
    assert "toy.benchmarks: found 'harbour'; expected one of" in benchmark
    assert "Did you mean 'harbor'" in benchmark
    assert "report.colour: found 'green'; expected one of red, blue" in colour
    assert re.search(r"^toy: ", built, re.MULTILINE)
    assert "toy: up to date" in status
    assert "items in all benchmarks" in toy
    assert "how many items there are" in about
    assert 'content="7"' in world.store.report_page.read_text()
    assert "7" in column
    assert "tabs" in findings
