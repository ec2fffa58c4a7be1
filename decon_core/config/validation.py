"""Field types of the models of decon.toml, and pydantic's errors as problems.

All problems of a file are collected, so that they can be fixed at once. Names of benchmarks,
sources and products are also partition keys and folder names: here is which of them are allowed.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Protocol, TypeVar, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from decon_core.errors import ConfigError, KeyNameError, Problem, collecting
from decon_core.storage.paths import is_url

T = TypeVar("T")
N = TypeVar("N", bound=str)
Node = Mapping[str, Any]  # part of a JSON schema
_MOST = 10**15  # upper limit of whole numbers
_MANY_KEYS = 23  # more are not listed in a message

# Dagster joins the parts of partition keys with "|", writes ranges with "..." and lists with ",",
# and silently drops a key that contains one of them: the benchmark would count as clean. Only
# characters without a special meaning in Dagster, file systems and shells are allowed.
_ALLOWED = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.)){0,119}")

TABLE = ConfigDict(
    extra="forbid",
    allow_inf_nan=False,
    populate_by_name=True,  # Code may use names; a file must use the aliases.
    defer_build=True,  # A model is built when it is first used, with the models of its fields.
)


def expects(text: str) -> Any:
    """Describe the values of a type in error messages, where its JSON schema is not enough."""
    return Field(json_schema_extra={"expected": text})


def invalid(expected: str, remedy: str = "", *, found: str | None = None) -> PydanticCustomError:
    """Return an error for a validator to raise. `found`: the value, unless it is described here."""
    return PydanticCustomError(
        "invalid", "expected {expected}", {"expected": expected, "remedy": remedy, "found": found}
    )


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise invalid("each name once", found=f"{repeated[0]!r} more than once")
    return names


def _not_empty(value: object) -> object:
    if value == []:  # A file has an empty list; the default is an empty tuple.
        raise invalid("a list of one or more names in quotes")
    return value


# Fingerprints are made from the values as written: 1 must not become 1.0.
AS_WRITTEN = WrapValidator(lambda value, validate: (validate(value), value)[1])

Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True, ge=-_MOST, le=_MOST)]
Count = Annotated[int, Field(strict=True, ge=0, le=_MOST)]
Positive = Annotated[int, Field(strict=True, ge=1, le=_MOST)]
AtLeastTwo = Annotated[int, Field(strict=True, ge=2, le=_MOST)]
Number = Annotated[float, Field(strict=True), AS_WRITTEN]
Share = Annotated[float, Field(strict=True, ge=0, le=1), AS_WRITTEN]
PositiveShare = Annotated[float, Field(strict=True, gt=0, le=1), AS_WRITTEN]
ShareBelowOne = Annotated[float, Field(strict=True, gt=0, lt=1), AS_WRITTEN]
Name = Annotated[str, Field(min_length=1), expects("a name in quotes")]
Distinct = Annotated[tuple[N, ...], AfterValidator(_distinct)]
Names = Annotated[Distinct[N], BeforeValidator(_not_empty)]


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kMGT]?)(i?)B")
_POWERS = ("", "k", "M", "G", "T")


def bytes_of(size: object) -> int | None:
    """Parse a number of bytes or a size such as "20 GB" or "1.5 GiB"; None if invalid."""
    if isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())):
        number, prefix, is_binary = match.groups()
        size = int(float(number) * (1024 if is_binary else 1000) ** _POWERS.index(prefix))
    return size if isinstance(size, int) and not isinstance(size, bool) and size >= 1 else None


def _bytes(size: object) -> int:
    if (n_bytes := bytes_of(size)) is None:
        raise invalid("a whole number of 1 or more, or a size like '20 GB'")
    return n_bytes


Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]


def in_a_list(value: object) -> object:
    """Refuse one name without its list."""
    if isinstance(value, str):
        raise invalid("a list of names", f'write ["{value}"]')
    return value


def each_once(names: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    """Return names if all are known and none is repeated; none at all are refused as well."""
    if names and len(names) == len({*names} & {*known}):
        return names
    unknown = next((name for name in names if name not in known), "")
    expected = f"one or more of {', '.join(known)}, each once"
    raise invalid(expected, did_you_mean(unknown, known), found=repr([*names]))


def known(kind: str) -> AfterValidator:
    """Accept only the names of this kind in the validation context, if it has any."""

    def check(name: str, info: ValidationInfo) -> str:
        return known_name(name, (info.context or {}).get(kind) or [name])

    return AfterValidator(check)


def known_name(name: str, names: Collection[str], *, found: str | None = None) -> str:
    """Return a name if it is known, and raise an error with the closest one if it is not."""
    if name not in names:
        raise invalid(f"one of {', '.join(names)}", did_you_mean(name, names), found=found)
    return name


_MOST_SUGGESTED = 8

# Names of settings as they were once, and as they are now.
_RENAMED = {
    "idf": "term_weights",
    "least_indexable_share": "least_checkable_share",
    "keep_question_only": "keep_no_answer",
    "question_only": "no_answer",
    "candidates": "review",
    "arm": "training_run",
    "most_pairs": "most_texts",
    "evidence_floor": "lowest_recorded_score",
    "ratcliff_floor": "ratcliff_lowest_recorded",
    "longest_match_floor": "longest_match_lowest_recorded",
    "ngram_any_floor": "ngram_any_lowest_recorded",
    "reworded_floor": "reworded_lowest_recorded",
    "code_floor": "code_lowest_recorded",
}


def did_you_mean(found: object, known: Collection[str], *, likeness: float = 0.6) -> str:
    """Suggest the closest name and those that have this one as a part; empty if there is none.

    Of very many names, one is a little like almost every word: then `likeness` should be higher.
    """
    if not found:
        return ""
    names = sorted(known)
    if (renamed := _RENAMED.get(str(found))) in names:
        return f"it is now called {renamed!r}"
    close = difflib.get_close_matches(str(found), names, n=1, cutoff=likeness)
    longer = [name for name in names if f"_{found}_" in f"_{name}_" and name not in close]
    if len(longer) < _MOST_SUGGESTED:
        close += longer
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


@lru_cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def validated(
    model: type[T],
    value: object,
    *,
    problems: list[Problem],
    place: Callable[[Sequence[str | int]], str],
    describe: Callable[[object], str] = repr,
    context: Mapping[str, object] | None = None,
) -> T | None:
    """Return the model of a parsed value, or None after adding all its problems.

    `place` formats the path of a value within the table, `describe` the value. `context`: names
    for `known`.
    """
    try:
        instance: T = _adapter(cast("Hashable", model)).validate_python(
            value, context=context, by_alias=True, by_name=False
        )
    except ValidationError as error:
        problems += problems_of(error, model, place=place, describe=describe)
        return None
    return instance


def problems_of(
    error: ValidationError,
    model: Any,
    *,
    place: Callable[[Sequence[str | int]], str],
    describe: Callable[[object], str] = repr,
) -> list[Problem]:
    """Return the problems of a validation, one for each place; see `validated`."""
    schema = _adapter(model).json_schema()  # It has the keys of the file.
    problems: list[Problem] = []
    reported: dict[tuple[str | int, ...], int] = {}  # the number of the problem by its path
    for details in error.errors(include_url=False):
        path, node = _resolved(details["loc"], schema)
        if details["type"] in _UNKNOWN_KEY:
            path = (*path, details["loc"][-1])
        problem = _problem(details, place(path), describe(details["input"]), node, schema)
        # A value of a type with alternatives is reported once, by a validator of ours if one did.
        if path in reported and details["type"] == "invalid":
            problems[reported[path]] = problem
        elif not any(path[: len(parent)] == parent for parent in reported):
            reported[path] = len(problems)
            problems.append(problem)
    return problems


_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")


def _problem(details: ErrorDetails, where: str, found: str, node: Node, schema: Node) -> Problem:
    variants, context = [*_variants(node, schema)], details.get("ctx", {})
    if details["type"] in _UNKNOWN_KEY:
        key = details["loc"][-1]
        keys = [name for variant in variants for name in variant.get("properties", {})]
        expected = f"one of {', '.join(sorted(keys))}" if len(keys) < _MANY_KEYS else "a known key"
        return Problem(where, f"unknown key {key!r}", expected, did_you_mean(key, keys))
    if details["type"] == "invalid":
        return Problem(where, context["found"] or found, context["expected"], context["remedy"])
    expected = " or ".join(dict.fromkeys(_expectations(node, schema)))
    if details["type"] == "missing":
        return Problem(where, "missing", expected)
    choices: set[str] = set()
    for variant in variants:
        choices.update(filter(None, (*variant.get("enum", ()), variant.get("const"))))
    return Problem(where, found, expected, did_you_mean(details["input"], choices))


def _resolved(loc: Sequence[str | int], schema: Node) -> tuple[tuple[str | int, ...], Node]:
    """Return the path of a value and its node in the schema; `loc` also names alternatives."""
    path: list[str | int] = []
    node = schema
    for key in loc:
        members = (node, *node.get("anyOf", ()))
        union = next((member for member in members if "oneOf" in member), None)
        if union is not None:  # the key is a tag, the name of a member's class if it is one
            node = schema["$defs"].get(key, {"anyOf": union["oneOf"]})
            continue
        inner = next(_inner(node, key, schema), None)
        if inner is not None:
            node = inner
            path.append(key)
    return tuple(path), node


def _expectations(node: Node, schema: Node) -> Iterator[str]:
    """Yield a description of each alternative that a node of a JSON schema allows."""
    if "expected" in node:
        yield node["expected"]
    elif "anyOf" in node:
        for member in node["anyOf"]:
            yield from _expectations(member, schema)
    else:
        yield from map(_expectation, _variants(node, schema))


def _variants(node: Node, schema: Node) -> Iterator[Node]:
    """Yield the types that a node of a JSON schema allows, without null."""
    if "$ref" in node:
        yield from _variants(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    elif "anyOf" in node or "oneOf" in node:
        for member in node.get("anyOf") or node["oneOf"]:
            yield from _variants(member, schema)
    elif node.get("type") != "null":
        yield node


def _inner(node: Node, key: str | int, schema: Node) -> Iterator[Node]:
    """Yield the nodes of a table's key or a list's element."""
    for variant in _variants(node, schema):
        if isinstance(key, int):
            if "items" in variant:
                yield variant["items"]
        elif key in variant.get("properties", {}):
            yield variant["properties"][key]
        elif variant.get("additionalProperties"):
            yield variant["additionalProperties"]


def _expectation(node: Node) -> str:
    """Describe the values that a JSON schema without alternatives accepts."""
    match node:
        case {"expected": text}:
            return str(text)
        case {"const": value}:
            return repr(value)
        case {"enum": values}:
            return f"one of {', '.join(values)}"
        case {"type": "integer", "minimum": least} if least > -_MOST:
            return f"a whole number of {least} or more"
        case {"type": "number", "minimum": low, "maximum": high}:
            return f"a number from {low:g} to {high:g}"
        case {"type": "number", "exclusiveMinimum": low, "maximum": high}:
            return f"a number above {low:g} and up to {high:g}"
        case {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}:
            return f"a number above {low:g} and below {high:g}"
        case {"type": "array", "items": {"type": "string"}}:
            return "a list of one or more names in quotes"
    return _KINDS[node["type"]]


_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a table",
    "string": "a string",
}


class Named(Protocol):
    """A table with a name."""

    @property
    def name(self) -> str: ...


D = TypeVar("D", bound=Named)


def declared(what: str, tables: Iterable[D], name: str) -> D:
    """Return the table of this name, which may be a partition key that is declared no longer."""
    known = {table.name: table for table in tables}
    if not known:
        found, remedy = f"decon.toml declares no {what}", f"see docs/{what}s.md"
        raise ConfigError(Problem(f"{what} {name!r}", found, remedy=remedy))
    if name not in known:
        expected = f"one of {', '.join(known)}"
        remedy = "declare it there, or delete its partition in the Dagster UI"
        found = "no such name in decon.toml"
        raise ConfigError(Problem(f"{what} {name!r}", found, expected, remedy))
    return known[name]


class SettingsReader:
    """Validates the tables of one file and collects the problems."""

    def __init__(
        self,
        where: str,
        *,
        folder: Path = Path(),
        names: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """`folder`: that of relative paths. `names`: those of other tables, by their kind."""
        self._file = where
        self.folder = folder
        self.names = names
        self.problems: list[Problem] = []

    def wrong(self, where: str, found: object, expected: str, remedy: str = "") -> None:
        text = found if isinstance(found, str) else "missing" if found is None else repr(found)
        self.problems.append(Problem(f"{self._file}: {where}", text, expected, remedy))

    def table(self, model: type[T], where: str, value: object, **names: object) -> T | None:
        """Return the model of a table, or None after adding its problems."""
        context = {**self.names, **names}

        def place(path: Sequence[str | int]) -> str:
            return f"{self._file}: {dotted([where, *path])}"

        return validated(model, value, problems=self.problems, place=place, context=context)

    def tables(self, where: str, value: object) -> list[Any]:
        """Return the entries of a list of tables; report anything else and an empty list."""
        if isinstance(value, list) and value:
            return value
        self.wrong(where, value, f"one or more [[{re.sub(_NUMBER, '', where)}]]")
        return []

    def local_file(self, where: str, value: str) -> Path:
        """Return the path of a local file, which need not exist; report a URL or a folder."""
        expected = "the path of a local file"
        path = self.folder / value
        if is_url(value):
            self.wrong(where, repr(value), expected)
        elif path.is_dir():
            self.wrong(where, f"the folder {path}", expected)
        return path

    def named_tables(self, where: str, names: Sequence[str], *, what: str) -> None:
        """Check the names of tables, which become partition keys and folders."""
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.wrong(where, f"{name!r} more than once", "a different name for each")
        for folded in dict.fromkeys(name.casefold() for name in names):
            same = sorted({name for name in names if name.casefold() == folded})
            if len(same) > 1:
                found = f"{' and '.join(map(repr, same))}, which differ only in case"
                self.wrong(where, found, "names that differ on case-insensitive file systems")
        with collecting(self.problems):
            check_names(names, what=f"{self._file}: {what}")


def check_names(names: Iterable[str], *, what: str) -> None:
    """Raise `KeyNameError` if a name cannot be a partition key. `what`: the kind of name."""
    expected = (
        "letters, digits, '_', '-' and single '.', at most 120 characters, not starting with '-' "
        "or '.'"
    )
    remedy = "rename it: '|', ',' and '...' are special in partition keys"
    KeyNameError.raise_for(
        Problem(f"{what} name", repr(name), expected, remedy)
        for name in names
        if not _ALLOWED.fullmatch(name) or name.endswith(".")
    )


def key_from(text: str, *, other: str) -> str:
    """Return the text without accents, and with `other` for what no partition key has."""
    parts = unicodedata.normalize("NFKD", text)
    plain = "".join(char for char in parts if not unicodedata.combining(char))
    return re.sub(r"[^A-Za-z0-9_-]+", other, plain)


_NUMBER = re.compile(r"\[\d+\]")


def dotted(path: Sequence[str | int]) -> str:
    """Format the place of a value: `corpus.source[1].text`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")
