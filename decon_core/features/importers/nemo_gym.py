"""Recipes from NeMo Gym's `benchmarks/NAME/prepare.py`, which write tasks from published rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from decon_core.features.importers.benchmark import ImportedBenchmark, Origin, Source, Task
from decon_core.features.importers.files import Files
from decon_core.features.importers.functions import Module, NotPlainError, Reader
from decon_core.features.importers.questions import draft
from decon_core.features.importers.values import ROW, Constant, Fields, text_of

_REGISTRY = "NeMo Gym"
_SOURCE_KEYS = ("path", "name", "split", "revision")
_QUESTION = ("question", "problem", "prompt", "query", "instruction")
_ANSWER = ("expected_answer", "answer", "target", "solution", "reference_answer")
_CHOICES = ("options", "choices")


def gym_benchmarks(files: Files) -> Iterator[ImportedBenchmark]:
    """Yield the benchmarks of all folders with a `prepare.py`."""
    for name in files.names:
        path = (files.root.absolute() / name).parts
        if path[-1] == "prepare.py" and "benchmarks" in path:
            origin = Origin(registry=_REGISTRY, file=name, tasks=(path[-2],))
            yield _imported(files.text(name) or "", Task(name=path[-2], origin=origin))


def _imported(source_text: str, task: Task) -> ImportedBenchmark:
    module = Module.parsed(source_text)
    if module.error:
        return task.refused("the file is not Python", module.error)
    sources = list(dict.fromkeys(_sources(module)))
    if len(sources) != 1:
        count = "several data sets are read" if sources else "no data set on the hub is read"
        return task.refused(count, ", ".join(source.hf_path for source in sources))
    (source,) = sources
    task = replace(task, source=source)
    if not source.hf_path or not source.splits:
        return task.refused("data set or split are not literals", "load_dataset")
    rows = list(_rows(module))
    if not rows:
        return task.refused("no row with a question is written as a literal")
    fields = rows[0].fields
    question, answer, choices = (
        next((fields[key] for key in keys if key in fields), None)
        for keys in (_QUESTION, _ANSWER, _CHOICES)
    )
    return task.benchmark(draft(question or Constant(""), answer, choices))


def _sources(module: Module) -> Iterator[Source]:
    """Yield what calls of `load_dataset` read."""
    reader = Reader(module)
    for call in ast.walk(module.tree):
        match call:
            case ast.Call(func=ast.Name(id="load_dataset") | ast.Attribute(attr="load_dataset")):
                keys = ("path", "name")
                given = dict(zip(keys, call.args, strict=False))
                given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
                values = {key: reader.value(given[key]) for key in _SOURCE_KEYS if key in given}
                texts = {key: text_of(value) for key, value in values.items()}
                is_literal = all(isinstance(value, Constant) for value in values.values())
                split = texts.get("split", "").partition("[")[0]
                yield Source(
                    hf_path=texts.get("path", ""),
                    hf_config=texts.get("name", ""),
                    hf_revision=texts.get("revision", ""),
                    splits=(split,) if split and is_literal else (),
                )


def _rows(module: Module) -> Iterator[Fields]:
    """Yield the objects with a question that loops and functions make of a row."""
    for node in ast.walk(module.tree):
        match node:
            case ast.For(target=ast.Name(id=row), body=body):
                yield from _objects(Reader(module, {row: ROW}), body)
            case ast.For(target=ast.Tuple(elts=[_, ast.Name(id=row)]), body=body):
                yield from _objects(Reader(module, {row: ROW}), body)
            case ast.FunctionDef(args=ast.arguments(args=[argument, *_]), body=body):
                yield from _objects(Reader(module, {argument.arg: ROW}), body)


def _objects(reader: Reader, statements: list[ast.stmt]) -> Iterator[Fields]:
    for statement in statements:
        if not isinstance(statement, ast.For | ast.FunctionDef):
            for node in ast.walk(statement):
                if isinstance(node, ast.Dict) and _has_question(node):
                    value = reader.value(node)
                    if isinstance(value, Fields):
                        yield value
        try:
            reader.run([statement])
        except NotPlainError:
            continue


def _has_question(node: ast.Dict) -> bool:
    keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return bool(keys & {*_QUESTION}) and bool(keys & {*_ANSWER, *_CHOICES})
