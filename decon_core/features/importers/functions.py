"""Read the functions of a Python module in its syntax tree. Nothing is imported or run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from decon_core.features.importers.values import (
    COUNTER,
    LETTER_CONSTANTS,
    ROW,
    Chosen,
    Computed,
    Constant,
    Fields,
    Items,
    Part,
    Value,
    added,
    called,
    computed,
    computed_by,
    either,
    element,
    is_constant,
    joined,
    subtracted,
)

Function = ast.FunctionDef | ast.Lambda
_MAX_DEPTH = 4  # depth of functions that call each other
_MAX_CHOICES = 12  # written out; the whole alphabet is no list of choices


class NotPlainError(Exception):
    """A function has statements that are more than assignments, loops and a returned value."""


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
            case ast.Lambda() as function:
                return function
            case ast.Call(args=[ast.Name(id=inner), *_]) as call if _called_name(call) == "partial":
                return self.function(inner) if inner != name else None
            case ast.Name(id=other) if other != name:
                return self.function(other)
        return None

    def _bound(self, name: str) -> Mapping[str, Value]:
        """Return the keyword arguments that a `partial` fixes."""
        match self.assigned.get(name):
            case ast.Call(keywords=keywords):
                reader = Reader(self)
                return {key.arg: reader.value(key.value) for key in keywords if key.arg}
        return {}

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
            result = Reader(self).call(function, [row], self._bound(name))
        except NotPlainError as error:
            return Computed(f"{name} ({error})")
        return Computed(name, result.reads) if isinstance(result, Computed) else result


def _called_name(call: ast.Call) -> str:
    """Return the last name of what is called: `partial` for `functools.partial(…)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


class Reader:
    """Reads expressions and statements of a module, with the values of their variables."""

    def __init__(
        self, module: Module, names: Mapping[str, Value] | None = None, depth: int = 0
    ) -> None:
        self._module, self.names, self._depth = module, dict(names or {}), depth
        self._in_loop = False

    def call(
        self,
        function: Function,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value] = MappingProxyType({}),
    ) -> Value:
        """Return what a function returns for arguments; others have their defaults."""
        parameters = [*function.args.posonlyargs, *function.args.args]
        defaults = [self.value(default) for default in function.args.defaults]
        names = dict(zip([p.arg for p in parameters[::-1]], defaults[::-1], strict=False))
        names |= {p.arg: Constant("") for p in parameters if p.arg not in names}
        names |= {p.arg: value for p, value in zip(parameters, arguments, strict=False)}
        names |= keywords
        reader = Reader(self._module.within(function), names, self._depth + 1)
        if isinstance(function, ast.Lambda):
            return reader.value(function.body)
        result = reader.run(function.body)
        if result is None:
            raise NotPlainError("it returns nothing")
        return result

    def run(self, statements: Sequence[ast.stmt]) -> Value | None:
        """Return what statements return; None if they return nothing."""
        for statement in statements:
            result = self._statement(statement)
            if result is not None:
                return result
        return None

    def _statement(self, statement: ast.stmt) -> Value | None:
        match statement:
            case ast.Return(value=value) if value is not None:
                return self.value(value)
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.value(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                self.names[name] = added(self.names.get(name, Constant("")), self.value(value))
            case ast.For(target=target, iter=iterated, body=body):
                self.bind(target, self.value(iterated))
                self._in_loop = True
                result = self.run(body)
                self._in_loop = False
                return result
            case ast.If(test=test, body=body, orelse=orelse):
                return self._condition(test, body, orelse)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr=method), args=arguments
                )
            ):
                self._mutate(name, method, arguments)
            case (
                ast.Expr(value=ast.Constant())
                | ast.FunctionDef()
                | ast.Import()
                | ast.ImportFrom()
                | ast.Pass()
                | ast.Assert()
                | ast.Break()
                | ast.Continue()
            ):
                pass
            case _:
                raise NotPlainError(
                    f"`{type(statement).__name__.lower()}` on line {statement.lineno}"
                )
        return None

    def _mutate(self, name: str, method: str, arguments: Sequence[ast.expr]) -> None:
        """Apply `choices.append(value)`; other methods hide what a name holds."""
        before, given = self.names.get(name, ROW), [self.value(value) for value in arguments]
        match method, before, given:
            case "append", Items(()), [value] if self._in_loop:
                self.names[name] = value  # an element is written as its list
            case "append", Items(items), [value] if not self._in_loop:
                self.names[name] = Items((*items, value))
            case _:
                self.names[name] = computed(f"{method}(…)", before, *given)

    def _condition(
        self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
    ) -> Value | None:
        """Read both branches: a name that they set differently is computed by a condition."""
        branches, holds = (self._copy(), self._copy()), self.value(test)
        if isinstance(holds, Constant) and isinstance(holds.value, bool):
            return self.run(body if holds.value else orelse)
        if isinstance(body[-1], ast.Raise):
            return self.run(orelse)
        results = [branch.run(part) for branch, part in zip(branches, (body, orelse), strict=True)]
        returned = [result for result in results if result is not None]
        if len(returned) == len(branches):
            return either("a condition", *returned, holds)
        if returned:
            raise NotPlainError("it returns under a condition")
        for name in {**branches[0].names, **branches[1].names}:
            values = [branch.names.get(name, Constant("")) for branch in branches]
            self.names[name] = either("a condition", *values)
        return None

    def _copy(self) -> Reader:
        copy = Reader(self._module, self.names, self._depth)
        copy._in_loop = self._in_loop
        return copy

    def assign(self, target: ast.expr, value: Value) -> None:
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

    def bind(self, target: ast.expr, iterated: Value) -> None:
        """Bind the names of a loop; an element of a column is written as the column."""
        match target:
            case ast.Name(id=name) if isinstance(iterated, Items) and not is_constant(iterated):
                self.names[name] = joined(iterated.items)
            case ast.Name(id=name) if is_constant(iterated) and not _is_single(iterated):
                self.names[name] = Chosen(iterated, COUNTER)
            case ast.Name(id=name):
                self.names[name] = iterated
            case ast.Tuple(elts=targets):
                values = iterated.items if isinstance(iterated, Items) else ()
                for number, inner in enumerate(targets):
                    self.bind(inner, values[number] if number < len(values) else iterated)

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        match node:
            case ast.Constant(value=value):
                return Constant(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(attr=name) if name in LETTER_CONSTANTS:
                return LETTER_CONSTANTS[name]
            case ast.Subscript(value=inner, slice=ast.Slice() as bounds):
                return self._slice(self.value(inner), bounds)
            case ast.Subscript(value=inner, slice=key):
                return element(self.value(inner), self.value(key))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
                return Constant(-number)
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
            case (
                ast.ListComp(elt=result, generators=[loop])
                | ast.GeneratorExp(elt=result, generators=[loop])
            ):
                return self._listed(result, loop)
            case ast.Call():
                return self._call(node)
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return computed(f"a {type(node).__name__.lower()}", *map(self.value, children))

    def _slice(self, value: Value, bounds: ast.Slice) -> Value:
        upper = None if bounds.upper is None else self.value(bounds.upper)
        match value, upper:
            case Constant(str() as letters), Constant(int() as end):
                return Constant(letters[:end])
            case ((Constant() | Items()), _):
                return value
        return Part(value)

    def _listed(self, result: ast.expr, loop: ast.comprehension) -> Value:
        """Return a list that is made in a loop: written out, if the loop is over constants."""
        iterated = self.value(loop.iter)
        rounds: Sequence[Value] = iterated.items if isinstance(iterated, Items) else ()
        if isinstance(iterated, Constant) and isinstance(iterated.value, str):
            rounds = [Constant(letter) for letter in iterated.value]
        constants = rounds if all(isinstance(item, Constant) for item in rounds) else ()
        items = []
        for value in constants if len(constants) <= _MAX_CHOICES else ():
            reader = self._copy()
            reader.assign(loop.target, value)
            items.append(reader.value(result))
        if items:
            return Items(tuple(items))
        reader = self._copy()
        reader.bind(loop.target, iterated)
        return reader.value(result)

    def _object(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> Value:
        fields: dict[str, Value] = {}
        rest: Value | None = None
        for key, value in zip(keys, values, strict=True):
            match key:
                case None:  # {**row, …}
                    rest = self.value(value)
                case ast.Constant(value=name):
                    fields[str(name)] = self.value(value)
                case _:
                    return computed("an object with computed keys", *map(self.value, values))
        return Fields(fields, rest)

    def _named(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        assigned = self._module.assigned.get(name)
        if assigned is None or self._depth > _MAX_DEPTH:
            return LETTER_CONSTANTS.get(name, Computed(name))
        return Reader(self._module, {}, self._depth + 1).value(assigned)

    def _call(self, call: ast.Call) -> Value:
        given = [self.value(argument) for argument in call.args]
        keywords = {key.arg: self.value(key.value) for key in call.keywords if key.arg}
        values, name = [*given, *keywords.values()], _called_name(call)
        if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
            return called(name, self.value(call.func.value), values)
        match name, given:
            case "ord", [Constant("A") as letter]:
                return letter
            case "range", _:
                return COUNTER
            case "enumerate", _:
                return Items((COUNTER, *given))
            case "zip", _:
                return Items(tuple(given))
        function = self._module.function(name)
        if function is not None and self._depth < _MAX_DEPTH:
            return self._inlined(function, f"{name}(…)", given, keywords)
        if keywords and name[:1].isupper():  # Doc(query=…, choices=…)
            return Fields(keywords)
        return called(name, values[0], values[1:]) if values else computed(f"{name}(…)")

    def _inlined(
        self, function: Function, by: str, given: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return what a function of the module returns, if it shows its arguments plainly."""
        try:
            result = self.call(function, given, keywords)
        except NotPlainError:
            return computed(by, *given, *keywords.values())
        return computed(by, *given, *keywords.values()) if computed_by(result) else result


_MODULES = frozenset({"re", "json", "random", "np", "datasets", "ast"})


def _is_single(value: Value) -> bool:
    return isinstance(value, Constant) and len(str(value.value)) == 1


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in _MODULES
