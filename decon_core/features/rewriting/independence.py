"""Which consecutive statements of a Python program may change places.

It follows from the names that they read and write; what may have an effect stays where it is.
Operators count as without effect, as those of numbers, strings and lists are. Of two statements
that may raise an exception the first stays the first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

# Without effect on any argument: they take nothing from an iterator.
_PURE_CALLS = frozenset({"len", "abs", "int", "float", "round", "bool", "ord", "chr", "range"})
_COMPUTED = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.Subscript,
    ast.Slice,
    ast.IfExp,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
_PLAIN = (ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.expr_context)


class _Use(NamedTuple):
    reads: frozenset[str]
    writes: frozenset[str]
    may_raise: bool


def runs_of(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield runs of two or more consecutive statements without effect but on their names.

    Not in a `try`, where the handler sees how far the statements came.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Try | ast.TryStar):
            continue
        waiting += ast.iter_child_nodes(node)
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                for is_movable, run in groupby(
                    block, key=lambda statement: _use(statement) is not None
                ):
                    if is_movable and len(statements := list(run)) > 1:
                        yield statements


def orders_matter(first: ast.stmt, second: ast.stmt) -> bool:
    """Return whether the order of two movable statements may matter, or they are equal."""
    first_use, second_use = _use(first), _use(second)
    if first_use is None or second_use is None or ast.dump(first) == ast.dump(second):
        return True
    return bool(
        first_use.writes & (second_use.reads | second_use.writes)
        or first_use.reads & second_use.writes
        or (first_use.may_raise and second_use.may_raise)
    )


def _use(statement: ast.stmt) -> _Use | None:
    """Return what a statement reads and writes; None if it may have another effect."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return _use_of_definition(statement)
    if not isinstance(statement, ast.Assign):
        return None
    written = [name for target in statement.targets for name in _targets(target, statement.value)]
    nodes = [*ast.walk(statement.value)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    if not written or not all(_is_without_effect(node) for node in nodes):
        return None
    return _Use(
        frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        frozenset(written),
        bool(called) or any(isinstance(node, _COMPUTED) for node in nodes),
    )


def _targets(target: ast.expr, value: ast.expr) -> list[str]:
    """Return the names that an assignment writes; none if it writes anything else, or unpacks."""
    match target, value:
        case ast.Name(id=name), _:
            return [name]
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            return names if len(names) == len(targets) else []
        case _:
            return []


def _is_without_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        is_pure = isinstance(node.func, ast.Name) and node.func.id in _PURE_CALLS
        return is_pure and not node.keywords
    if isinstance(node, ast.Dict):
        return all(isinstance(key, ast.Constant) for key in node.keys)
    return isinstance(node, _PLAIN + _COMPUTED)


def _use_of_definition(statement: ast.FunctionDef | ast.AsyncFunctionDef) -> _Use | None:
    """Functions without decorators are independent; only their annotations are read."""
    given = statement.args
    defaults = [*given.defaults, *filter(None, given.kw_defaults)]
    if statement.decorator_list or not all(
        isinstance(default, ast.Constant) for default in defaults
    ):
        return None
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [statement.returns, *(argument.annotation for argument in every if argument)]
    reads = {
        node.id
        for annotation in filter(None, annotations)
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name)
    }
    return _Use(frozenset(reads), frozenset({statement.name}), may_raise=False)
