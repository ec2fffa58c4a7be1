"""Every table and key of decon.toml, with type, default and meaning, from the JSON schema.

`decon-assets settings` prints them, and the page of settings of the documentation's site has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from decon_core.config.json_schema import config_schema

Node = Mapping[str, Any]  # of a JSON schema

_NO_LIMIT = 10**15  # limit of all whole numbers, not worth a word
_LIMITS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
_TYPES = {"boolean": "true or false", "object": "table"}


class Setting(NamedTuple):
    """A key of a table."""

    key: str
    type: str
    default: str  # as TOML; empty: none
    is_required: bool
    meaning: str


class SettingTable(NamedTuple):
    """A table of decon.toml."""

    heading: str  # with its brackets
    meaning: str
    settings: list[Setting]

    @property
    def name(self) -> str:
        return self.heading.strip("[]")


def setting_tables() -> Iterator[SettingTable]:
    """Yield the tables of decon.toml, each followed by those within it."""
    schema = config_schema()
    for name, node in schema["properties"].items():
        yield from _tables(node, name, schema["$defs"])


def meaning_of(node: Node, path: str) -> str:
    """Return the description of a table or key as one line."""
    if not (text := node.get("description")):
        raise LookupError(
            f"{path} has no description: write a docstring below the field of its model"
        )
    text = " ".join(text.split()).removeprefix(f"[{path}]: ").removeprefix(f"[[{path}]]: ")
    return text[:1].upper() + text[1:]


def default_in_toml(value: object) -> str:
    """Return a default as TOML; empty: there is none."""
    return "" if value is None or value in ([], "", {}) else _in_toml(value)


def _tables(node: Node, path: str, models: Mapping[str, Node]) -> Iterator[SettingTable]:
    is_list, table = _table_of(node, models)
    if table is None:
        yield SettingTable(f"[{path}.<name>]", meaning_of(node, path), [])
        return
    settings: list[Setting] = []
    inner: list[tuple[Node, str]] = []
    for key, value in table["properties"].items():
        named = value.get("additionalProperties")
        if value.get("deprecated"):
            continue
        if isinstance(named, dict) and _table_of(named, models)[1]:
            inner.append(({**value, **named}, f"{path}.{key}.NAME"))
        elif _table_of(value, models)[1]:
            inner.append((value, f"{path}.{key}"))
        else:
            full = {**_resolved(value, models), **value}
            meaning, default = meaning_of(full, f"{path}.{key}"), full.get("default")
            is_required = key in table.get("required", ())
            kind = _type(value, models)
            settings.append(Setting(key, kind, default_in_toml(default), is_required, meaning))
    heading = f"[[{path}]]" if is_list else f"[{path}]"
    yield SettingTable(heading, meaning_of({**table, **node}, path), settings)
    for value, inner_path in inner:
        yield from _tables(value, inner_path, models)


def _table_of(node: Node, models: Mapping[str, Node]) -> tuple[bool, Node | None]:
    """Return whether a node is a list of tables, and the table; None if it is none."""
    node = _resolved(node, models)
    if node.get("type") == "array" and "items" in node:
        items = _resolved(node["items"], models)
        return True, items if "properties" in items else None
    choices = [_resolved(choice, models) for choice in node.get("anyOf", ())]
    node = next((choice for choice in choices if "properties" in choice), node)
    return False, node if "properties" in node else None


def _resolved(node: Node, models: Mapping[str, Node]) -> Node:
    return models[node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _type(node: Node, models: Mapping[str, Node]) -> str:
    """Return the type of a key in words, with its limits or values."""
    node = _resolved(node, models)
    if "enum" in node or "const" in node:
        return ", ".join(map(_in_toml, node.get("enum", [node.get("const")])))
    if "anyOf" in node:
        choices = [
            _type(choice, models) for choice in node["anyOf"] if choice.get("type") != "null"
        ]
        return " or ".join(dict.fromkeys(choices))
    if node.get("type") == "array":
        return f"list of {_type(node['items'], models)}" if "items" in node else "list"
    kind = str(node.get("type", "any"))
    limits = [
        f"{sign} {node[limit]}"
        for limit, sign in _LIMITS.items()
        if abs(node.get(limit, _NO_LIMIT)) < _NO_LIMIT
    ]
    return " ".join(filter(None, [_TYPES.get(kind, kind), ", ".join(limits)]))


def _in_toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_in_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_in_toml(held)}' for key, held in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)
