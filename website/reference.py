"""Reference pages that are made from the code: settings, commands, detectors, assets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import dagster as dg
import typer

from decon_assets.cli.main import command_line
from decon_assets.definitions import definitions
from decon_core.config import detector_registry as registry
from decon_core.config.json_schema import config_schema
from decon_core.config.policy import Policy

Node = Mapping[str, Any]  # of a JSON schema

_PAGE = re.compile(r"docs/([\w/-]+\.md)")


def settings() -> str:
    """Return the page of all settings of decon.toml, from the schema that editors complete from."""
    schema = config_schema()
    parts = [
        "# Settings",
        "All tables and keys of `decon.toml`. [Configuration](../configuration.md) explains them.",
        "`decon-assets init` writes a `decon.toml` with every setting as a comment.",
        "Relative paths are resolved against the folder of `decon.toml`.",
    ]
    for name in schema["properties"]:
        parts += _sections(schema["properties"][name], name, schema["$defs"])
    return _page(parts)


def _sections(node: Node, path: str, tables: Mapping[str, Node]) -> Iterator[str]:
    """Yield the heading, description and keys of a table, then those of the tables within it."""
    is_list, table = _table_of(node, tables)
    if table is None:
        yield f"## `[{path}.<name>]`"
        yield _described(node, path)
        return
    yield f"## `[[{path}]]`" if is_list else f"## `[{path}]`"
    yield _described({**table, **node}, path)
    required = table.get("required", ())
    keys: list[tuple[str, ...]] = []
    inner: list[tuple[Node, str]] = []
    for key, value in table["properties"].items():
        if value.get("deprecated"):
            continue
        full = value if "$ref" not in value else {**_resolved(value, tables), **value}
        described = _described(full, f"{path}.{key}")
        named = value.get("additionalProperties")
        if isinstance(named, dict) and _table_of(named, tables)[1]:
            inner.append(({**value, **named}, f"{path}.{key}.NAME"))
        elif _table_of(value, tables)[1]:
            inner.append((value, f"{path}.{key}"))
        else:
            default = "required" if key in required else _toml(full.get("default"))
            keys.append((f"`{key}`", _type(value, tables), default, described))
    if keys:
        yield _table(("key", "type", "default", "meaning"), keys)
    for value, inner_path in inner:
        yield from _sections(value, inner_path, tables)


def _table_of(node: Node, tables: Mapping[str, Node]) -> tuple[bool, Node | None]:
    """Return whether a node is a list of tables, and the table; None if it is none."""
    node = _resolved(node, tables)
    if node.get("type") == "array" and "items" in node:
        items = _resolved(node["items"], tables)
        return True, items if "properties" in items else None
    choices = [_resolved(one, tables) for one in node.get("anyOf", ())]
    node = next((one for one in choices if "properties" in one), node)
    return False, node if "properties" in node else None


def _resolved(node: Node, tables: Mapping[str, Node]) -> Node:
    return tables[node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _type(node: Node, tables: Mapping[str, Node]) -> str:
    """Return the type of a key in words, with its limits or values."""
    node = _resolved(node, tables)
    if "enum" in node or "const" in node:
        values = node.get("enum", [node.get("const")])
        return ", ".join(f"`{_quoted(value)}`" for value in values)
    if "anyOf" in node:
        choices = [_type(one, tables) for one in node["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(choices))
    if node.get("type") == "array":
        return f"list of {_type(node['items'], tables)}" if "items" in node else "list"
    names = {"boolean": "true or false", "object": "table"}
    limits = [
        f"{sign} {node[limit]}"
        for limit, sign in (
            ("exclusiveMinimum", ">"),
            ("minimum", "≥"),
            ("exclusiveMaximum", "<"),
            ("maximum", "≤"),
        )
        if abs(node.get(limit, _NO_LIMIT)) < _NO_LIMIT
    ]
    kind = str(node.get("type", "any"))
    return " ".join([names.get(kind, kind), *([", ".join(limits)] if limits else ())])


_NO_LIMIT = 10**15  # limit of all whole numbers, not worth a word


def _toml(value: object) -> str:
    if value is None or value in ([], "", {}):
        return "–"
    return f"`` {_quoted(value)} ``" if "`" in str(value) else f"`{_quoted(value)}`"


def _quoted(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_quoted, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_quoted(one)}' for key, one in value.items())} }}"
    return str(value) if isinstance(value, int | float) else f'"{value}"'


def _described(node: Node, path: str) -> str:
    if not (text := node.get("description")):
        raise LookupError(
            f"{path} has no description: write a docstring below the field of its model"
        )
    text = " ".join(text.split()).removeprefix(f"[{path}]: ").removeprefix(f"[[{path}]]: ")
    return _linked(text[:1].upper() + text[1:])


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
            (f"`{name}`", _toml(policy[name].get("default")), _described(policy[name], name))
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
