"""Recipes from `eval.yaml`, in which a dataset of the Hugging Face hub declares its benchmarks.

All three dialects are read: `id` or `name`, `config` or `subset`, `split` or `splits`. The name of
the dataset is that of its two folders, or the one in the cache of the hub.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from decon_core.features.importers.benchmark import Files, ImportedBenchmark, Origin, Source, Task
from decon_core.features.importers.column_names import proposed_fields
from decon_core.features.importers.questions import Draft, as_text, draft
from decon_core.features.importers.values import Column, Constant, Items, Value

_REGISTRY = "eval.yaml"
_CACHED = re.compile(r"datasets--([^/]+)--([^/]+)/snapshots/([^/]+)$")
_REPOSITORY = re.compile(r"([^/@]+/[^/@]+)(?:@([^/]+))?$")
_AGGREGATES = ("overall", "all", "average")
# Columns that frameworks read, if their tasks name no fields.
_PATCHES = ("problem_statement", "patch", "test_patch")
_FRAMEWORKS = {
    "math-arena": ("problem", "answer"),
    "swe-bench": _PATCHES,
    "swe-bench-pro": _PATCHES,
}
_WITHOUT_ROWS = {
    **dict.fromkeys(
        ("harbor", "pier", "benchflow"), "the tasks are folders with instruction.md, not rows"
    ),
    "mteb": "queries and corpus of a retrieval set are separate tables",
    **dict.fromkeys(
        [
            "olmocr-bench",
            "screenspot-pro",
            "mdpbench",
            "real5-omnidocbench",
            "parsebench",
            "extractbench",
            "mmmu",
        ],
        "the rows are images or documents",
    ),
    "open-asr-leaderboard": "the rows are audio",
    "video-mme-v2": "the rows are videos",
}


@dataclass(frozen=True)
class _DataSet:
    """A dataset, with the columns and splits by config that its card names."""

    path: str
    revision: str
    columns: Mapping[str, Sequence[str]]
    splits: Mapping[str, Sequence[str]]


def hub_benchmarks(files: Files) -> Iterator[ImportedBenchmark]:
    """Yield the benchmarks that datasets declare."""
    for name in files.names:
        if posixpath.basename(name) == "eval.yaml":
            yield from _declared(files, name)


def _declared(files: Files, name: str) -> Iterator[ImportedBenchmark]:
    data_set = _data_set(files, name)
    label = data_set.path.rpartition("/")[2] or name
    origin = Origin(registry=_REGISTRY, file=name)
    whole = Task(name=label, origin=origin, source=Source(hf_path=data_set.path))
    try:
        content = yaml.safe_load(files.text(name) or "")
    except yaml.YAMLError as error:
        yield whole.refused("the file is not YAML", str(error).partition("\n")[0])
        return
    tasks = content.get("tasks") if isinstance(content, dict) else None
    if isinstance(content, dict) and {"title", "contributors"} & {*content}:
        task = Task(name=str(content.get("title") or label), origin=origin)
        yield task.refused("inspect_evals defines the fields in Python")
        return
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        yield whole.refused("the file lists no tasks", "tasks")
        return
    framework = str(content.get("evaluation_framework") or "")
    for task in tasks:
        yield _imported(task, framework, data_set, origin)


def _imported(
    task: Mapping[str, Any], framework: str, data_set: _DataSet, origin: Origin
) -> ImportedBenchmark:
    task_id = str(task.get("id") or task.get("name") or data_set.path.rpartition("/")[2])
    config = str(task.get("config") or task.get("subset") or "default")
    named = task.get("split") or task.get("splits") or "test"
    named = [named] if isinstance(named, str) else named
    splits = dict.fromkeys(str(split).partition("[")[0] for split in named)
    known = data_set.splits.get(config, ())
    source = Source(
        hf_path=data_set.path,
        hf_config=config,
        hf_revision=data_set.revision,
        splits=tuple(dict.fromkeys([*splits, *known])),  # training data leak from every split
    )
    declared = Task(name=task_id, origin=replace(origin, tasks=(task_id,)), source=source)
    columns = data_set.columns.get(config)
    if not data_set.path:
        return declared.refused("no dataset can be derived from the path of the file")
    absent = [split for split in splits if split not in known] if known else ()
    if absent or (not known and {*splits} & {*_AGGREGATES}):
        return declared.refused("the dataset does not have the split", ", ".join(absent or splits))
    if isinstance(task.get("field_spec"), dict):
        done = _from_fields(task)
    else:
        done = _from_framework(framework, columns)
    missing = [
        name for name in _named(done.fields) if columns and name.partition(".")[0] not in columns
    ]
    if missing:
        return declared.refused("the dataset does not have the column", ", ".join(missing))
    return declared.benchmark(done, framework)


def _from_fields(task: Mapping[str, Any]) -> Draft:
    """Return the fields that `field_spec` names."""
    spec = task["field_spec"]
    target, choices = spec.get("target"), spec.get("choices")
    options: Value | None = None
    if isinstance(choices, str):
        options = Column(choices)
    elif isinstance(choices, list):
        options = Items(tuple(Column(str(column)) for column in choices))
    answer: Value | None = None if target is None else Column(str(target))
    if isinstance(target, str) and target.startswith("literal:"):
        letter = target.split(":")[1].strip()
        number = ord(letter.upper()) - ord("A") if len(letter) == 1 else -1
        answer = Constant(number) if options is not None and number >= 0 else None
    done = draft(Column(str(spec.get("input") or "")), answer, options)
    shown = re.findall(r"\{(\w+)\}", _templates(task))
    passages = [str(name) for name in spec.get("metadata") or () if name in shown]
    if passages and not done.refusal:
        done.fields["passage"] = as_text(passages)
    if options is None and answer is not None and "math" in _names(task.get("scorers")):
        done.fields["answers"] = [str(target), {"field": str(target), "transform": "after_marker"}]
        done.doubts.append(("a solution may precede the answer", str(target)))
    if spec.get("input_image"):
        done.doubts.append(
            (
                "in rows with an image, the text is only part of the question",
                str(spec["input_image"]),
            )
        )
    return done


def _names(listed: object) -> list[str]:
    """Return the names of solvers or scorers: texts, or objects with `name` and `args`."""
    items = listed if isinstance(listed, list) else []
    return [str(item.get("name") if isinstance(item, dict) else item) for item in items]


def _templates(task: Mapping[str, Any]) -> str:
    solvers = [solver for solver in task.get("solvers") or () if isinstance(solver, dict)]
    args = [solver.get("args") or {} for solver in solvers]
    templates = [task.get("prompt_template")] + [arg.get("template") for arg in args]
    return "\n".join(map(str, templates))


def _from_framework(framework: str, columns: Sequence[str] | None) -> Draft:
    """Return the fields that a framework reads, or those of columns with known names."""
    if framework in _WITHOUT_ROWS:
        return Draft(refusal=_WITHOUT_ROWS[framework])
    read = _FRAMEWORKS.get(framework, ())
    if read and (columns is None or {*read} <= {*columns}):
        unknown = [] if columns else [("the columns are not known", ", ".join(read))]
        return Draft(fields=proposed_fields(read) or {}, doubts=unknown)
    if columns is None:
        return Draft(refusal="no fields are declared, and the columns are not known")
    proposed = proposed_fields(columns)
    if proposed is None:
        return Draft(refusal="no column name suggests a question")
    return Draft(
        fields=proposed, doubts=[("the fields were guessed from the names of columns", "")]
    )


def _named(fields: Mapping[str, Any]) -> list[str]:
    """Return the columns that the plain fields of a recipe name."""
    values = [fields.get(key) for key in ("prompt", "passage", "solution", "tests")]
    answers = fields.get("answers") or []
    return [value for value in (*values, *answers) if isinstance(value, str)]


def _data_set(files: Files, name: str) -> _DataSet:
    folder = posixpath.dirname(f"{files.root.absolute().as_posix()}/{name}")
    path, revision = "", ""
    if cached := _CACHED.search(folder):
        path, revision = f"{cached[1]}/{cached[2]}", cached[3]
    elif found := _REPOSITORY.search(folder):
        path, revision = found[1], found[2] or ""
    card = files.text(posixpath.join(posixpath.dirname(name), "README.md")) or ""
    infos = _infos(card)
    columns, splits = (
        {
            config: [str(listed.get("name")) for listed in info.get(key) or ()]
            for config, info in infos.items()
        }
        for key in ("features", "splits")
    )
    return _DataSet(path, revision, columns, splits)


def _infos(card: str) -> dict[str, Mapping[str, Any]]:
    """Return the columns and splits of each config, as the head of a card lists them."""
    parts = card.split("---", 2)
    if len(parts) < 3 or parts[0].strip():
        return {}
    try:
        head = yaml.safe_load(parts[1])
    except yaml.YAMLError:
        return {}
    listed = head.get("dataset_info") if isinstance(head, dict) else None
    infos = [listed] if isinstance(listed, dict) else listed or []
    return {
        str(info.get("config_name") or "default"): info for info in infos if info.get("features")
    }
