"""What a Python program computes from what: features that names, order and layout do not change.

A program becomes operations (calls, operators, constants, loops) and the operations whose results
they take, through any number of variables. A temporary variable, another order of independent
statements, or another name changes nothing; neither do a counting `while` instead of `for`, an
index instead of an element, a comprehension instead of a loop that appends, annotations, comments
and docstrings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from decon_core.text.code_form import parsed, standard_names

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.Gt: "<",
    ast.LtE: "<=",
    ast.GtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
}
_SWAPPED = (ast.Gt, ast.GtE)  # a > b is b < a
_UNORDERED = frozenset("+*&|^") | {"==", "!="}
_UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.UAdd: "positive",
    ast.Not: "not",
    ast.Invert: "~",
}

_COMPREHENSIONS: dict[type[ast.expr], str] = {
    ast.ListComp: "append",
    ast.SetComp: "add",
    ast.GeneratorExp: "generate",
    ast.DictComp: "[]=",
}

# Methods after which a variable holds something else.
_GROWING = ("append", "extend", "add", "update", "insert", "setdefault")
_CHANGING = frozenset((*_GROWING, "pop", "sort", "remove", "reverse", "discard", "clear"))

# Imports may be far from the function that needs them.
_WITHOUT_EFFECT = (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)

_MOST_WRITES = 6  # writes of a variable that are followed
_LONGEST_CONSTANT = 40


class _Variable(NamedTuple):
    scope: int
    name: str


_Operand = int | _Variable  # the number of an operation, or what a variable holds
_Input = tuple[str, _Operand]  # its role


class _Operation(NamedTuple):
    label: str
    inputs: tuple[_Input, ...]


def features(program: str) -> frozenset[str] | None:
    """Return the features of a program; None if it is not Python."""
    if (tree := parsed(program)) is None:
        return None
    try:
        return frozenset(_Reader(tree).features())
    except RecursionError:
        return None


class _Reader(ast.NodeVisitor):
    """Reads statements and expressions; an expression returns its operand."""

    def __init__(self, tree: ast.Module) -> None:
        self._names = standard_names()
        self._operations: list[_Operation] = []
        self._writes: dict[_Variable, list[_Operand]] = {}
        self._parents = [-1]  # the enclosing scope of each scope
        self._scope = 0
        self._read_all(tree.body)

    def features(self) -> Iterator[str]:
        """Yield operations, what they take, what that takes, and pairs of what they take."""
        # An index that counts through a sequence is an element of it.
        operations = [
            _Operation("each", (("", operation.inputs[0][1]),))
            if self._is_element(operation)
            else operation
            for operation in self._operations
        ]
        taken = [
            [(role, other) for role, operand in inputs for other in self._written(operand)]
            for _, inputs in operations
        ]
        for operation, inputs in zip(operations, taken, strict=True):
            yield operation.label
            named = [f"{role}:{operations[other].label}" for role, other in inputs]
            for (_, other), name in zip(inputs, named, strict=True):
                yield f"{operation.label} <- {name}"
                for role, third in taken[other]:
                    yield f"{operation.label} <- {name} <- {role}:{operations[third].label}"
            for at, name in enumerate(named):
                for other_name in named[at + 1 :]:
                    yield " & ".join([operation.label, *sorted((name, other_name))])

    # Operations and variables --------------------------------------------------------------------

    def _add(self, label: str, *inputs: _Input) -> int:
        self._operations.append(_Operation(label, inputs))
        return len(self._operations) - 1

    def _of(self, node: ast.expr | None) -> _Operand:
        operand: _Operand = self._add("None") if node is None else self.visit(node)
        return operand

    def _write(self, target: ast.expr, value: _Operand) -> None:
        if isinstance(target, ast.Name):
            self._writes.setdefault(_Variable(self._scope, target.id), []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._write(element, self._add("unpack", ("", value)))
        elif isinstance(target, ast.Starred):
            self._write(target.value, value)
        elif isinstance(target, ast.Subscript):
            of, at = self._of(target.value), self._of(target.slice)
            self._change(target.value, self._add("[]=", ("of", of), ("at", at), ("", value)))
        elif isinstance(target, ast.Attribute):
            self._add(".=", ("", value))

    def _change(self, target: ast.expr, operation: int) -> None:
        """Note that an operation changes what a variable holds."""
        if isinstance(target, ast.Name):
            self._write(target, operation)

    def _written(self, operand: _Operand, depth: int = 0) -> Iterator[int]:
        """Yield the operations that an operand may stand for."""
        if isinstance(operand, int):
            yield operand
            return
        scope = self._scope_of(operand)
        if scope >= 0 and depth < _MOST_WRITES:
            for value in self._writes[_Variable(scope, operand.name)][:_MOST_WRITES]:
                yield from self._written(value, depth + 1)

    def _scope_of(self, variable: _Variable) -> int:
        """Return the innermost scope that writes a variable; -1 if there is none."""
        scope = variable.scope
        while scope >= 0 and _Variable(scope, variable.name) not in self._writes:
            scope = self._parents[scope]
        return scope

    def _is_element(self, operation: _Operation) -> bool:
        if operation.label != "[]":
            return False
        reached: list[_Operand] = [operation.inputs[1][1]]
        for step in ("each", "range", "len"):
            written = [number for operand in reached for number in self._written(operand)]
            reached = [
                inputs[0][1]
                for label, inputs in (self._operations[number] for number in written)
                if label == step and len(inputs) == 1
            ]
        return bool(reached)

    # Statements ----------------------------------------------------------------------------------

    def _read_all(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not isinstance(statement, _WITHOUT_EFFECT):
                self.visit(statement)

    def generic_visit(self, node: ast.AST) -> int:
        """Read a node that has no method here: an operation on its expressions."""
        inputs = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                inputs.append(("", self._of(child)))
            elif not isinstance(child, ast.expr_context | ast.operator):
                self.visit(child)
        return self._add(type(node).__name__, *inputs)

    def _enter(self, arguments: ast.arguments | None = None) -> int:
        """Enter a scope with its parameters; return the enclosing scope."""
        before = self._scope
        self._parents.append(before)
        self._scope = len(self._parents) - 1
        if arguments:
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            for argument in (*every, arguments.vararg, arguments.kwarg):
                if argument:
                    self._writes[_Variable(self._scope, argument.arg)] = [self._add("parameter")]
        return before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before = self._enter(node.args)
        self._read_all(node.body)
        self._scope = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - named by ast

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = self._enter()
        self._read_all(node.body)
        self._scope = before

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._of(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        self._add("return", ("", self._of(node.value)))

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for element, operand in zip(targets, [*map(self._of, values)], strict=True):
                    self._write(element, operand)
            case _:
                self._write(target, self._of(value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._assign(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        before = self._of(node.target)
        match node.op, node.value:
            case ast.Add(), ast.List(elts=[element]):
                operation = self._add("append", ("of", before), ("", self._of(element)))
            case operator, value:
                operation = self._binary(operator, before, self._of(value))
        self._write(node.target, operation)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._loop_over(node.target, node.iter)
        self._read_all(node.body)
        self._read_all(node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815 - named by ast

    def _loop_over(self, target: ast.expr, iterable: ast.expr) -> None:
        match target, iterable:
            case (
                ast.Tuple(elts=[number, element]),
                ast.Call(func=ast.Name(id="enumerate"), args=[sequence]),
            ):
                of = self._of(sequence)
                counter = self._add("range", ("0", self._add("len", ("0", of))))
                self._write(number, self._add("each", ("", counter)))
                self._write(element, self._add("each", ("", of)))
            case _:
                self._write(target, self._add("each", ("", self._of(iterable))))

    def visit_While(self, node: ast.While) -> None:
        step = _step_of(node)
        if step is None:
            self._add("while", ("", self._of(node.test)))
            self._read_all(node.body)
        else:
            self._count(step)
            self._read_all([inner for inner in node.body if inner is not step.statement])
        self._read_all(node.orelse)

    def _count(self, step: _Step) -> None:
        """Read a counting loop as `for NAME in range(START, LIMIT)`."""
        limit = self._of(step.limit)
        if step.is_inclusive:
            limit = self._add("+", ("", limit), ("", self._add("constant 1")))
        variable = _Variable(self._scope, step.name)
        start = self._writes.get(variable, [0])[-1]
        is_zero = isinstance(start, int) and self._operations[start].label == "constant 0"
        inputs = [("0", limit)] if is_zero else [("0", start), ("1", limit)]
        self._writes[variable] = [self._add("each", ("", self._add("range", *inputs)))]

    def visit_If(self, node: ast.If) -> None:
        self._add("if", ("", self._of(node.test)))
        self._read_all(node.body)
        self._read_all(node.orelse)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self._add("with", ("", self._of(item.context_expr)))
            if item.optional_vars:
                self._write(item.optional_vars, value)
        self._read_all(node.body)

    visit_AsyncWith = visit_With  # noqa: N815 - named by ast

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        caught = [("", self._of(node.type))] if node.type else []
        operation = self._add("except", *caught)
        if node.name:
            self._writes.setdefault(_Variable(self._scope, node.name), []).append(operation)
        self._read_all(node.body)

    # Expressions ---------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> _Operand:
        is_standard = node.id in self._names.keywords and not self._is_variable(node)
        return self._add(node.id) if is_standard else _Variable(self._scope, node.id)

    def visit_Constant(self, node: ast.Constant) -> int:
        return self._add(f"constant {node.value!r}"[:_LONGEST_CONSTANT])

    def visit_JoinedStr(self, node: ast.JoinedStr) -> int:
        values = [value.value for value in node.values if isinstance(value, ast.FormattedValue)]
        return self._add("format", *[("", self._of(value)) for value in values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> int:
        value = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return self._add(f"constant {-value!r}"[:_LONGEST_CONSTANT])
        return self._add(_UNARY[type(node.op)], ("", self._of(node.operand)))

    def visit_BinOp(self, node: ast.BinOp) -> int:
        left, right = self._of(node.left), self._of(node.right)
        return self._binary(node.op, left, right)

    def _binary(self, operator: ast.operator, left: _Operand, right: _Operand) -> int:
        return self._of_two(_OPERATORS[type(operator)], left, right)

    def _of_two(self, label: str, left: _Operand, right: _Operand) -> int:
        roles = ("", "") if label in _UNORDERED else ("left", "right")
        return self._add(label, (roles[0], left), (roles[1], right))

    def visit_BoolOp(self, node: ast.BoolOp) -> int:
        return self._add("logic", *[("", self._of(value)) for value in node.values])

    def visit_Compare(self, node: ast.Compare) -> int:
        operands = [self._of(operand) for operand in (node.left, *node.comparators)]
        results = []
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            label, is_swapped = _COMPARISONS[type(operator)], isinstance(operator, _SWAPPED)
            first, second = (right, left) if is_swapped else (left, right)
            results.append(self._of_two(label, first, second))
        return results[0] if len(results) == 1 else self._add("logic", *[("", n) for n in results])

    def visit_Call(self, node: ast.Call) -> int:
        inputs = [(str(min(at, 2)), self._of(arg)) for at, arg in enumerate(node.args)]
        inputs += [(keyword.arg or "**", self._of(keyword.value)) for keyword in node.keywords]
        called = node.func
        if isinstance(called, ast.Name):
            is_standard = any(called.id in names for names in self._names)
            is_standard = is_standard and not self._is_variable(called)
            return self._add(called.id if is_standard else "call", *inputs)
        if not isinstance(called, ast.Attribute):
            return self._add("call", ("of", self._of(called)), *inputs)
        if self._is_module(called.value):
            return self._add(called.attr, *inputs)
        of = ("of", self._of(called.value))
        if called.attr in ("append", "add") and inputs:
            operation = self._add(called.attr, of, ("", inputs[0][1]))
        else:
            operation = self._add(f".{called.attr}", of, *inputs)
        if called.attr in _CHANGING:
            self._change(called.value, operation)
        return operation

    def _is_module(self, node: ast.expr) -> bool:
        """Return whether a name was not written before: `import` may be far from a function."""
        return isinstance(node, ast.Name) and not self._is_variable(node)

    def _is_variable(self, node: ast.Name) -> bool:
        return self._scope_of(_Variable(self._scope, node.id)) >= 0

    def visit_Attribute(self, node: ast.Attribute) -> int:
        if self._is_module(node.value):
            return self._add(node.attr)
        return self._add(f".{node.attr}", ("of", self._of(node.value)))

    def visit_Subscript(self, node: ast.Subscript) -> int:
        of = ("of", self._of(node.value))
        if not isinstance(node.slice, ast.Slice):
            return self._add("[]", of, ("at", self._of(node.slice)))
        edges = {"from": node.slice.lower, "to": node.slice.upper, "by": node.slice.step}
        given = [(role, self._of(edge)) for role, edge in edges.items() if edge]
        return self._add("[:]", of, *given)

    def visit_IfExp(self, node: ast.IfExp) -> int:
        self._add("if", ("", self._of(node.test)))
        return self._add("either", ("", self._of(node.body)), ("", self._of(node.orelse)))

    def visit_Lambda(self, node: ast.Lambda) -> _Operand:
        before = self._enter(node.args)
        value = self._of(node.body)
        self._scope = before
        return value

    def visit_NamedExpr(self, node: ast.NamedExpr) -> _Operand:
        value = self._of(node.value)
        self._write(node.target, value)
        return value

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> int:
        """Read a comprehension as the loop that does the same."""
        before = self._enter()
        for loop in node.generators:
            self._loop_over(loop.target, loop.iter)
            for test in loop.ifs:
                self._add("if", ("", self._of(test)))
        if isinstance(node, ast.DictComp):
            inputs = [("at", self._of(node.key)), ("", self._of(node.value))]
        else:
            inputs = [("", self._of(node.elt))]
        self._scope = before
        return self._add(_COMPREHENSIONS[type(node)], *inputs)

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815 - named by ast


class _Step(NamedTuple):
    """The statement that counts a variable up to a limit."""

    name: str
    statement: ast.stmt
    limit: ast.expr
    is_inclusive: bool


def _step_of(loop: ast.While) -> _Step | None:
    """Return how `while NAME < LIMIT` counts; None if it is no such loop."""
    match loop.test:
        case ast.Compare(ast.Name(name), [ast.Lt() | ast.LtE() as operator], [limit]):
            is_inclusive = isinstance(operator, ast.LtE)
            for statement in loop.body:
                if _counts(statement, name):
                    return _Step(name, statement, limit, is_inclusive)
    return None


def _counts(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement is `NAME += CONSTANT` or `NAME = NAME + CONSTANT`."""
    match statement:
        case ast.AugAssign(ast.Name(target), ast.Add(), ast.Constant()):
            return target == name
        case ast.Assign(
            [ast.Name(target), *_], ast.BinOp(ast.Name(left), ast.Add(), ast.Constant())
        ):
            return target == left == name
    return False
