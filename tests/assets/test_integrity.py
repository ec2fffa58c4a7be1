"""A bit that flips in any file of a store: noticed, named, and made again."""

import random
import shutil
from pathlib import Path

import duckdb
import pytest

from decon_assets.cli.store_state import remove_damaged_files
from decon_assets.features.scorecard import scorecard_job
from decon_assets.graph import GRAPH
from decon_assets.runner.pipeline import PipelineError
from decon_core.config.load import load_config
from decon_core.config.sources import Source
from decon_core.corpus.registration import list_packs
from decon_core.errors import DeconError
from decon_core.library.scan import Request, scan_folder
from decon_core.mixtures.verify import inspect_changed_mixtures
from decon_core.quality.integrity import remove_damaged, to_remove, verify_store
from decon_core.storage.checksums import hash_file, is_whole
from decon_core.storage.store import Store
from tests.long_runs import IS_LONG

MIXTURES = """
[[mixture]]
name = "decontaminated"
[[mixture]]
name = "control"
take = "control"
control_of = "decontaminated"
[[mixture]]
name = "flat"
write = "parquet"
[[blend]]
name = "stream"
of = "decontaminated"
"""


# All stages before the report.
PARTS = "common_ngrams clean_benchmark blend"

SMALL = {"per_transformation": 1, "background": 5, "detectors": ["decon"]}


def flip(path: Path, rng: random.Random) -> None:
    """Flip one bit, and leave size and date as they are, as a disk does."""
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def files_of(store) -> list[Path]:
    return sorted(
        path
        for path in store.root.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(store.root).parts)
    )


def damaged_in(store) -> set[str]:
    return {problem.where for problem in verify_store(store) if problem}


def test_a_flipped_bit_in_any_file_of_a_store_is_noticed_and_named(world):
    world.mixtures = MIXTURES
    world.start()
    make_scorecard(world)
    files, rng = files_of(world.store), random.Random(5)
    kinds = {path.relative_to(world.store.root).parts[0] for path in files}
    assert {"packs", "records", "idf", "index", "search", "scan_results", "common"} <= kinds
    assert {"mixtures", "draws", "clean", "report", "checks", "blends", "scorecard"} <= kinds
    assert damaged_in(world.store) == set()
    for path in files:
        content = path.read_bytes()
        for _ in range(3):
            flip(path, rng)
            assert str(path) in damaged_in_kind(world.store, path), path
            path.write_bytes(content)
    assert damaged_in(world.store) == set()


def make_scorecard(world) -> None:
    result = scorecard_job.execute_in_process(
        instance=world.instance,
        resources=GRAPH.resources(str(world.config_path)),
        run_config={"ops": {"plant_and_scan": {"config": SMALL}}},
    )
    assert result.success


def damaged_in_kind(store, path: Path) -> set[str]:
    from decon_core.quality import integrity

    (kind, *_), folder = path.relative_to(store.root).parts, path.parent
    if kind == "manifests" and path.name == "manifest.json":
        below = folder.relative_to(store.root / kind)
        faults = integrity._faults_of_listed(path, store.root / below)
        return {one.where for one in faults if one}
    pattern, is_apart = integrity._manifests().get(kind, ("", False))
    if not pattern or path.name == "README.md":
        problem = integrity._fault(path)
        return {problem.where} if problem else set()
    below = path.relative_to(store.root).parts[: pattern.count("/") + 1]
    folder = store.root.joinpath(*below)
    root = store.root / "manifests" if is_apart else store.root
    manifest = root.joinpath(*below, Path(pattern).name)
    return {one.where for one in integrity._faults_of_listed(manifest, folder) if one}


# The folders of a store in the order of the stages: each is made of what lies in earlier ones. The
# report is left out; it is made anew whenever they have changed.
STAGES = [
    *("packs", "records", "idf", "index", "search", "scan_results", "common"),
    *("draws", "manifests", "mixtures", "clean", "blends", "checks"),
]
# Those whose files are the same at any time, and made whenever they are missing: `search` and
# `draws` keep what a stage computes, until it is needed again.
PRODUCTS = set(STAGES) - {"packs", "search", "draws", "checks"}
DATED = {"runs", "earlier_rates", "rates_of_report", "rate_changes"}
KINDS = [
    "packs/*.json",
    "packs/copies/*.json",
    "records/harbor/current.json",
    "records/*/[0-9a-f]*.parquet",
    "idf/current.json",
    "idf/[0-9a-f]*.arrow",
    "index/*/harbor/*.arrow",
    "search/*/*.arrow",
    "scan_results/*/*/????????????????.parquet",
    "scan_results/*/*/*.grams.parquet",
    "scan_results/*/*/shards.json",
    "scan_results/*/*/documents.parquet",
    "scan_results/*/*/ledgers.json",
    "common/[0-9a-f]*.parquet",
    "common/current.json",
    "manifests/mixtures/*/*/manifest.json",
    "manifests/mixtures/*/*/removed.parquet",
    "mixtures/*/*/*.jsonl.gz",
    "mixtures/*/*/*.parquet",
    "mixtures/*/README.md",
    "clean/*/manifest.json",
    "clean/*/evals/*.jsonl",
    "clean/*/parquet/*.parquet",
    "draws/*.parquet",
    "blends/*/README.md",
    "manifests/blends/*/manifest.json",
    "manifests/blends/*/[irt]*.parquet",
    "blends/*/phase-1/*.jsonl.zst",
    "checks/*.json",
]


# Each takes whole runs. CI tries some, `make test-long` all.
TRIED = KINDS if IS_LONG else KINDS[3::7]
TRIED_WITH_A_NEW_BENCHMARK = KINDS if IS_LONG else random.Random(6).sample(KINDS, 1)


def test_every_file_of_a_store_is_of_one_of_these_kinds(world):
    world.mixtures = MIXTURES
    world.start()
    of_a_kind = {path for pattern in KINDS for path in world.store.root.glob(pattern)}
    of_a_kind.add(world.store.root / "skipped.json")  # of no product: each run lists anew
    rest = {path.parent.name for path in files_of(world.store) if path not in of_a_kind}
    assert rest <= {"harbor", "ledger", "empty_report", "report", "figures"}, rest


@pytest.mark.kills
@pytest.mark.parametrize("pattern", TRIED)
def test_what_is_damaged_is_refused_by_name_or_made_again_and_never_used(world, pattern):
    """A bit flips, and all that later stages made has to be made once more."""
    world.mixtures = MIXTURES
    world.start(until=PARTS)
    before = products_of(world.store)
    rng = random.Random(pattern)
    path = rng.choice(sorted(world.store.root.glob(pattern)))
    flip(path, rng)
    for stage in STAGES[STAGES.index(pattern.split("/")[0]) + 1 :]:
        shutil.rmtree(world.store.root / stage)
    try:
        world.run(until=PARTS)
    except (PipelineError, DeconError) as error:
        assert str(path) in str(error)  # noqa: PT017 - either is right
        assert "decon-assets run --verify" in str(error)  # noqa: PT017
    if path.exists() and not is_whole(path):
        assert str(path) in damaged_in(world.store)
        # Cards and tables count what there is; each other file is right or not there.
        parts = {path: one for path, one in products_of(world.store).items() if is_part(path)}
        assert {**parts, str(path): ""}.items() <= {**before, str(path): ""}.items()
        found = [problem for problem in verify_store(world.store) if problem]
        assert path in remove_damaged(world.store, found)
        world.run(until=PARTS)
    assert damaged_in(world.store) == set()
    assert products_of(world.store) == before


@pytest.mark.kills
@pytest.mark.parametrize("pattern", TRIED_WITH_A_NEW_BENCHMARK)
def test_after_a_repair_a_new_benchmark_gives_what_it_gives_an_undamaged_store(
    world, tmp_path, pattern
):
    world.mixtures = MIXTURES
    world.start()
    known = dict(world.benchmarks)
    shutil.copytree(world.store.root, tmp_path / "saved")
    world.add_benchmark("orchard")
    world.run()
    undamaged = products_of(world.store)
    shutil.rmtree(world.store.root)
    shutil.copytree(tmp_path / "saved", world.store.root)
    world.benchmarks = known
    world.write_benchmarks()
    rng = random.Random(pattern)
    flip(rng.choice(sorted(world.store.root.glob(pattern))), rng)
    remove_damaged_files(load_config(world.config_path), lambda _: None)  # as `run --verify` does
    world.run()
    world.add_benchmark("orchard")
    world.run()
    assert products_of(world.store) == undamaged
    assert damaged_in(world.store) == set()


@pytest.mark.kills
@pytest.mark.parametrize("has_copy", [True, False])
def test_a_damaged_pack_leaves_no_mixture_behind_that_a_later_benchmark_would_not_clean(
    world, has_copy
):
    world.mixtures = MIXTURES
    world.start(until=PARTS)
    path, folders = world.store.pack("web-0000"), world.store.mixtures_of("web-0000")
    flip(path, random.Random(3))
    with pytest.raises(DeconError, match=r"web-0000\.json.*run --verify"):
        world.run(until=PARTS)
    if not has_copy:
        world.store.pack_copy("web-0000").unlink()
    said = []
    remove_damaged_files(load_config(world.config_path), said.append)
    assert path.exists() == has_copy
    if has_copy:
        assert f"  restored from its copy: {path}" in said
    else:
        found = {problem.where for problem in verify_store(world.store) if problem}
        assert {str(folder) for folder in folders} <= found
        inspection = inspect_changed_mixtures(world.store, (), list_packs(world.store))
        assert str(folders[0]) in {problem.where for problem in inspection.problems}
    world.add_benchmark("orchard")
    world.run(until=PARTS)
    packs = {pack.name for pack in list_packs(world.store)}
    assert ("web-0000" in packs) == has_copy
    assert {folder.name for folder in world.store.root.glob("mixtures/*/*/")} == packs
    assert {folder.name for folder in world.store.root.glob("manifests/mixtures/*/*/")} == packs
    assert damaged_in(world.store) == set()


def is_part(product: str) -> bool:
    return "/" in product and not product.endswith("README.md")


def products_of(store) -> dict[str, str]:
    """A digest of every file that holds no dates, and each table of the report without any."""
    files = [path for path in files_of(store) if path.relative_to(store.root).parts[0] in PRODUCTS]
    found = {str(path): hash_file(path) for path in files}
    if store.report.is_file():
        with duckdb.connect(store.report, read_only=True) as report:
            for (table,) in report.execute("SHOW TABLES").fetchall():
                if table not in DATED:
                    found[table] = repr(report.table(table).fetchall())
    return found


@pytest.mark.kills
@pytest.mark.parametrize(
    "pattern", ["idf/current.json", "idf/[0-9a-f]*.arrow"][: 2 if IS_LONG else 1]
)
def test_damaged_weights_are_not_counted_over_other_versions_without_being_asked_to(world, pattern):
    """After a corrected recipe the snapshot is that of the version before; it stays so."""
    world.start(until="scan")
    world.benchmarks["harbor"][0]["question"] += " and corrected"
    world.write_benchmarks()
    world.run(until="scan")
    (path,) = world.store.root.glob(pattern)
    flip(path, random.Random(1))
    remove_damaged(world.store, [problem for problem in verify_store(world.store) if problem])
    assert not path.exists()
    scan_results = world.scan_results()
    with pytest.raises((PipelineError, DeconError), match="--new-term-weights"):
        world.run(until="scan")
    assert world.scan_results() == scan_results
    world.run(until="scan", refreeze=True)
    assert damaged_in(world.store) == set()


def test_why_a_shard_was_not_scanned_is_found_out_again_when_its_file_is_damaged(world):
    shard = world.folder / "corpus" / "s1.jsonl.gz"
    shard.write_bytes(shard.read_bytes()[:-200])
    with pytest.raises(PipelineError, match="damaged or truncated"):
        world.run(until="scan")
    (path,) = world.store.root.glob("refused/*.json")
    before = path.read_bytes()
    flip(path, random.Random(2))
    assert damaged_in(world.store) == {str(path)}
    with pytest.raises(PipelineError, match="damaged or truncated"):
        world.run(until="scan")
    assert path.read_bytes() == before


def test_a_damaged_snapshot_of_earlier_goes_alone(world):
    world.start(until="scan")
    before = world.store.current_snapshot.read_bytes()
    (current,) = world.store.root.glob("idf/[0-9a-f]*.arrow")
    old = current.with_stem("0123456789abcdef")
    old.write_bytes(current.read_bytes())
    flip(old, random.Random(1))
    remove_damaged(world.store, [problem for problem in verify_store(world.store) if problem])
    assert not old.exists()
    assert world.store.current_snapshot.read_bytes() == before


def test_with_a_damaged_figure_all_are_removed_so_that_the_page_is_made_again(tmp_path):
    store = Store(tmp_path)
    damaged = store.report_figures / "matches_by_score_aligned.svg"
    assert to_remove(store, [damaged]) == [store.report_figures, store.report_page]


def test_a_folder_scan_makes_damaged_files_of_its_store_again(world, tmp_path):
    out = tmp_path / "found"
    world.write_config()
    request = Request(
        evals=world.folder / "evals.yaml",
        source=Source(name="corpus", path=str(world.folder / "corpus"), id="id"),
        out=out,
        policy=world.policy_in_force(),
    )
    said: list[str] = []

    def scan() -> bytes:
        scan_folder(request, on_step=said.append)
        return (out / "matches.parquet").read_bytes()

    undamaged, rng = scan(), random.Random(3)
    for pattern in (
        "scan_results/*/*/ledgers.json",
        "scan_results/*/*/????????????????.parquet",
        "idf/current.json",
    ):
        path = min((out / ".store").glob(pattern))
        flip(path, rng)
        assert scan() == undamaged
        assert is_whole(path)
    assert sum("damaged, will be rebuilt" in line for line in said) >= 2
