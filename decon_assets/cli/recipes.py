"""`decon-assets normalize` and `catalog`: try recipes, and list the shipped ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from decon_assets.cli.command import Command, Say
from decon_core.wording import counted

CATALOG_DESCRIPTION = "List the shipped recipes, or print some as YAML to start a recipe file from."

_ITEM = ("split", "instance_index")


def add_normalize_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipes", type=Path, help="a recipe file (evals.yaml)")
    parser.add_argument("--benchmark", action="append", help="only this one; may be repeated")
    parser.add_argument("--limit", type=int, help="read at most this many rows of each split")
    parser.add_argument("--show", type=int, default=1, help="records to print (default 1)")


def add_catalog_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="name", help="print these recipes as YAML")


def normalize(options: argparse.Namespace, say: Say) -> int:
    from decon_core.benchmarks import load_recipes
    from decon_core.benchmarks import normalize as normalized

    recipes = load_recipes(options.recipes)
    for name in options.benchmark or recipes:
        if name not in recipes:
            sys.stderr.write(f"{name}: not in {options.recipes}\n")
            return 2
        table = normalized(recipes[name], base=options.recipes.parent, limit=options.limit)
        n_items = len(set(zip(*(table[key].to_pylist() for key in _ITEM), strict=True)))
        say(f"{name}: {counted(n_items, 'item')}, {counted(table.num_rows, 'record')}")
        for record in table.slice(0, options.show).to_pylist():
            for key, value in record.items():
                if value is not None:
                    say(f"    {key}: {value}")
    return 0


def catalog(options: argparse.Namespace, say: Say) -> int:
    import yaml

    from decon_core.benchmarks import CATALOG_PATH

    shipped = yaml.safe_load(CATALOG_PATH.read_text(encoding="utf-8"))["evals"]
    unknown = [name for name in options.names if name not in shipped]
    if unknown:
        sys.stderr.write(f"not in the catalog: {', '.join(unknown)}\n")
        return 2
    if options.names:
        chosen = {"evals": {name: shipped[name] for name in options.names}}
        say(yaml.safe_dump(chosen, sort_keys=False, allow_unicode=True).rstrip("\n"))
    else:
        for name, recipe in shipped.items():
            say(f"{name:40} {recipe.get('hf_path', '')} {recipe.get('hf_config', '')}".rstrip())
    return 0


NORMALIZE = Command(normalize, (add_normalize_arguments,))
CATALOG = Command(catalog, (add_catalog_arguments,), CATALOG_DESCRIPTION)
