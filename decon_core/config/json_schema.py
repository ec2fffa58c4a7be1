"""The JSON schema of decon.toml, from which editors complete and check it.

It is made from the models: a key is declared in `load.py`, or in the model of its table that is
imported there. `python -m decon_core.config.json_schema` writes the schema to SCHEMA_PATH, which is
part of the package; `__init__.py` says what else follows from a new key.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, create_model
from pydantic.dataclasses import is_pydantic_dataclass

from decon_core.config.load import SECTIONS
from decon_core.config.policy import PRESETS
from decon_core.feature import feature_objects

SCHEMA_PATH = Path(__file__).with_name("decon.schema.json")


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of the whole file."""
    feature_models = feature_objects("tables")
    sections = {**SECTIONS, **{name: model.in_file() for name, model in feature_models.items()}}
    fields: dict[str, Any] = {name: (model, ...) for name, model in sections.items()}
    model = create_model("DeconToml", __config__=ConfigDict(extra="forbid"), **fields)
    schema: dict[str, Any] = _plain(model.model_json_schema())
    tables = {name: _described(name, table) for name, table in schema["$defs"].items()}
    schema["$defs"] = tables
    tables["Policy"]["properties"]["preset"] = {
        "description": 'A named set of defaults, which the other keys override. "reference" is '
        "AI2's decon as published: normalize_unicode, strip_markup and keep_no_answer are off. "
        "It does not change `sampling`.",
        "enum": [*PRESETS],
    }
    for key, threshold in tables["Thresholds"]["properties"].items():
        threshold["description"] = tables["Policy"]["properties"][key]["description"]
    for model in feature_models.values():
        model.amend_schema(tables)
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    schema["required"] = ["evals", "corpus"]
    return schema


def _described(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return a table with the docstrings of its keys as descriptions.

    Pydantic can read them, too, but at each import of a model, which takes half of its time.
    """
    properties = {**table.get("properties", {})}
    modules = [module for key, module in sys.modules.items() if key.startswith("decon_core.")]
    values = chain.from_iterable(vars(module).values() for module in modules)
    models: Iterator[Any] = filter(is_pydantic_dataclass, values)
    model: Any = next((model for model in models if model.__name__ == name), None)
    for base in filter(is_pydantic_dataclass, reversed(model.__mro__) if model else ()):
        for key, text in _docstrings_in(base.__module__).get(base.__name__, {}).items():
            alias = model.__pydantic_fields__[key].alias or key
            properties[alias] = dict(sorted((properties[alias] | {"description": text}).items()))
    return {**table, "properties": properties} if properties else table


@cache
def _docstrings_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the strings that follow the keys of each class of a module."""
    docstrings: dict[str, dict[str, str]] = defaultdict(dict)
    statements = ast.parse(inspect.getsource(sys.modules[module])).body
    for model in (node for node in statements if isinstance(node, ast.ClassDef)):
        for pair in pairwise(model.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(ast.Constant(str(text))):
                    docstrings[model.name][key] = inspect.cleandoc(text)
    return docstrings


def _plain(node: Any) -> Any:
    """Return a schema without generated titles, null defaults, and texts for error messages."""
    if isinstance(node, list):
        return [_plain(element) for element in node]
    if not isinstance(node, dict):
        return node
    left_out = {"expected"} | ({"title"} if isinstance(node.get("title"), str) else set())
    left_out |= {"default"} if node.get("default", 0) is None else set()
    return {key: _plain(value) for key, value in node.items() if key not in left_out}


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json.dumps(config_schema(), indent=1) + "\n", encoding="utf-8")
