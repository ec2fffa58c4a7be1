"""The JSON schema of decon.toml, from which editors complete and check it.

`python -m decon_core.config.schema` writes it to SCHEMA_PATH, which is part of the package.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, create_model

from decon_core.config.blends import LISTABLE
from decon_core.config.endpoint import Endpoint
from decon_core.config.load import RENAMED, SECTIONS, PackLimits
from decon_core.config.neighbours import Sample
from decon_core.config.policy import PRESETS

# Tables by the model whose keys they inherit: pydantic reads docstrings of a class's own keys only.
_INHERITED: dict[type, tuple[str, ...]] = {
    Endpoint: ("Judge", "Rewording"),
    PackLimits: ("Corpus", "SourceTable"),
    Sample: ("Neighbours",),
}

SCHEMA_PATH = Path(__file__).with_name("decon.schema.json")


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of the whole file."""
    fields: dict[str, Any] = {name: (model, ...) for name, model in SECTIONS.items()}
    model = create_model("DeconToml", __config__=ConfigDict(extra="forbid"), **fields)
    schema: dict[str, Any] = _plain(model.model_json_schema())
    tables = schema["$defs"]
    tables["Policy"]["properties"]["preset"] = {
        "description": "Named defaults, which the other keys override. reference: the published "
        "method, without normalize_unicode, strip_markup and keep_question_only; matches of decon "
        "are then those of versions without these settings, except for sums that equal a threshold "
        "on paper. sampling is a separate setting.",
        "enum": [*PRESETS],
    }
    for base, names in _INHERITED.items():
        for key, shared in TypeAdapter(base).json_schema()["properties"].items():
            for name in names:
                tables[name]["properties"][key].setdefault("description", shared["description"])
    for name in _INHERITED[Endpoint]:
        defaults = SECTIONS[name.lower()]()
        tables[name]["properties"]["parameters"]["default"] = dict(defaults.parameters)
    for key, threshold in tables["Thresholds"]["properties"].items():
        threshold["description"] = tables["Policy"]["properties"][key]["description"]
    properties = tables["Contamination"]["properties"]
    for key in LISTABLE:
        node = properties[key]
        properties[key] = {
            "description": f"{node.pop('description')} A list makes several blends.",
            "anyOf": [node, {"type": "array", "items": node}],
        }
    for old, new in RENAMED.items():
        section, key = old.split(".")
        table = tables[SECTIONS[section].__name__]["properties"]
        table[key] = {"description": f"Now called {new}.", "deprecated": True}
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    schema["required"] = ["evals", "corpus"]
    return schema


def _plain(node: Any) -> Any:
    """Return a schema without generated titles, null defaults, and texts for error messages."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    left_out = {"expected"} | ({"title"} if isinstance(node.get("title"), str) else set())
    left_out |= {"default"} if node.get("default", 0) is None else set()
    return {key: _plain(value) for key, value in node.items() if key not in left_out}


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json.dumps(config_schema(), indent=1) + "\n", encoding="utf-8")
