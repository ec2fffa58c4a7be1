"""Read Inspect logs: `.eval`, a zip of `header.json` and `samples/<id>_epoch_<n>.json`, or `.json`.

A log has one task of one model. Each scorer gives a sample a value: a number, a letter, or several
values by name. An item has one sample per epoch; its score is their mean.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from decon_core.benchmarks.fields import Row, describe
from decon_core.errors import Problem, RecordError
from decon_core.features.results import per_item
from decon_core.storage.compression import DAMAGE
from decon_core.wording import counted

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile  # Inspect compresses with zstd

NAME = "Inspect logs"

# A log in JSON begins with these fields.
_HEAD = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')
_HEAD_SIZE = 200
# Inspect's letters for correct, partially correct, incorrect and no answer; and its words.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def is_log(path: Path) -> bool:
    if path.suffix != ".json":
        return path.suffix == ".eval"
    with path.open("rb") as file:
        return _HEAD.match(file.read(_HEAD_SIZE)) is not None


def read(path: Path) -> list[per_item.Results]:
    """Read the samples of a log; raise `RecordError` if its run did not succeed."""
    contents = _contents(path)
    header = next(contents)[1]
    if header.get("status") != "success":
        found = f"a log with the status {describe(header.get('status'))}"
        remedy = "Its samples do not count. Finish the run with `inspect eval-retry`."
        raise RecordError(Problem(str(path), found, "the status 'success'", remedy))
    about, done = per_item.mapping_in(header, "eval"), per_item.mapping_in(header, "results")
    results = per_item.Results(
        path=path,
        format=NAME,
        model=per_item.text_at(about, "model") or path.resolve().parent.name,
        task=_task(about) or path.stem,
        run=per_item.text_at(about, "created") or "",
        split=per_item.text_at(per_item.mapping_in(about, "task_args"), "split"),
    )
    n_samples, n_asked = (
        _add_samples(results, contents),
        per_item.index_of(done.get("total_samples")),
    )
    if n_samples and n_asked and n_samples < n_asked:
        found = f"the log should have {counted(n_asked, 'sample')}, but has only {n_samples:,}"
        results.problems.append(Problem(str(path), found))
    return [results]


def _task(about: Row) -> str:
    """Return the task's name without its package, and the arguments that were given, but `split`.

    With other arguments, a task may ask other items: `mmlu subject=anatomy`.
    """
    name = (per_item.text_at(about, "task") or "").split("/")[-1]
    args = "task_args_passed" if "task_args_passed" in about else "task_args"
    given = per_item.mapping_in(about, args).items()
    return " ".join([name, *(f"{key}={value}" for key, value in given if key != "split")])


def _add_samples(results: per_item.Results, rows: Iterator[tuple[str, Row]]) -> int:
    """Add a sample for each item, and return the number of samples of all epochs.

    Samples with an error, or invalidated, are problems.
    """
    n_samples = 0
    not_numbers: Counter[str] = Counter()
    epochs: defaultdict[str, list[per_item.Sample]] = defaultdict(list)
    for place, row in rows:
        n_samples += 1
        if row.get("error") or row.get("invalidation"):
            message = per_item.text_at(per_item.mapping_in(row, "error"), "message") or "no message"
            is_error = bool(row.get("error"))
            found = f"the sample failed ({message})" if is_error else "the sample was invalidated"
            results.problems.append(Problem(place, found, remedy="The sample is left out."))
        else:
            item = repr(row.get("id"))
            epochs[item].append(_sample(place, row, not_numbers))
    if not epochs and not results.problems:
        remedy = "Run Inspect without --no-log-samples."
        results.problems.append(Problem(str(results.path), "no samples", "a log of items", remedy))
    for samples in epochs.values():
        per_item.add_sample(results, _mean(samples))
    results.problems += per_item.ignored_metrics(results.path, not_numbers)
    return n_samples


def _mean(epochs: Sequence[per_item.Sample]) -> per_item.Sample:
    """Return an item's first sample, with the means of its scores in all epochs that have them."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for sample in epochs:
        for metric, score in sample.scores.items():
            scores[metric].append(score)
    return replace(epochs[0], scores={metric: fmean(values) for metric, values in scores.items()})


def _sample(place: str, row: Row, not_numbers: Counter[str]) -> per_item.Sample:
    number = per_item.index_of(row.get("id"))  # Inspect counts items without an id from 1
    output = per_item.mapping_in(row, "output")
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = per_item.mapping_in(first, "message") if isinstance(first, Mapping) else {}
    prediction = per_item.text_at(output, "completion") or _text(message.get("content"))
    return per_item.Sample(
        place=place,
        scores=dict(_scores(row, not_numbers)),
        index=number - 1 if number else None,
        doc={
            "question": _questions(row.get("input")),
            **{name: row.get(name) for name in ("choices", "target", "id")},
        },
        texts=per_item.Texts(prediction, per_item.listed_texts(row.get("target"))),
    )


def _scores(row: Row, not_numbers: Counter[str]) -> Iterator[tuple[str, float]]:
    """Yield the scores of a sample; a scorer of several values has one metric for each."""
    for scorer, score in per_item.mapping_in(row, "scores").items():
        value = score.get("value") if isinstance(score, Mapping) else None
        parts = (
            {f"{scorer}_{name}": part for name, part in value.items()}
            if isinstance(value, Mapping)
            else {scorer: value}
        )
        for metric, part in parts.items():
            number = _number(part)
            if number is None:
                not_numbers[metric] += 1
            else:
                yield metric, number


def _number(value: object) -> float | None:
    if not isinstance(value, str):
        return per_item.number_of(value)
    known = _LETTERS.get(value, _WORDS.get(value.lower()))
    return per_item.number_in(value) if known is None else known


def _questions(asked: object) -> list[str]:
    """Return the input, or what the user said in it, from the last message to the first."""
    if isinstance(asked, str):
        return [asked]
    messages = asked if isinstance(asked, list) else []
    texts = [
        _text(message.get("content"))
        for message in reversed(messages)
        if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return [text for text in texts if text]


def _text(content: object) -> str | None:
    """Return the text of a message's content, which may be in parts."""
    parts = content if isinstance(content, list) else []
    texts = [per_item.text_at(part, "text") for part in parts if isinstance(part, Mapping)]
    return content if isinstance(content, str) else "\n".join(filter(None, texts)) or None


def _contents(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the header of a log, then its samples, each with its place."""
    try:
        yield from _of_zip(path) if path.suffix == ".eval" else _of_json(path)
    except (ValueError, NotImplementedError, zipfile.BadZipFile, zlib.error, *DAMAGE) as error:
        found = f"a log that cannot be read ({error})"
        remedy = "Copy it again, or convert it with `inspect log convert --to json`."
        raise RecordError(Problem(str(path), found, "a complete log", remedy)) from None


def _of_zip(path: Path) -> Iterator[tuple[str, Row]]:
    with zipfile.ZipFile(path) as log:
        names = dict.fromkeys(log.namelist())  # a sample that was run again is there twice
        if "header.json" not in names:
            raise ValueError("no header.json: the run has not finished")
        yield str(path), _object(log.read("header.json"))
        for name in names:
            if name.startswith("samples/") and name.endswith(".json"):
                yield f"{path} {name}", _object(log.read(name))


def _of_json(path: Path) -> Iterator[tuple[str, Row]]:
    log = _object(path.read_bytes())
    yield str(path), log
    samples = log.get("samples")
    for number, row in enumerate(samples if isinstance(samples, list) else [], start=1):
        yield f"{path} sample {number}", row if isinstance(row, Mapping) else {}


def _object(content: bytes) -> Row:
    value = json.loads(content)  # accepts NaN, which is the value of a sample without a score
    if not isinstance(value, Mapping):
        raise ValueError(f"{describe(value)} instead of an object")
    return value
