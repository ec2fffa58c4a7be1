"""What a function changes in the rows of a data set before they become questions.

Row filters change no columns, and a map that writes out fields is read as these fields.
"""

from __future__ import annotations

import ast

from decon_core.features.importers.functions import Function, Module, NotPlainError, Reader
from decon_core.features.importers.values import ROW, Computed, Constant, Fields, Value

# Methods of a data set after which its columns are the same.
_KEEPS_COLUMNS = frozenset(
    ["filter", "select", "sort", "shuffle", "remove_columns", "select_columns", "cast"]
)


def changed_row(module: Module, name: str) -> Value:
    """Return the fields of a row after a function of a data set; `Computed` if they are unknown."""
    function = module.function(name) or _generated(module)
    if function is None:
        return Computed("its module does not define it")
    try:
        return _Docs(module.within(function), function).returned()
    except NotPlainError as error:
        return Computed(str(error))


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
    """Follows a data set through the statements of a function."""

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
            case ast.ListComp(
                elt=result, generators=[ast.comprehension(target=ast.Name(id=name), iter=inner)]
            ):
                reader = Reader(self._module, {name: self._rows_of(inner)})
                return self._fields(reader.value(result))
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
