"""Read the functions of a Python module in its syntax tree. Nothing is imported or run.

A function is read if it only assigns values and returns one. Of all others, only the columns that
they read are known.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decon_core.features.importers.values import (
    COUNTER,
    LETTER_CONSTANTS,
    ROW,
    Chosen,
    Column,
    Computed,
    Constant,
    Fields,
    Items,
    Part,
    Value,
    added,
    called,
    computed,
    either,
    element,
    is_constant,
    joined,
    subtracted,
)

Function = ast.FunctionDef | ast.Lambda
_IGNORED = (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Pass, ast.Assert)
_MODULES = frozenset({"re", "json", "random", "np", "datasets", "ast"})


class NotPlainError(Exception):
    """A function has statements that are more than assignments and a returned value."""


@dataclass
class Module:
    """A module of a registry: its functions, and the names assigned in it."""

    functions: dict[str, Function] = field(default_factory=dict)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    error: str = ""

    @classmethod
    def parsed(cls, source: str) -> Module:
        """Parse the source of a module; one with an error of syntax has no functions."""
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            return cls(error=str(error))
        module = cls(tree=tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                module.functions.setdefault(node.name, node)
        for statement in tree.body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    module.assigned[name] = value
        return module

    def function(self, name: str) -> Function | None:
        """Return a function: as defined, or the first argument of a `partial`."""
        if name in self.functions:
            return self.functions[name]
        match self.assigned.get(name):
            case ast.Call(args=[ast.Name(id=inner), *_]) as call if _called_name(call) == "partial":
                return self.function(inner) if inner != name else None
        return None

    def within(self, function: Function) -> Module:
        """Return the module as a function sees it: with the functions defined in its body."""
        body = [] if isinstance(function, ast.Lambda) else function.body
        inner: dict[str, Function] = {
            node.name: node for node in body if isinstance(node, ast.FunctionDef)
        }
        return replace(self, functions=self.functions | inner) if inner else self

    def returned(self, name: str, row: Value = ROW) -> Value:
        """Return what a function of a row returns; `Computed` if it does more than that."""
        function = self.function(name)
        if function is None:
            return Computed(f"{name}, which is not in its module")
        try:
            result = Reader(self).call(function, [row])
        except NotPlainError as error:
            return Computed(f"{name} ({error})", columns_read(function) if row == ROW else ())
        return Computed(name, result.reads) if isinstance(result, Computed) else result


def columns_read(function: ast.AST) -> tuple[str, ...]:
    """Return the names in `row["name"]` and `row.get("name")`, in the order of the text."""
    names: dict[str, None] = {}
    for node in ast.walk(function):
        match node:
            case (
                ast.Subscript(ast.Name(), ast.Constant(value=str(name)), ast.Load())
                | ast.Call(
                    func=ast.Attribute(value=ast.Name(), attr="get"),
                    args=[ast.Constant(value=str(name)), *_],
                )
            ):
                names[name] = None
    return tuple(names)


def _called_name(call: ast.Call) -> str:
    """Return the last name of what is called: `partial` for `functools.partial(…)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


class Reader:
    """Reads expressions and statements of a module, with the values of their variables."""

    def __init__(self, module: Module, names: Mapping[str, Value] | None = None) -> None:
        self._module, self.names = module, dict(names or {})

    def call(self, function: Function, arguments: Sequence[Value]) -> Value:
        """Return what a function returns for arguments; others have their defaults."""
        parameters = [*function.args.posonlyargs, *function.args.args]
        defaults = [self.value(default) for default in function.args.defaults]
        names: dict[str, Value] = {parameter.arg: Constant("") for parameter in parameters}
        names |= {p.arg: value for p, value in zip(parameters[::-1], defaults[::-1], strict=False)}
        names |= {p.arg: value for p, value in zip(parameters, arguments, strict=False)}
        reader = Reader(self._module.within(function), names)
        if isinstance(function, ast.Lambda):
            return reader.value(function.body)
        for statement in function.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                return reader.value(statement.value)
            reader.follow(statement)
        raise NotPlainError("it returns nothing")

    def follow(self, statement: ast.stmt) -> None:
        """Follow a statement that assigns; raise `NotPlainError` if it does anything else."""
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.value(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                self.names[name] = added(self.names.get(name, Constant("")), self.value(value))
            case ast.Expr(value=ast.Constant()):
                pass
            case _ if not isinstance(statement, _IGNORED):
                what = type(statement).__name__.lower()
                raise NotPlainError(f"`{what}` on line {statement.lineno}")

    def _assign(self, target: ast.expr, value: Value) -> None:
        """Set a name, or a field of the object that a name holds."""
        match target:
            case ast.Name(id=name):
                self.names[name] = value
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)):
                before = self.names.get(name, ROW)
                old, rest = (
                    (before.fields, before.rest) if isinstance(before, Fields) else ({}, before)
                )
                self.names[name] = Fields({**old, key: value}, rest)
            case _:
                raise NotPlainError(f"an assignment on line {target.lineno}")

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        match node:
            case ast.Constant(value=value):
                return Constant(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Subscript(value=inner, slice=ast.Slice()):
                whole = self.value(inner)
                return whole if isinstance(whole, Constant | Items) else Part(whole)
            case ast.Subscript(value=inner, slice=key):
                return element(self.value(inner), self.value(key))
            case ast.JoinedStr(values=parts):
                return joined(map(self.value, parts))
            case ast.FormattedValue(value=inner):
                return self.value(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return added(self.value(left), self.value(right))
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return subtracted(self.value(left), self.value(right))
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return Items(tuple(map(self.value, elements)))
            case ast.Dict(keys=keys, values=values):
                return self._object(keys, values)
            case ast.IfExp(body=body, orelse=orelse):
                return either("a condition", self.value(body), self.value(orelse))
            case ast.ListComp(generators=[_]) | ast.GeneratorExp(generators=[_]):
                return self._listed(node)
            case ast.Call():
                return self._call(node)
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return computed(f"a {type(node).__name__.lower()}", *map(self.value, children))

    def _listed(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        (loop,) = node.generators
        names = self.names | _in_loop(loop.target, self.value(loop.iter))
        return Reader(self._module, names).value(node.elt)

    def _object(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> Value:
        names = [key.value for key in keys if isinstance(key, ast.Constant)]
        if len(names) < len(keys):
            return computed("an object with computed keys", *map(self.value, values))
        return Fields(dict(zip(map(str, names), map(self.value, values), strict=True)))

    def _named(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        match self._module.assigned.get(name):
            case ast.Constant() | ast.List() | ast.Tuple() | ast.Dict() as assigned:
                return Reader(self._module).value(assigned)
        return LETTER_CONSTANTS.get(name, Computed(name))

    def _call(self, call: ast.Call) -> Value:
        given = [self.value(argument) for argument in call.args]
        keywords = {key.arg: self.value(key.value) for key in call.keywords if key.arg}
        values, name = [*given, *keywords.values()], _called_name(call)
        if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
            return called(name, self.value(call.func.value), values)
        match name:
            case "range":
                return COUNTER
            case "enumerate":
                return Items((COUNTER, *given))
            case "zip":
                return Items(tuple(given))
        if (function := self._module.function(name)) is not None:
            columns = columns_read(function) if ROW in values else ()
            return computed(f"{name}(…)", *values, *map(Column, columns))
        if keywords and name[:1].isupper():  # Doc(query=…, choices=…)
            return Fields(keywords)
        return called(name, values[0], values[1:]) if values else computed(f"{name}(…)")


def _in_loop(target: ast.expr, iterated: Value) -> dict[str, Value]:
    """Return the names of a loop; an element of a column is written as the column."""
    if isinstance(target, ast.Name):
        return {target.id: Chosen(iterated, COUNTER) if is_constant(iterated) else iterated}
    targets = target.elts if isinstance(target, ast.Tuple) else ()
    values = iterated.items if isinstance(iterated, Items) else [iterated] * len(targets)
    names: dict[str, Value] = {}
    for inner, value in zip(targets, values, strict=False):
        names |= _in_loop(inner, value)
    return names


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in _MODULES
