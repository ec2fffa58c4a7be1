"""Run two checkouts of this project on the same inputs, and compare their output.

    python -m bench.same_results /tmp/before . --evals records/ --texts texts/ --work /tmp/same

Both checkouts need a .venv (`make setup`). Each checkout runs two configurations from scratch in
the same folder: the sample world, and a corpus made from `--texts` in which items of `--evals` are
hidden, with every detector, a mixture, its control and a blend. The files of the stores are
compared by their bytes, and the tables of the report by their rows. Prints all differences; exits
with 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import duckdb

from bench.corpus import make_corpus

# Their files hold dates of files, or are compared by table.
_NOT_BY_BYTES = {"packs", "checks", "empty_report", "report"}
_WITH_DATES = {"runs"}

_CONFIG = """
[evals]
recipes = ["evals/evals.yaml"]
[corpus]
pack_shards = 2
[[corpus.source]]
name = "web"
path = "corpus/*"
text = "text"
id = "id"
[policy]
detectors = ["decon", "exact", "ngram_any", "ratcliff", "longest_match"]
[[mixture]]
name = "decontaminated"
[[mixture]]
name = "control"
take = "control"
control_of = "decontaminated"
[[blend]]
name = "stream"
of = "decontaminated"
"""


@dataclass(frozen=True)
class Products:
    """The products of a run: digests of files by path, and rows of tables by name."""

    files: Mapping[str, str]
    tables: Mapping[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]


def compare(before: Path, after: Path, world: Path) -> list[str]:
    """Run both checkouts on the same inputs, and list the differences."""
    old, new = run(before, world), run(after, world)
    return [*_differing_files(old, new), *_differing_tables(old, new)]


def run(checkout: Path, world: Path) -> Products:
    """Run a checkout from nothing, and read what it wrote."""
    store, home = world / ".decon", world.with_name(f"{world.name}-home")
    for folder in (store, home):
        shutil.rmtree(folder, ignore_errors=True)
    home.mkdir()
    program = checkout.resolve() / ".venv" / "bin" / "decon-assets"
    command = [str(program), "run", "--config", str(world / "decon.toml")]
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "DAGSTER_HOME": str(home)},
    )
    return Products(dict(_digests(store)), dict(_tables(store / "report" / "contamination.duckdb")))


def _digests(store: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(store.rglob("*")):
        kind, *rest = path.relative_to(store).parts
        hidden = any(part.startswith(".") for part in (kind, *rest))
        if path.is_file() and kind not in _NOT_BY_BYTES and not hidden:
            yield str(path.relative_to(store)), sha256(path.read_bytes()).hexdigest()


def _tables(
    database: Path,
) -> Iterator[tuple[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]]:
    with duckdb.connect(str(database), read_only=True) as report:
        for (name,) in report.execute("SHOW TABLES").fetchall():
            if name not in _WITH_DATES:
                table = report.table(name)
                columns = tuple(_renamed(column) for column in table.columns)
                yield _renamed(name), (columns, sorted(table.fetchall(), key=repr))


def _renamed(name: str) -> str:
    """Return the name of a table or column as it is now: `rule` became `detector`."""
    return name.replace("rule", "detector")


def _differing_files(old: Products, new: Products) -> Iterator[str]:
    for path in sorted(old.files.keys() | new.files.keys()):
        if old.files.get(path) != new.files.get(path):
            where = [name for name, one in (("before", old), ("after", new)) if path in one.files]
            yield f"{path}: {'not the same' if len(where) == 2 else f'only {where[0]}'}"


def _differing_tables(old: Products, new: Products) -> Iterator[str]:
    for name in sorted(old.tables.keys() | new.tables.keys()):
        if name not in old.tables or name not in new.tables:
            yield f"table {name}: only {'before' if name in old.tables else 'after'}"
            continue
        (old_columns, old_rows), (new_columns, new_rows) = old.tables[name], new.tables[name]
        if renamed := set(old_columns) ^ set(new_columns):
            yield f"table {name}: columns {', '.join(sorted(renamed))} on one side only"
        if old_rows != new_rows:
            n = sum(one != other for one, other in zip(old_rows, new_rows, strict=False))
            yield f"table {name}: {len(old_rows)} rows before, {len(new_rows)} after, {n} differ"


def make_worlds(work: Path, after: Path, evals: Path, texts: Path, mb: float) -> list[Path]:
    """Make the inputs: the sample data, and real benchmarks and texts."""
    sample, real = work / "sample", work / "real"
    for folder in (sample, real):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(after / "data", sample, ignore=shutil.ignore_patterns(".*"))
    (real / "evals").mkdir(parents=True)
    for path in sorted(evals.iterdir()):
        shutil.copy(path, real / "evals")
    corpus = real / "corpus"
    make_corpus(corpus, texts=texts, evals=evals, mb=mb, n_shards=6, n_hidden=300, seed=1)
    program = after.resolve() / ".venv" / "bin" / "decon-assets"
    init = [str(program), "init", "--corpus", str(corpus), "--evals", str(real / "evals")]
    subprocess.run([*init, "--out", str(real / "init.toml")], check=True, stdout=subprocess.DEVNULL)
    (real / "decon.toml").write_text(_CONFIG)
    return [sample, real]


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--evals", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--mb", type=float, default=40, help="of text (default 40)")
    options = parser.parse_args()
    found: list[str] = []
    for world in make_worlds(options.work, options.after, options.evals, options.texts, options.mb):
        differing = compare(options.before, options.after, world)
        n_files = sum(1 for _ in _digests(world / ".decon"))
        print(f"{world.name}: {n_files} files compared, {len(differing)} differences")
        found += [f"{world.name}: {line}" for line in differing]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
