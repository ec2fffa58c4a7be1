"""Reference pages that are made from the code: settings, commands, detectors, assets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dagster as dg
import typer

from decon_assets.cli.main import command_line
from decon_assets.definitions import definitions
from decon_core.config import detector_registry as registry
from decon_core.config.json_schema import config_schema
from decon_core.config.policy import Policy
from decon_core.config.setting_list import default_in_toml, meaning_of, setting_tables

_PAGE = re.compile(r"docs/([\w/-]+\.md)")


def settings() -> str:
    """Return the page of all settings of decon.toml."""
    parts = [
        "# Settings",
        "All tables and keys of `decon.toml`. [Configuration](../configuration.md) explains them.",
        "`decon-assets settings` prints them in a terminal.",
        "Relative paths are resolved against the folder of `decon.toml`.",
    ]
    for table in setting_tables():
        parts += [f"## `{table.heading}`", _linked(table.meaning)]
        rows = [
            (
                f"`{setting.key}`",
                _code(setting.type) if '"' in setting.type else setting.type,
                "required" if setting.is_required else _code(setting.default),
                _linked(setting.meaning),
            )
            for setting in table.settings
        ]
        if rows:
            parts.append(_table(("key", "type", "default", "meaning"), rows))
    return _page(parts)


def _code(toml: str) -> str:
    """Return TOML as code; text without values as it is."""
    if not toml:
        return "–"
    return f"`` {toml} ``" if "`" in toml else f"`{toml}`"


def commands() -> str:
    """Return the page of all commands, with the text of `--help` of each."""
    root = command_line()
    top = typer.Context(root, info_name="decon-assets", terminal_width=100)
    parts = ["# Commands", "The `--help` texts of all commands.", *_helps(root, top, "##")]
    return _page(parts)


def _helps(command: Any, context: Any, level: str) -> Iterator[str]:
    yield f"{level} `{context.command_path}`"
    yield f"```text\n{command.get_help(context).rstrip()}\n```"
    for name in getattr(command, "commands", ()):
        one = command.get_command(context, name)
        inner = typer.Context(one, info_name=name, parent=context, terminal_width=100)
        yield from _helps(one, inner, "###" if context.parent else "##")


def detectors() -> str:
    """Return the page of all detectors: what they read, their settings, when to choose them."""
    policy = config_schema()["$defs"]["Policy"]["properties"]
    parts = [
        "# Detectors and their settings",
        "`detectors` under `[policy]` selects them. [Detectors](../detectors.md) compares them.",
        "The advice is based on the [scorecard](../scorecard.md) for GSM8K and AGIEval.",
    ]
    for one in registry.declarations():
        threshold = one.threshold
        sign = ">" if threshold.is_exclusive else "≥"
        unit = "a length" if threshold.is_length else "a score"
        names = [threshold.setting, threshold.floor, *one.scan_settings]
        names += [name for name, _ in one.own_settings]
        rows = [
            (
                f"`{name}`",
                _code(default_in_toml(policy[name].get("default"))),
                _linked(meaning_of(policy[name], name)),
            )
            for name in dict.fromkeys(filter(None, names))
            if name in policy
        ]
        review = "needs review; only a verdict makes it a leak"
        acts = "is a leak" if one.acts(Policy.leak) else review
        parts += [
            f"## `{one.name}`",
            f"Compares: {one.summary}. Reads: {one.reads.value}.",
            f"A match with {unit} {sign} `{threshold.setting}` {acts}.",
            _table(("setting", "default", "meaning"), rows),
            one.advice,
        ]
    return _page(parts)


def assets() -> str:
    """Return the page of all assets in the order of the graph, and of their checks."""
    graph = definitions.resolve_asset_graph()
    rows, checks = [], []
    for level in graph.toposorted_asset_keys_by_level:
        for key in sorted(level):
            node, name = graph.get(key), key.to_user_string()
            after = ", ".join(f"`{one.to_user_string()}`" for one in sorted(node.parent_keys))
            rows.append(
                (f"`{name}`", _partitions(node.partitions_def), after, _first(node.description))
            )
            for check in sorted(one.name for one in node.check_keys):
                spec = graph.get_check_spec(dg.AssetCheckKey(key, check))
                blocks = "yes" if spec.blocking else "no"
                checks.append((f"`{check}`", f"`{name}`", blocks, _first(spec.description)))
    parts = [
        "# Assets and checks",
        "The asset graph in the order of its stages, from the Dagster definitions.",
        "[Lineage and checks](../lineage.md) explains the asset names and the checks.",
        "## Assets",
        _table(("asset", "partitions", "made from", "content"), rows),
        "## Checks",
        "As long as a blocking check fails, no run materializes downstream assets.",
        _table(("check", "asset", "blocks", "passes when"), checks),
    ]
    return _page(parts)


def _partitions(definition: dg.PartitionsDefinition[Any] | None) -> str:
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return " × ".join(one.name for one in definition.partitions_defs)
    return str(getattr(definition, "name", None) or "–")


def _first(description: str | None) -> str:
    """Return the first paragraph of a description."""
    return _linked(" ".join((description or "").partition("\n\n")[0].split()))


def _linked(text: str) -> str:
    return _PAGE.sub(r"[\g<0>](../\1)", text)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [
        heads,
        ("---",) * len(heads),
        *([one.replace("|", "\\|") for one in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


# By their places in docs/ and on the site.
PAGES: dict[str, Callable[[], str]] = {
    "reference/settings.md": settings,
    "reference/commands.md": commands,
    "reference/detectors.md": detectors,
    "reference/assets.md": assets,
}
