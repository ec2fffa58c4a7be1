"""Recipes from lighteval's tasks, as far as its Python declares them: `LightevalTaskConfig(…)`."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping
from itertools import product

from decon_core.features.importers.benchmark import Files, ImportedBenchmark, Origin, Source, Task
from decon_core.features.importers.functions import Module, NotPlainError, Reader
from decon_core.features.importers.questions import Draft, as_text, draft
from decon_core.features.importers.values import (
    ROW,
    Column,
    Computed,
    Constant,
    Fields,
    Items,
    Value,
    columns_of,
    joined,
    text_of,
)

_REGISTRY = "lighteval"
_CONFIG = "LightevalTaskConfig"
_LITERALS = ("name", "hf_repo", "hf_subset", "hf_revision")
_NONE = Constant(None)
_SPLITS = ("hf_avail_splits", "evaluation_splits", "few_shots_split")
_MAX_TASKS = 1000  # tasks that loops make of one config
# Keys of documents, samples and adapters, by their part in a question.
_QUESTION = (
    "query", "input", "ctx", "ctx_a", "ctx_b", "context", "premise", "question", "hypothesis",
    "text", "source_text",
)  # fmt: skip
_CHOICES = ("choices", "continuations")
_CORRECT = ("gold_index", "gold_idx", "target", "target_text", "answer")


def lighteval_tasks(files: Files) -> Iterator[ImportedBenchmark]:
    """Yield the tasks of all modules with configs."""
    for name in files.names:
        source = files.text(name) or "" if name.endswith(".py") else ""
        if f"{_CONFIG}(" in source:
            module = Module.parsed(source)
            if module.error:
                task = Task(name=name, origin=Origin(registry=_REGISTRY, file=name))
                yield task.refused("the file is not Python", module.error)
            for call, loops in _configs(module.tree, ()):
                for names in _rounds(module, loops):
                    yield _imported(module, call, names, name)


Loop = tuple[ast.expr, ast.expr]


def _configs(node: ast.AST, loops: tuple[Loop, ...]) -> Iterator[tuple[ast.Call, tuple[Loop, ...]]]:
    """Yield the calls that make configs, with the loops around each."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name == _CONFIG:
            yield node, loops
        case ast.For():
            loops = (*loops, (node.target, node.iter))
        case ast.ListComp():
            loops = (*loops, *((loop.target, loop.iter) for loop in node.generators))
    for child in ast.iter_child_nodes(node):
        yield from _configs(child, loops)


def _rounds(module: Module, loops: tuple[Loop, ...]) -> Iterator[Mapping[str, Value]]:
    """Yield the variables of each round of loops over lists of constants."""
    names: list[str] = []
    values: list[tuple[Value, ...]] = []
    for target, iterated in loops:
        listed = Reader(module).value(iterated)
        if isinstance(target, ast.Name) and isinstance(listed, Items):
            names.append(target.id)
            values.append(
                listed.items if all(isinstance(i, Constant) for i in listed.items) else ()
            )
    values = [items or (Computed(name),) for name, items in zip(names, values, strict=True)]
    for number, chosen in enumerate(product(*values)):
        if number < _MAX_TASKS:
            yield dict(zip(names, chosen, strict=True))


def _imported(
    module: Module, call: ast.Call, names: Mapping[str, Value], file: str
) -> ImportedBenchmark:
    reader = Reader(module, names)
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    values = {key: reader.value(given[key]) for key in (*_LITERALS, *_SPLITS) if key in given}
    source = _source(values)
    module_name = posixpath.basename(file).removesuffix(".py")
    if module_name in ("main", "__init__"):
        module_name = posixpath.basename(posixpath.dirname(file))
    named = text_of(values.get("name"))
    task_name = named or "_".join(filter(None, (module_name, source.hf_config)))
    origin = Origin(registry=_REGISTRY, file=file, tasks=(task_name,))
    task = Task(name=task_name, origin=origin, source=source)
    computed = [key for key in _LITERALS[1:] if not isinstance(values.get(key, _NONE), Constant)]
    if computed or not source.hf_path or not source.splits:
        detail = f"{', '.join(computed) or 'splits'}, line {call.lineno}"
        return task.refused("dataset, config or splits are not literals", detail)
    reasons, drafts, columns = [], [], list[str]()
    for key in ("prompt_function", "sample_fields"):
        if key in given:
            document = _document(module, reader, given[key])
            if isinstance(document, Computed):
                columns += document.reads
                done = Draft(refusal=document.by)
            else:
                done = _draft(document)
            reasons.append(f"{ast.unparse(given[key])[:50]}: {done.refusal}")
            drafts += [] if done.refusal else [done]
    if not drafts:
        reason = "the prompt function is not plain"
        return task.guessed(dict.fromkeys(columns), reason, "; ".join(reasons))
    return task.benchmark(min(drafts, key=lambda done: len(done.doubts)))


def _source(values: Mapping[str, Value]) -> Source:
    path, config, revision = (text_of(values.get(key)) for key in _LITERALS[1:])
    splits = [split for key in _SPLITS if key in values for split in _texts(values[key])]
    return Source(
        hf_path=path,
        hf_config=config,
        hf_revision=revision,
        splits=tuple(dict.fromkeys(splits)),
    )


def _texts(value: Value) -> list[str]:
    items = value.items if isinstance(value, Items) else (value,)
    return [text for text in map(text_of, items) if text]


def _document(module: Module, reader: Reader, function: ast.expr) -> Fields | Computed:
    """Return the document that a prompt function makes of a row, or that an adapter describes."""
    match function:
        case ast.Name(id=name):
            made = module.returned(name)
            if isinstance(made, Fields):
                return made
            return made if isinstance(made, Computed) else Computed("no document")
        case ast.Call(args=arguments, keywords=keywords):
            for argument in (*arguments, *(keyword.value for keyword in keywords)):
                fields = _adapted(module, reader, argument)
                if fields is not None:
                    return fields
    return Computed("a computed function")


def _adapted(module: Module, reader: Reader, adapter: ast.expr) -> Fields | None:
    try:
        match adapter:
            case ast.Lambda():
                made = reader.call(adapter, [ROW])
            case ast.Name(id=name) if module.function(name) is not None:
                made = module.returned(name)
            case ast.Dict():  # {"question": "column"}
                made = reader.value(adapter)
                if isinstance(made, Fields):
                    made = Fields({key: Column(text_of(made.fields[key])) for key in made.fields})
            case _:
                return None
    except NotPlainError:
        return None
    return made if isinstance(made, Fields) else None


def _draft(document: Fields) -> Draft:
    """Return the fields of a recipe for a document, a sample or the result of an adapter."""
    fields = document.fields
    shown = [fields[key] for key in _QUESTION if key in fields]
    passages = columns_of(fields.get("context")) if "question" in fields else ()
    if passages:
        shown = [fields["question"]]
    spaced = [part for value in shown for part in (value, Constant("\n"))][:-1]
    choices = next((fields[key] for key in _CHOICES if key in fields), None)
    correct = next((fields[key] for key in _CORRECT if key in fields), None)
    if correct is None and choices is not None and "question" in fields:
        correct, choices = choices, None  # the choices of a `qa` adapter are its answers
    done = draft(joined(spaced), correct, choices)
    if passages and "prompt" in done.fields:
        done.fields["passage"] = as_text(passages)
    return done
