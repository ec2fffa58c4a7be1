"""Read a Jinja template as the columns that it prints, in order; it is parsed, never rendered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from jinja2 import Environment, TemplateSyntaxError, nodes

from decon_core.features.importers.values import (
    COUNTER,
    ROW,
    Computed,
    Constant,
    Fields,
    Items,
    Part,
    Value,
    added,
    bare,
    called,
    computed,
    either,
    element,
    joined,
    subtracted,
)

_NAME = re.compile(r"[^\W\d][\w]*( [^\W\d]\w*)?")
_LOOP = Fields({"index": COUNTER, "index0": COUNTER}, Constant(""))
_PARSER = Environment(autoescape=True)  # it renders nothing


_parsed = lru_cache(maxsize=4096)(_PARSER.parse)


def template_value(text: str, row: Value = ROW) -> Value:
    """Return what a template prints. A text that is only a name is the column of this name."""
    if "{{" not in text and "{%" not in text:
        return element(row, Constant(text)) if _NAME.fullmatch(text) else Constant(text)
    try:
        template = _parsed(text)
    except TemplateSyntaxError as error:
        return Computed(f"a template that Jinja cannot parse ({error.message})")
    return bare(_Template({}, row).body(template.body))


class _Template:
    """The statements of a template, with the variables that they set."""

    def __init__(self, names: Mapping[str, Value], row: Value) -> None:
        self._names, self._row = dict(names), row

    def body(self, statements: Iterable[nodes.Node]) -> Value:
        """Return what statements print."""
        return joined(self._printed(statement) for statement in statements)

    def _printed(self, node: nodes.Node) -> Value:
        match node:
            case nodes.Output():
                return joined(map(self.value, node.nodes))
            case nodes.Assign(target=nodes.Name() as target):
                self._names[target.name] = self.value(node.node)
                return Constant("")
            case nodes.If():
                branches = [node.body, *(branch.body for branch in node.elif_), node.else_]
                printed = [self.body(branch) for branch in branches]
                result = printed[0]
                for other in printed[1:]:
                    result = either("an {% if %}", result, other)
                return result
            case nodes.For():
                names = self._names | _bound(node.target, self.value(node.iter)) | {"loop": _LOOP}
                return _Template(names, self._row).body(node.body)
        return computed(f"a {type(node).__name__.lower()} statement")

    def value(self, node: nodes.Node) -> Value:
        """Return the value of an expression."""
        match node:
            case nodes.TemplateData():
                return Constant(node.data)
            case nodes.Const():
                return Constant(node.value)
            case nodes.Name():
                return self._names.get(node.name) or element(self._row, Constant(node.name))
            case nodes.Getattr():
                return element(self.value(node.node), Constant(node.attr))
            case nodes.Getitem(arg=nodes.Slice()):
                return Part(self.value(node.node))
            case nodes.Getitem():
                return element(self.value(node.node), self.value(node.arg))
            case nodes.List() | nodes.Tuple():
                return Items(tuple(map(self.value, node.items)))
            case nodes.Dict():
                pairs = {pair.key.as_const(): self.value(pair.value) for pair in node.items}
                return Fields({str(key): value for key, value in pairs.items()})
            case nodes.Call(node=nodes.Getattr() as method):
                arguments = [self.value(argument) for argument in node.args]
                return called(method.attr, self.value(method.node), arguments)
            case nodes.Call(node=nodes.Name(name="range")):
                return COUNTER
            case nodes.Filter() if node.node is not None:
                return self._filtered(node, self.value(node.node))
            case nodes.Add():
                return added(self.value(node.left), self.value(node.right))
            case nodes.Sub():
                return subtracted(self.value(node.left), self.value(node.right))
            case nodes.Neg(node=nodes.Const() as number):
                return Constant(-number.value)
            case nodes.CondExpr():
                other = self.value(node.expr2) if node.expr2 else Constant("")
                return either("an if", self.value(node.expr1), other)
        inner = map(self.value, node.iter_child_nodes())
        return computed(f"a {type(node).__name__.lower()} expression", *inner)

    def _filtered(self, node: nodes.Filter, value: Value) -> Value:
        for keyword in node.kwargs:
            if node.name == "map" and keyword.key == "attribute":
                return element(value, self.value(keyword.value))
        return called(node.name, value, [self.value(argument) for argument in node.args])


def _bound(target: nodes.Node, iterated: Value) -> dict[str, Value]:
    """Return the variables of a loop: the elements of a column are written as the column."""
    if isinstance(target, nodes.Name):
        return {target.name: iterated}
    names = [name.name for name in target.find_all(nodes.Name)]
    return dict.fromkeys(names, iterated)
