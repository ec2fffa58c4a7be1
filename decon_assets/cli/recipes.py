"""`decon-assets normalize` and `catalog`: try recipes, and list the shipped ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from decon_assets.terminal.options import argument, flag, option, optional, repeatable
from decon_assets.terminal.output import say, warn
from decon_core.errors import RecipeError
from decon_core.feature import feature_hooks
from decon_core.storage.paths import UnreachableError, parse_path
from decon_core.wording import counted

_ITEM = ("split", "instance_index")


def normalize(
    recipes: Path = argument("a recipe file (evals.yaml)", "RECIPES"),
    *,
    benchmark: list[str] = repeatable("try only this benchmark", "NAME"),
    limit: int | None = optional("read at most this many rows of each split", "N"),
    show: int = option("records to print per benchmark (default 1)", "N", default=1),
) -> int:
    """Try the recipes in a file, and print some of the records.

    Use it while you write a recipe: if a row lacks a field that the recipe names, the command fails
    and prints where the row is. It stores nothing.

    Examples:
      decon-assets normalize evals.yaml
      decon-assets normalize evals.yaml --benchmark my_quiz --limit 100 --show 3
    """
    from decon_core.benchmarks.normalize import normalize as normalized
    from decon_core.benchmarks.parse import load_recipes

    loaded = load_recipes(recipes)
    for name in benchmark or loaded:
        if name not in loaded:
            warn(f"{name}: not in {recipes}")
            return 2
        table = normalized(loaded[name], base=recipes.parent, limit=limit)
        columns = [table[key].to_pylist() for key in _ITEM]
        n_items = len(set(zip(*columns, strict=True)))
        say(f"{name}: {counted(n_items, 'item')}, {counted(table.num_rows, 'record')}")
        for record in table.slice(0, show).to_pylist():
            for key, value in record.items():
                if value is not None:
                    say(f"    {key}: {value}")
    return 0


def catalog(
    names: list[str] | None = argument(
        "print these recipes as YAML: names, patterns, or sets such as @math", "NAME", default=None
    ),
    *,
    check: bool = flag(
        "--check", "compare these recipes (default: all) with their current datasets"
    ),
    registry: str | None = optional(
        "derive recipes from a registry instead: a file, folder or wheel of lm-evaluation-harness "
        "or lighteval, or datasets with eval.yaml (docs/importing-recipes.md)",
        "PATH",
        name="--from",
    ),
    as_json: bool = flag("--json", "with --from: print recipes and reasons as JSON"),
) -> int:
    """List the recipes and sets that come with the package, or print some recipes as YAML.

    Use it to start a recipe file. Most recipes read benchmarks from the Hugging Face Hub. A set
    may name benchmarks that are not publicly available; they are printed under `refused:`, with
    the reason, and a scan lists them as not covered.

    Examples:
      decon-assets catalog
      decon-assets catalog gsm8k mmlu > evals.yaml
      decon-assets catalog @math 'global_mmlu_*' > evals.yaml
      decon-assets catalog @frontier --check     which datasets are gone or have other columns
      decon-assets catalog --from lm_eval-0.4.13-py3-none-any.whl
      decon-assets catalog --from lm_eval-0.4.13-py3-none-any.whl "mmlu*" > evals.yaml

    Exit codes: 0 done; 1 with --check, if a recipe does not fit its dataset; 2 unknown name.
    """
    if registry is not None:
        for print_recipes in feature_hooks("registry"):
            return int(print_recipes(parse_path(registry), names or (), as_json))
        warn("--from: no feature reads registries of benchmarks")
        return 2
    if as_json:
        warn("--json: only with --from")
        return 2
    from decon_core.benchmarks import catalog as shipped

    if check:
        return _check(shipped.select(names or ["*"]).names)
    if names:
        say(shipped.as_recipe_file(shipped.select(names)).rstrip("\n"))
        return 0
    for name, entry in shipped.entries_by_key().items():
        place = entry.get("hf_path") or "a local file, or files at URLs"
        configs = entry.get("hf_config", "")
        n_configs = len(configs) if isinstance(configs, list) else 0
        shown = counted(n_configs, "config") if n_configs > 1 else configs
        say(f"{name:40} {place} {shown}".rstrip())
    say("\nsets:")
    for name in shipped.sets():
        mark = f"{shipped.SET_MARK}{name}"
        selection = shipped.select([mark])
        n_refused = len(selection.refused)
        without = f", and {n_refused:,} not publicly available" if n_refused else ""
        say(f"{mark:40} {counted(len(selection.names), 'recipe')}{without}")
    return 0


def _check(names: Sequence[str]) -> int:
    """Print for each recipe of the catalog whether it fits the first rows of its dataset."""
    from decon_core.benchmarks.catalog import catalog as recipes
    from decon_core.benchmarks.download import require_columns

    n_changed = 0
    for name in names:
        try:
            require_columns(recipes()[name], Path())
            say(f"{name}: as in the recipe")
        except (RecipeError, UnreachableError) as error:
            if isinstance(error, UnreachableError) and error.is_no_answer:
                raise
            n_changed += 1
            say(f"{error}")
    say(f"\n{n_changed:,} of {counted(len(names), 'recipe')} do not fit")
    return 1 if n_changed else 0
