"""Annotations of pairs in the schema of the soft-contamination study, and the file they are in.

    {"pair": "4f0c…", "fingerprint": "91ab…", "is_sd": true, "confidence": 0.9,
     "match_type": "equivalent", "reasoning": "…", "kind": "model", "by": "qwen3-30b", …}

One JSON object per line; lines are only appended. `is_sd` says whether the two texts are semantic
duplicates: the training text states the same task as the benchmark item, or one that contains it.
An annotation decides nothing by itself: calibration counts it, report and review show it. The last
line of a kind about a pair counts. A line of an endpoint has the digest of the request it answers,
so the file is also the cache by which nothing is asked twice; `unjudged` instead of `is_sd` says
why a request got no usable answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from decon_core.config.validation import did_you_mean
from decon_core.errors import Problem
from decon_core.storage.line_log import append_objects, read_objects

ANNOTATIONS_FILE = "annotations.jsonl"
MATCH_TYPES = ("exact", "equivalent", "subset", "superset", "related", "unrelated")
KINDS = ("file", "model")  # kinds of lines; a person's is a verdict (decisions/verdicts.py)

KEYS = ("pair", "fingerprint")
_KEY = re.compile(r"[0-9a-f]{16}")
_TEXTS = ("reasoning", "by", "at", "request", "prompt", "unjudged")
_ALWAYS, _NEVER = ("exact", "equivalent"), ("unrelated",)  # semantic duplicates

Line = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """What a person, a file or a model says about one pair."""

    pair: str
    fingerprint: str
    is_sd: bool | None = None  # None: unjudged
    confidence: float | None = None
    match_type: str = ""
    reasoning: str = ""
    kind: str = "file"
    by: str = ""  # the model, or who made the file
    at: str = ""  # when the answer came: written once, and then read from here
    request: str = ""  # digest of prompt, model and parameters
    prompt: str = ""  # digest of the template
    unjudged: str = ""  # why there is no judgement


@dataclass(frozen=True)
class Annotations:
    """All annotations of a file."""

    lines: tuple[Annotation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lines)

    @cached_property
    def answered(self) -> Mapping[str, Annotation]:
        """The usable answers of an endpoint, by request."""
        return {
            line.request: line for line in self.lines if line.request and line.is_sd is not None
        }

    def by_pair(self, kind: str) -> dict[str, Annotation]:
        """Return the last annotation of a kind of each pair.

        A failed try does not hide an earlier answer.
        """
        current: dict[str, Annotation] = {}
        for line in self.lines:
            before = current.get(line.pair)
            if line.kind == kind and (line.is_sd is not None or not before or before.is_sd is None):
                current[line.pair] = line
        return current

    @property
    def digest(self) -> str:
        """Digest of what is shown: the current annotations with their reasons."""
        lines = [asdict(line) for kind in KINDS for _, line in sorted(self.by_pair(kind).items())]
        return sha256(repr(lines).encode()).hexdigest()[:16]


NO_ANNOTATIONS = Annotations()


def read_annotations(path: Path) -> Annotations:
    """Read a file of annotations, which may be missing; raise InputError with all problems."""
    if not path.exists():
        return NO_ANNOTATIONS
    lines = read_objects(path, "a file of annotations", problems_of, drops_torn_line=True)
    return Annotations(tuple(map(annotation_of, lines)))


def append_annotations(path: Path, annotations: Iterable[Annotation]) -> None:
    """Append annotations to a file, synced to disk when this returns."""
    lines = [line_of(annotation) for annotation in annotations]
    if lines:
        append_objects(path, lines, problems_of, drops_torn_line=True)


def annotation_of(line: Line) -> Annotation:
    """Return a checked line as an annotation; keys that it does not know are left out."""
    names = {key.name for key in fields(Annotation)}
    known = {name: value for name, value in line.items() if name in names and value is not None}
    if "is_sd" in known:
        known["is_sd"] = bool(known["is_sd"])
    return Annotation(**known)


def line_of(annotation: Annotation) -> Line:
    """Return the line of an annotation, without what it does not say."""
    return {name: value for name, value in asdict(annotation).items() if value not in (None, "")}


def problems_of(where: str, line: Line) -> Iterator[Problem]:
    """Yield what is wrong with a line."""
    yield from key_problems(where, {name: line.get(name) for name in KEYS})
    for name in _TEXTS:
        if not isinstance(line.get(name, ""), str):
            yield Problem(f"{where}: {name}", shown(line[name]), "a string")
    if line.get("kind", "file") not in KINDS:
        yield Problem(f"{where}: kind", shown(line["kind"]), f"one of {', '.join(KINDS)}")
    if not line.get("unjudged"):
        yield from judgement_problems(where, line)


def key_problems(where: str, keys: Line) -> Iterator[Problem]:
    """Yield a problem for each value that is no key."""
    for name, key in keys.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            yield Problem(f"{where}: {name}", shown(key), "16 hex digits, as in the report")


def judgement_problems(where: str, value: Line, said: str = "") -> Iterator[Problem]:
    """Yield what is wrong with the study's fields of a line or of an answer.

    `said`: what the line says in other words than `is_sd`.
    """
    is_sd, match_type = value.get("is_sd"), value.get("match_type")
    if is_sd not in (True, False):  # 1 and 0 are equal to these
        yield Problem(f"{where}: is_sd", shown(is_sd), "true or false")
    if match_type not in MATCH_TYPES:
        expected, remedy = f"one of {', '.join(MATCH_TYPES)}", did_you_mean(match_type, MATCH_TYPES)
        yield Problem(f"{where}: match_type", shown(match_type), expected, remedy)
    elif match_type in (_NEVER if is_sd else _ALWAYS):
        found = f"{match_type!r} with {said or f'is_sd = {str(bool(is_sd)).lower()}'}"
        allowed = [name for name in MATCH_TYPES if name not in (_NEVER if is_sd else _ALWAYS)]
        yield Problem(f"{where}: match_type", found, f"one of {', '.join(allowed)}")
    confidence = value.get("confidence")
    is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        yield Problem(f"{where}: confidence", shown(confidence), "a number from 0 to 1")
    if not isinstance(value.get("reasoning", ""), str):
        yield Problem(f"{where}: reasoning", shown(value["reasoning"]), "a string")


def shown(value: object) -> str:
    return "missing" if value is None else f"{value!r:.60}"


def labels_of(people: Mapping[str, Annotation], annotations: Annotations) -> dict[str, Annotation]:
    """Return the judgement that counts of each pair: a person's, else a file's, else a model's."""
    labels: dict[str, Annotation] = {}
    for kind in reversed(KINDS):
        for pair, line in annotations.by_pair(kind).items():
            if line.is_sd is not None or pair not in labels:
                labels[pair] = line
    return dict(sorted((labels | dict(people)).items()))


def new_annotations(lines: Sequence[Annotation], current: Annotations) -> list[Annotation]:
    """Return the annotations that the file does not have yet, each once."""
    known = set(current.lines)
    return [line for line in dict.fromkeys(lines) if line not in known]
