"""Recipes from the task files of lm-evaluation-harness: `lm_eval/tasks/**/*.yaml`.

A task may name a function that changes its rows before they become questions. Row filters change no
columns, and a map that writes out fields is read as these fields.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from decon_core.benchmarks.parse import YAML_LOADER
from decon_core.features.importers.benchmark import Files, ImportedBenchmark, Origin, Source, Task
from decon_core.features.importers.functions import (
    Function,
    Module,
    NotPlainError,
    Reader,
    columns_read,
)
from decon_core.features.importers.questions import draft
from decon_core.features.importers.templates import template_value
from decon_core.features.importers.values import (
    ROW,
    Computed,
    Constant,
    Fields,
    Items,
    Value,
    computed_by,
)

_REGISTRY = "lm-evaluation-harness"
_SPLITS = ("training_split", "validation_split", "test_split", "fewshot_split")
_TASK_KEYS = frozenset({"dataset_path", "custom_dataset", "class", "doc_to_text"})
_LOADERS = frozenset(
    ["json", "csv", "parquet", "text", "arrow", "imagefolder", "audiofolder", "webdataset"]
)
# Keys of tasks whose rows are no published texts, and why a recipe cannot read them.
_REFUSED = {
    "class": "Python code creates the rows",
    "custom_dataset": "Python code creates the rows",
    "use_prompt": "the prompt comes from promptsource",
    "doc_to_image": "the rows are images or audio",
    "doc_to_audio": "the rows are images or audio",
}
_UNREADABLE = "a file that cannot be read"  # key of a task: its value has the file and the reason
_NOT_PLAIN = "process_docs is neither a row filter nor a plain map"
_FUNCTION = "a function builds the question"


@dataclass(frozen=True)
class _Function:
    """`!function module.name`, relative to the folder of the file that has it."""

    folder: str
    name: str


class _Loader(YAML_LOADER):  # type: ignore[misc,valid-type] # libyaml's if built
    """Reads `!function` as the name of a function."""

    folder = ""


_Loader.add_constructor("!function", lambda loader, node: _Function(loader.folder, str(node.value)))


def harness_tasks(files: Files) -> Iterator[ImportedBenchmark]:
    """Yield the tasks of all task files."""
    registry = _Registry(files)
    for name in files.names:
        if name.endswith((".yaml", ".yml")) and posixpath.basename(name) != "eval.yaml":
            for task in registry.tasks(name):
                yield registry.imported(name, task)


class _Registry:
    """Reads task files with the files that they include, and the modules that they name."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._contents: dict[str, Mapping[str, Any]] = {}
        self._modules: dict[str, Module] = {}
        self._rows: dict[_Function, Value] = {}  # rows after a function of a dataset

    def tasks(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the tasks of a file: itself, or those written out in a group."""
        content = self._content(name)
        listed = content.get("task")
        if isinstance(listed, list):
            inline = [task for task in listed if isinstance(task, dict) and _TASK_KEYS & {*task}]
            return [self._with_included(name, task) for task in inline]
        is_task = "task" in content and bool(_TASK_KEYS & {*content})
        is_broken = _UNREADABLE in content and "dataset_path:" in (self._files.text(name) or "")
        return [content] if is_task or is_broken else []

    def _content(self, name: str) -> Mapping[str, Any]:
        if name not in self._contents:
            self._contents[name] = {}  # ends the recursion if a file includes itself
            text = self._files.text(name)
            if text is None:
                return {_UNREADABLE: f"{name}: no such file, or none in UTF-8"}
            loader = _Loader(text)
            loader.folder = posixpath.dirname(name)
            try:
                content = loader.get_single_data()
            except yaml.YAMLError as error:
                content = {_UNREADABLE: f"{name}: {error}".partition("\n")[0]}
            known = content if isinstance(content, dict) else {}
            self._contents[name] = self._with_included(name, known)
        return self._contents[name]

    def _with_included(self, name: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the keys of a file over those of the files that it includes."""
        merged: dict[str, Any] = {}
        included = content.get("include") or ()
        for other in [included] if isinstance(included, str) else included:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), str(other)))
            inherited = self._content(path)
            merged |= {key: inherited[key] for key in inherited if key != "task_list"}
        return merged | {key: content[key] for key in content if key != "include"}

    def imported(self, name: str, task: Mapping[str, Any]) -> ImportedBenchmark:
        """Return a task as a benchmark."""
        task_name = str(task.get("task") or posixpath.basename(name).partition(".")[0])
        origin = Origin(registry=_REGISTRY, file=name, tasks=(task_name,))
        declared = Task(name=task_name, origin=origin, source=_source(task))
        if refusal := _refusal(task, declared.source):
            return declared.refused(*refusal)
        row = self._changed_row(task)
        has_query = bool(task.get("should_decontaminate"))
        query = self._value(task, "doc_to_decontamination_query", ROW) if has_query else None
        is_query_plain = query is not None and not computed_by(query)
        if isinstance(row, Computed) and not is_query_plain:
            return declared.guessed(row.reads, _NOT_PLAIN, f"{task['process_docs'].name}: {row.by}")
        question = self._value(task, "doc_to_text", row)
        is_function = isinstance(task.get("doc_to_text"), _Function)
        if is_function and isinstance(question, Computed) and not is_query_plain:
            return declared.guessed(question.reads, _FUNCTION, f"doc_to_text: {question.by}")
        if isinstance(
            row, Computed
        ):  # the columns of the templates may not be those of the dataset
            done = draft(query or Constant(""), None)
            done.doubts.append((_NOT_PLAIN, task["process_docs"].name))
        else:
            target = self._value(task, "doc_to_target", row)
            choices = self._value(task, "doc_to_choice", row)
            done = draft(question or Constant(""), target, choices, query)
        if (task.get("dataset_kwargs") or {}).get("trust_remote_code"):
            done.doubts.append(("a loading script creates the rows", "trust_remote_code"))
        return declared.benchmark(done, _shown(task.get("doc_to_text")))

    def _value(self, task: Mapping[str, Any], key: str, row: Value) -> Value | None:
        """Return what a key of a task yields for a row."""
        match task.get(key):
            case None:
                return None
            case _Function() as function:
                return self._module(function).returned(function.name.rpartition(".")[2], row)
            case str() as text:
                return template_value(text, row)
            case list() as texts:
                return Items(tuple(_choice_text(text, row) for text in texts))
            case dict() as choices:
                return Items(tuple(_choice_text(text, row) for text in choices.values()))
            case value:
                return Constant(value)

    def _module(self, function: _Function) -> Module:
        path = "/".join(function.name.split(".")[:-1])
        beside, absolute = posixpath.join(function.folder, f"{path}.py"), f"{path}.py"
        if beside not in self._modules:
            source = self._files.text(beside) or self._files.text(absolute) or ""
            self._modules[beside] = Module.parsed(source)
        return self._modules[beside]

    def _changed_row(self, task: Mapping[str, Any]) -> Value:
        function = task.get("process_docs")
        if not isinstance(function, _Function):
            return ROW
        if function not in self._rows:
            name = function.name.rpartition(".")[2]
            self._rows[function] = changed_row(self._module(function), name)
        return self._rows[function]


def _refusal(task: Mapping[str, Any], source: Source) -> tuple[str, str] | None:
    """Return why the rows of a task are none that a recipe reads, with the detail."""
    if _UNREADABLE in task:
        return "a file of the task cannot be read", str(task[_UNREADABLE])
    for key, reason in _REFUSED.items():
        if task.get(key):
            return reason, f"{key}: {_shown(task[key])}"
    if task.get("output_type") == "loglikelihood_rolling":
        return "the task measures the perplexity of whole texts", ""
    has_files = {"data_files", "data_dir"} & set(task.get("dataset_kwargs") or {})
    if not source.hf_path or source.hf_path in _LOADERS or has_files:
        return "the rows are not in a dataset on the hub", f"dataset_path: {source.hf_path}"
    return None if source.splits else ("no split is named", "")


def _choice_text(text: object, row: Value) -> Value:
    is_template = isinstance(text, str) and ("{{" in text or "{%" in text)
    return template_value(str(text), row) if is_template else Constant(text)


def _source(task: Mapping[str, Any]) -> Source:
    splits = dict.fromkeys(str(task[key]).partition("[")[0] for key in _SPLITS if task.get(key))
    kwargs = task.get("dataset_kwargs") or {}
    return Source(
        hf_path=str(task.get("dataset_path") or ""),
        hf_config=str(task.get("dataset_name") or ""),
        hf_revision=str(kwargs.get("revision") or ""),
        splits=tuple(splits),
    )


def _shown(value: object) -> str:
    text = value.name if isinstance(value, _Function) else str(value)
    return f"{text[:60]}…" if len(text) > 60 else text


# Methods of a dataset after which its columns are the same.
_KEEPS_COLUMNS = frozenset(
    ["filter", "select", "sort", "shuffle", "remove_columns", "select_columns", "cast"]
)


def changed_row(module: Module, name: str) -> Value:
    """Return the fields of a row after a function of a dataset; `Computed` if they are unknown."""
    function = module.function(name) or _generated(module)
    if function is None:
        return Computed("its module does not define it")
    try:
        return _Docs(module.within(function), function).returned()
    except NotPlainError as error:
        return Computed(str(error), columns_read(function))


def _generated(module: Module) -> Function | None:
    """Return the only function behind names that a module makes with `globals().update(…)`."""
    generates = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "globals"
        for node in ast.walk(module.tree)
    )
    partials = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(
                func=ast.Name(id="partial") | ast.Attribute(attr="partial"),
                args=[ast.Name(id=name), *_],
            ):
                partials.add(name)
    return module.function(min(partials)) if generates and len(partials) == 1 else None


class _Docs:
    """Follows a dataset through the statements of a function."""

    def __init__(self, module: Module, function: Function, rows: Value = ROW) -> None:
        self._module, self._function = module, function
        self._rows: dict[str, Value] = {name.arg: rows for name in function.args.args[:1]}

    def returned(self) -> Value:
        if isinstance(self._function, ast.Lambda):
            return self._rows_of(self._function.body)
        for statement in self._function.body:
            match statement:
                case ast.Return(value=value) if value is not None:
                    return self._rows_of(value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value)
                case ast.FunctionDef() | ast.Expr(value=ast.Constant()) | ast.ImportFrom():
                    pass
                case ast.Import() | ast.Assert():
                    pass
                case _:
                    raise NotPlainError(f"`{type(statement).__name__.lower()}`")
        raise NotPlainError("it returns nothing")

    def _assign(self, name: str, value: ast.expr) -> None:
        try:
            self._rows[name] = self._rows_of(value)
        except NotPlainError:
            if name in self._rows:
                raise

    def _rows_of(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name) if name in self._rows:
                return self._rows[name]
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _KEEPS_COLUMNS:
                return self._rows_of(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="map"), args=[function, *_]):
                return self._mapped(function, self._rows_of(inner))
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if (
                called := self._module.function(name)
            ) and not isinstance(called, ast.Lambda):
                before = self._rows_of(inner)
                return _Docs(self._module.within(called), called, before).returned()
        raise NotPlainError(f"`{ast.unparse(node)[:60]}`")

    def _mapped(self, node: ast.expr, before: Value) -> Value:
        function: Function | None = None
        match node:
            case ast.Lambda():
                function = node
            case ast.Name(id=name) | ast.Call(args=[ast.Name(id=name), *_]):
                function = self._module.function(name)
        if function is None:
            raise NotPlainError(f"`{ast.unparse(node)[:60]}`")
        mapped = self._fields(Reader(self._module.within(function)).call(function, [before]))
        return Fields(mapped.fields, before if mapped.rest is None else mapped.rest)

    def _fields(self, value: Value) -> Fields:
        if isinstance(value, Fields):
            return value
        if value == ROW:
            return Fields({}, ROW)
        by = value.by if isinstance(value, Computed) else "no object with fields"
        raise NotPlainError(by if not isinstance(value, Constant) else "no object with fields")
