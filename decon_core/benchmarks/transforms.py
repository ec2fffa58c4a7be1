"""The named transforms of values and labels in recipes."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Callable
from hashlib import sha256
from itertools import cycle

from decon_core.benchmarks.fields import FieldError, describe, is_empty, plain, text_of

Steps = tuple[tuple[str, str | None], ...]
CANARY = "canary"  # the field with the password of an encrypted row


def apply_transforms(value: object, steps: Steps, field: str) -> object:
    """Apply (name, argument) pairs in order; an empty value becomes None."""
    for name, argument in steps:
        if is_empty(value):
            return None
        if name in ARGUMENT_TRANSFORMS:
            default, change = ARGUMENT_TRANSFORMS[name]
            value = change(value, default if argument is None else argument, field)
        else:
            value = PLAIN_TRANSFORMS[name](value, field)
    return value


def apply_label_transform(label: str, name: str | None, field: str) -> str:
    try:
        return label if name is None else LABEL_TRANSFORMS[name](label)
    except ValueError:
        raise FieldError(field, describe(label), f"a label that {name} accepts") from None


def _each(change: Callable[[str], str]) -> Callable[[object, str], object]:
    """Return a transform that changes a text, or every text in a list."""

    def transform(value: object, field: str) -> object:
        if isinstance(value, list | tuple):
            return [None if is_empty(item) else transform(item, field) for item in value]
        return change(text_of(value, field) or "")

    return transform


def _after_marker(value: object, marker: str, field: str) -> object:
    # Without the marker the whole text is kept: a long answer is better than none.
    return _each(lambda text: text.rpartition(marker)[2].strip())(value, field)


def _before_marker(value: object, marker: str, field: str) -> object:
    return _each(lambda text: text.partition(marker)[0].strip())(value, field)


_BOX = re.compile(r"\\(?:boxed|fbox)(?:\s*\{|\s+(?=[^\s{]))")


def _last_boxed(text: str) -> str:
    """Return the content of the last box of a solution; "" if there is none.

    A box is `\\boxed{...}`, `\\fbox{...}`, or `\\boxed 5`, which ends with the formula or the word.
    """
    marks = [*_BOX.finditer(text)]
    if not marks:
        return ""
    rest = text[marks[-1].end() :]
    if not marks[-1][0].endswith("{"):
        is_formula = text.count("$", 0, marks[-1].start()) % 2
        end = "[$]" if is_formula else r"[$\s]|[.,;](?!\S)"
        return re.split(end, rest, maxsplit=1)[0].strip()
    depth = 1
    for at, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return rest[:at].strip()
    return ""


def _binary_to_bool(value: object, field: str) -> object:
    label = text_of(value, field)
    if label in ("-1", None):
        return None
    if label in ("0", "1", "false", "true"):
        return label in ("1", "true")
    raise FieldError(field, describe(value), "0 or 1")


def _join(value: object, separator: str, field: str) -> object:
    if not isinstance(value, list | tuple):
        raise FieldError(field, describe(value), "a list to join")
    return separator.join(text for item in value if (text := text_of(item, field)) is not None)


def _split(value: object, separator: str, field: str) -> object:
    return [part.strip() for part in (text_of(value, field) or "").split(separator)]


def _decrypt(value: object, password: str, field: str) -> object:
    """Return a text that was encrypted as in BrowseComp: XOR with a hash of the row's password."""
    key = cycle(sha256(password.encode()).digest())
    try:
        encrypted = base64.b64decode(text_of(value, field) or "", validate=True)
        return bytes(byte ^ mask for byte, mask in zip(encrypted, key, strict=False)).decode()
    except ValueError:
        expected = "text encrypted with the password of its row"
        raise FieldError(field, describe(value), expected) from None


def _first(value: object, field: str) -> object:
    if not isinstance(value, list | tuple):
        raise FieldError(field, describe(value), "a list")
    return next((item for item in value if not is_empty(item)), None)


def _parse(load: Callable[[str], object], kind: str) -> Callable[[object, str], object]:
    """Return a transform that reads the value that a text contains."""

    def transform(value: object, field: str) -> object:
        try:
            return load(text_of(value, field) or "")
        except (ValueError, SyntaxError):
            raise FieldError(field, describe(value), f"text that is {kind}") from None

    return transform


PLAIN_TRANSFORMS: dict[str, Callable[[object, str], object]] = {
    "binary_to_bool": _binary_to_bool,
    "strip": _each(str.strip),
    "first_line": _each(lambda text: text.strip().partition("\n")[0]),
    "last_line": _each(lambda text: text.strip().rpartition("\n")[2]),
    "boxed": _each(_last_boxed),
    "first": _first,
    "parse_json": _parse(json.loads, "JSON"),
    "parse_python": _parse(ast.literal_eval, "a Python literal"),
    "to_json": lambda value, field: json.dumps(plain(value, field), ensure_ascii=False),
}

# Transforms that take an argument, with its default.
ARGUMENT_TRANSFORMS: dict[str, tuple[str, Callable[[object, str, str], object]]] = {
    # "####" precedes the final answer in GSM8K and similar benchmarks.
    "after_marker": ("####", _after_marker),
    "before_marker": ("####", _before_marker),
    # The argument in a recipe is the field of the password; `texts.value_in` looks it up.
    "decrypt": (CANARY, _decrypt),
    "join": ("\n", _join),
    "split": (",", _split),
}

TRANSFORM_NAMES = (*PLAIN_TRANSFORMS, *ARGUMENT_TRANSFORMS)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _number_to_letter(label: str, first: int, alphabet: str) -> str:
    position = int(label) - first
    if not 0 <= position < len(alphabet):
        raise ValueError(label)
    return alphabet[position]


# Each raises ValueError for a label that is not of its kind.
LABEL_TRANSFORMS: dict[str, Callable[[str], str]] = {
    "numbers_to_letters": lambda label: _number_to_letter(label, 1, _LETTERS),
    "index_to_letter": lambda label: _number_to_letter(label, 0, _LETTERS.lower()),
    "letter_to_index": lambda label: str([*_LETTERS].index(label.upper())),
    "add_one": lambda label: str(int(label) + 1),
    "subtract_one": lambda label: str(int(label) - 1),
    "binary_to_bool": lambda label: ("false", "true")[("0", "1").index(label)],
    "lower": str.lower,
    "upper": str.upper,
}
