"""`decon-assets normalize` and `catalog`: try recipes, and list the shipped ones."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from decon_assets.terminal.options import argument, flag, option, optional, repeatable
from decon_assets.terminal.output import say, warn
from decon_core.feature import feature_hooks
from decon_core.storage.paths import parse_path
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
        n_items = len(set(zip(*(table[key].to_pylist() for key in _ITEM), strict=True)))
        say(f"{name}: {counted(n_items, 'item')}, {counted(table.num_rows, 'record')}")
        for record in table.slice(0, show).to_pylist():
            for key, value in record.items():
                if value is not None:
                    say(f"    {key}: {value}")
    return 0


def catalog(
    names: list[str] | None = argument("print these recipes as YAML", "NAME", default=None),
    *,
    registry: str | None = optional(
        "derive recipes from a registry instead: a file, folder or wheel of lm-evaluation-harness, "
        "lighteval or NeMo Gym, or data sets with eval.yaml (docs/importing-recipes.md)",
        "PATH",
        name="--from",
    ),
    as_json: bool = flag("--json", "with --from: print recipes and reasons as JSON"),
) -> int:
    """List the recipes that come with the package, or print some as YAML.

    Use it to start a recipe file. These recipes read benchmarks from the Hugging Face Hub.

    Examples:
      decon-assets catalog
      decon-assets catalog gsm8k mmlu > evals.yaml
      decon-assets catalog --from lm_eval-0.4.13-py3-none-any.whl
      decon-assets catalog --from lm_eval-0.4.13-py3-none-any.whl "mmlu*" > evals.yaml
    """
    if registry is not None:
        for print_recipes in feature_hooks("registry"):
            return int(print_recipes(parse_path(registry), names or (), as_json))
        warn("--from: no feature reads registries of benchmarks")
        return 2
    if as_json:
        warn("--json: only with --from")
        return 2
    import yaml

    from decon_core.benchmarks.parse import CATALOG_PATH

    shipped = yaml.safe_load(CATALOG_PATH.read_text(encoding="utf-8"))["evals"]
    unknown = [name for name in names or () if name not in shipped]
    if unknown:
        close: dict[str, None] = {}
        for name in unknown:
            containing = sorted(known for known in shipped if name.lower() in known.lower())
            close |= dict.fromkeys(containing[:3] or get_close_matches(name, [*shipped], n=3))
        hint = f" (did you mean {', '.join(close)}?)" if close else ""
        warn(f"not in the catalog: {', '.join(unknown)}{hint}. `decon-assets catalog` lists all")
        return 2
    if names:
        chosen = {"evals": {name: shipped[name] for name in names}}
        say(yaml.safe_dump(chosen, sort_keys=False, allow_unicode=True).rstrip("\n"))
    else:
        for name, recipe in shipped.items():
            say(f"{name:40} {recipe.get('hf_path', '')} {recipe.get('hf_config', '')}".rstrip())
    return 0
