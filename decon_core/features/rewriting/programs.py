"""Python programs with other names, which leave what a program computes as it is.

So its tests pass. Names that a caller could use stay: those of functions, classes, modules and
attributes, and keyword arguments.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from decon_core.features.rewriting.item_texts import ItemTexts, Shuffle, listed
from decon_core.text.code_form import parsed, program_of, standard_names
from decon_core.text.segments import Span, spliced

_SEES_NAMES = frozenset({"locals", "globals", "vars", "eval", "exec", "dir"})
_LINE_END = re.compile(r"\r\n|\n|\r")

_Change = tuple[Span, str]


@dataclass(frozen=True)
class _Program:
    text: str
    tree: ast.Module

    @cached_property
    def starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_END.finditer(self.text))]

    def place(self, line: int, column: int) -> int:
        """Return the place of a line and a column in bytes."""
        start = self.starts[line - 1]
        stop = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:stop].encode()[:column].decode())


def identifiers_renamed(item: ItemTexts, shuffle: Shuffle) -> ItemTexts | None:
    """Rename the parameters and local variables of a program; None if it has none to rename.

    The program is in the answer, in the question, or begins in one and ends in the other.
    """
    program = program_of(item.question, item.answer)
    if program is None:
        return None
    question = item.question if program.has_question else ""
    text = question + (item.answer if program.has_answer else "")
    tree = parsed(text)
    if tree is None:  # such as a program between sentences
        return None
    edge = len(question)
    changes = [
        (span, new)
        for span, new in _renamings(_Program(text, tree), shuffle)
        if not span[0] < edge < span[1]
    ]
    made = spliced(text, changes)
    if not changes or parsed(made) is None:
        return None
    edge += sum(len(new) - (stop - start) for (start, stop), new in changes if stop <= edge)
    return replace(
        item,
        question=made[:edge] if program.has_question else item.question,
        answer=made[edge:] if program.has_answer else item.answer,
    )


def _renamings(program: _Program, shuffle: Shuffle) -> Iterator[_Change]:
    """Yield every place of each name that can be renamed, with the new name."""
    places: dict[str, list[Span]] = {}  # places of each variable
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Name | ast.arg):
            name = node.id if isinstance(node, ast.Name) else node.arg
            start = program.place(node.lineno, node.col_offset)
            places.setdefault(name, []).append((start, start + len(name)))
    local_names = _local_names(program)
    in_order = sorted(places, key=lambda name: min(places[name]))
    old = [name for name in in_order if name in local_names]
    used = {*re.findall(r"\w+", program.text)}
    free = [
        name
        for name in listed("programs", "variables")
        if name not in used and not _is_standard(name)
    ]
    if used & _SEES_NAMES or len(old) > len(free):
        return
    for name, at in zip(old, shuffle(len(free)), strict=False):
        for span in places[name]:
            yield span, free[at]


def _is_standard(name: str) -> bool:
    return any(name in names for names in standard_names()) or hasattr(builtins, name)


def _local_names(program: _Program) -> set[str]:
    """Return the names that are variables of functions wherever they stand."""
    tables = [symtable.symtable(program.text, "program", "exec")]
    locals_, others = set[str](), set[str]()
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            is_inner = symbol.is_local() or symbol.is_free()
            is_local = table.get_type() == "function" and is_inner and not symbol.is_imported()
            (locals_ if is_local else others).add(symbol.get_name())
    return {
        name
        for name in locals_ - others - {*_fixed_names(program.tree)}
        if not name.startswith("_") and name.isascii() and not _is_standard(name)
    }


def _fixed_names(tree: ast.Module) -> Iterator[str]:
    """Yield names that stand where there is no variable to rename, or that a caller may use."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.ExceptHandler(name=str(name)) | ast.keyword(arg=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.Global() | ast.Nonlocal():
                yield from node.names
            case ast.JoinedStr():  # the places of its names differ between versions of Python
                yield from (child.id for child in ast.walk(node) if isinstance(child, ast.Name))
            case ast.Constant(value=str(text)):  # f(key=2) in the examples of a docstring
                yield from re.findall(r"(\w+)\s*=(?!=)", text)
            case _:
                pass
