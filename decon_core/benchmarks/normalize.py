"""Build the table of records from a recipe and its rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from decon_core.benchmarks.fields import FieldError, Row, describe, plain, text_of, value_at
from decon_core.benchmarks.files import files_by_split
from decon_core.benchmarks.hub import EVERY, configs_of, read_hub_rows
from decon_core.benchmarks.normalized import (
    benchmark_of,
    fingerprint_of,
    is_record,
    read_normalized,
)
from decon_core.benchmarks.readers import read_rows
from decon_core.benchmarks.recipe import (
    ArrayAnswer,
    FieldText,
    LocalSource,
    PromptArray,
    Prompts,
    Recipe,
    TranslationPair,
)
from decon_core.benchmarks.texts import Answers, answers_in, array_at, text_in
from decon_core.errors import Problem, RecordError
from decon_core.schemas import RECORDS
from decon_core.wording import counted

# Different ones; 19 problems and a count make the 20 lines of an error.
_N_PROBLEMS_SHOWN = 19


def normalize(recipe: Recipe, *, base: Path, limit: int | None = None) -> pa.Table:
    """Return all records of a benchmark, in the order of splits, rows and choices.

    Local paths are relative to `base`. With `limit`, only that many items of every split. Raises
    `RecordError` with all problems.
    """
    return normalize_files(recipe, files_by_split(recipe, base=base), limit=limit)


def normalize_files(
    recipe: Recipe, files: Mapping[str, Sequence[Path]], *, limit: int | None = None
) -> pa.Table:
    """Return the records of a benchmark in these files, by split, or on the hub."""
    tables: list[pa.Table] = []
    problems: list[Problem] = []
    uses = Counter(file for names in files.values() for file in names)
    for split in recipe.splits:
        n_instances, last = 0, None
        for origin, config, rows in _sources(recipe, split, files.get(split, ())):
            left = None if limit is None else limit - n_instances
            if left is not None and left <= 0 and recipe.questions is not None:
                # Only files of records go on: the next may begin with the rest of the last item.
                break
            is_shared = uses[Path(origin)] > 1
            batch = _Batch(recipe, split, origin, config, n_instances, left, is_shared, last)
            tables.append(batch.read(rows))
            problems += batch.problems()
            n_instances, last = batch.next_instance, batch.last
        if n_instances == 0 and not problems:
            where = f"{recipe.name} split {split!r}"
            remedy = (
                "An empty split would count as clean: remove it from `splits`, or fix the file."
            )
            problems.append(Problem(where, "no rows", "at least one row", remedy))
    RecordError.raise_for(dict.fromkeys(problems))  # a file of several splits is read for each
    return pa.concat_tables([RECORDS.empty_table(), *tables]).combine_chunks()


def normalize_rows(
    recipe: Recipe, rows: Iterable[Row | Problem], *, split: str, origin: str
) -> pa.Table:
    """Return the records of rows; `origin` names their source in error messages.

    A `Problem` in place of an unreadable row is reported with the others in a `RecordError`.
    """
    source = recipe.source
    if isinstance(source, LocalSource):
        config = source.config
    else:
        is_single = len(source.configs) == 1 and source.configs != (EVERY,)
        config = source.configs[0] if is_single else None
    batch = _Batch(recipe, split, origin, config)
    table = batch.read(rows)
    RecordError.raise_for(batch.problems())
    return table


class _Last(NamedTuple):
    """A normalized record: its item, as its file names it, and its texts."""

    item: tuple[object, ...]
    sub_index: int
    texts: tuple[str | None, ...]

    def goes_on_in(self, other: _Last, *, index: int | None, is_other_file: bool) -> bool:
        """Return whether `other`, which follows, is of the same item.

        A file that counts anew begins with 0 or 1; its first item is another, if its texts are.
        """
        if self.item != other.item or not is_other_file:
            return self.item == other.item
        has_more_of_it = self.texts == other.texts or other.sub_index > self.sub_index
        return index is not None and (has_more_of_it or index not in (0, 1))


def _sources(
    recipe: Recipe, split: str, files: Iterable[Path]
) -> Iterator[tuple[str, str | None, Iterable[Row | Problem]]]:
    """Yield the sources of a split: name, config and rows of each file or hub config."""
    source = recipe.source
    if isinstance(source, LocalSource):
        for file in files:
            yield str(file), source.config, read_rows(file, columns=source.columns)
        return
    for config in configs_of(source, where=recipe.name):
        name = "/".join(filter(None, (source.path, config, split)))
        yield name, config, read_hub_rows(source, config=config, split=split, where=recipe.name)


class _Records:
    """Records as columns: a dictionary for each record would take three times as long."""

    # What the records of a question have in common.
    _SHARED = ("config", "instance_index", "sub_index", "passage", "question", "extras")

    def __init__(self) -> None:
        self._questions: list[tuple[Any, ...]] = []
        self._n_answers: list[int] = []  # per question
        self._choice_indices: list[int | None] = []
        self._answers: list[str | None] = []
        self._are_correct: list[bool | None] = []

    def add(
        self,
        answers: Mapping[str | None, bool | None],
        choice_indices: Iterable[int | None],
        *,
        config: str | None,
        instance_index: int,
        sub_index: int | None,
        passage: str | None,
        question: str,
        extras: Mapping[str, object],
    ) -> None:
        """Add a question: a record for each answer, None for a question without answers."""
        kept = json.dumps(extras, ensure_ascii=False, sort_keys=True) if extras else None
        self._questions.append((config, instance_index, sub_index, passage, question, kept))
        self._n_answers.append(len(answers))
        self._choice_indices += choice_indices
        self._answers += answers
        self._are_correct += answers.values()

    def table(self, benchmark: str, split: str) -> pa.Table:
        shared = {
            name: [*chain.from_iterable(map(repeat, values, self._n_answers))]
            for name, *values in zip(self._SHARED, *self._questions, strict=True)
        }
        texts = (shared["passage"], shared["question"], self._answers)
        columns = {
            "benchmark": pa.repeat(benchmark, len(self._answers)),
            "split": pa.repeat(split, len(self._answers)),
            "choice_index": self._choice_indices,
            "is_correct": self._are_correct,
            "answer": self._answers,
            "fingerprint": [*map(fingerprint_of, *texts)],
        }
        return pa.table(shared | columns, schema=RECORDS)


@dataclass
class _Batch:
    """The records and problems of one file, or of one split of one config on the hub."""

    recipe: Recipe
    split: str
    origin: str
    config: str | None
    next_instance: int = 0
    limit: int | None = None
    is_shared: bool = False  # the file contains several splits, so each row must name its split
    last: _Last | None = None  # the record before, which may be of the same item
    _records: _Records = field(default_factory=_Records)
    _problems: dict[object, Problem] = field(default_factory=dict)  # the first of its kind
    _n_alike: Counter[object] = field(default_factory=Counter)
    _n_problems: int = 0
    _unseen_extras: set[str] = field(default_factory=set)

    def read(self, rows: Iterable[Row | Problem]) -> pa.Table:
        try:
            if self.recipe.questions is None:
                self._read_normalized(rows)
            else:
                self._read_raw(rows)
        except RecordError as error:  # the file is damaged from here on
            for problem in error.problems:
                self._add(problem)
        return self._records.table(self.recipe.name, self.split)

    def problems(self) -> list[Problem]:
        """Return the problems, one for all rows that have the same."""
        shown = []
        for kind, problem in self._problems.items():
            n_later = self._n_alike[kind] - 1
            later = f", also in {counted(n_later, 'later row')}" if n_later else ""
            shown.append(replace(problem, found=problem.found + later))
        n_more = self._n_problems - sum(self._n_alike[kind] for kind in self._problems)
        if n_more:
            expected = "rows that match the recipe"
            shown.append(Problem(self.origin, f"{n_more} more problems", expected))
        return shown

    def _add(self, problem: Problem, *, kind: object = None) -> None:
        kind = kind or problem
        self._n_problems += 1
        self._n_alike[kind] += 1
        if len(self._problems) < _N_PROBLEMS_SHOWN:
            self._problems.setdefault(kind, problem)

    def _read_raw(self, rows: Iterable[Row | Problem]) -> None:
        self._unseen_extras = set(self.recipe.extra_fields)
        number = 0
        for number, row in enumerate(rows, start=1):
            if self.limit is not None and number > self.limit:
                break
            if isinstance(row, Problem):
                self._add(row)
            elif is_record(row):  # each answer would become an item, and `is_correct` be lost
                found = (
                    "a normalized record (eval_key, split, question, fingerprint), but the recipe "
                    f"{self.recipe.name!r} is for raw rows"
                )
                remedy = (
                    "Remove prompt, passage and answers from the recipe: records are read as they "
                    "are (docs/recipes.md, Files of records)"
                )
                expected = "raw rows, or a recipe without a prompt"
                self._add(Problem(f"{self.origin} row {number}", found, expected, remedy))
                return
            else:
                self._add_records(number, row)
            self.next_instance += 1
        for name in sorted(self._unseen_extras) if number else ():
            where = f"{self.origin}, extra field {name!r}"
            remedy = "Correct or remove it in extra_fields (or tests)."
            self._add(Problem(where, "no row has this field", remedy=remedy))

    def _add_records(self, number: int, row: Row) -> None:
        """Add the records of a row, or the problems of all its parts."""
        parts: list[Any] = []
        for part in (self._questions, self._passage, self._config, self._extras):
            try:
                parts.append(part(row))
            except FieldError as error:
                self._add_error(number, error)
        if len(parts) < 4:
            return
        questions, passage, config, extras = parts
        pair = self.recipe.questions if isinstance(self.recipe.questions, TranslationPair) else None
        for question, sub_index, answers in questions:
            self._records.add(
                answers or {None: None},
                range(len(answers)) if len(answers) > 1 else (None,),
                config=config,
                instance_index=self.next_instance,
                sub_index=sub_index,
                passage=passage,
                question=question,
                extras=extras | pair.languages(sub_index) if pair else extras,
            )

    def _add_error(self, number: int, error: FieldError) -> None:
        where = f"{self.origin} row {number}, field {error.field!r}"
        problem = Problem(where, error.found, error.expected, error.remedy)
        self._add(problem, kind=(error.field, error.found, error.expected))

    def _questions(self, row: Row) -> list[_Question]:
        return _questions_in(row, self.recipe, self.split)

    def _passage(self, row: Row) -> str | None:
        source = self.recipe.passage
        return None if source is None else text_in(row, source)

    def _config(self, row: Row) -> str | None:
        name = self.recipe.dataset_name_field
        if name is None:
            return self.config
        return text_in(row, FieldText(field=name) if isinstance(name, str) else name) or self.config

    def _extras(self, row: Row) -> dict[str, object]:
        extras = {}
        for name in self.recipe.extra_fields:
            try:
                value = value_at(row, name)
            except FieldError:
                continue  # `_read_raw` reports fields that no row has
            self._unseen_extras.discard(name)
            extras[name] = plain(value, name)
        return extras

    def _read_normalized(self, rows: Iterable[Row | Problem]) -> None:
        """Read records and renumber their items: files of several configs each start from 0.

        An item whose records go on in the next file stays a single item.
        """
        first_instance, last, is_first = self.next_instance, self.last, True
        for number, row in enumerate(rows, start=1):
            if isinstance(row, Problem):
                self._add(row)
                continue
            name = benchmark_of(row)
            if self.recipe.eval_key is not None and name != self.recipe.eval_key:
                continue
            record = None
            try:
                record = read_normalized(row, requires_split=self.is_shared)
            except FieldError as error:
                self._add_error(number, error)
            if record is None or record.pop("split") not in (None, self.split):
                continue
            given = record["instance_index"]
            item = (name, record["config"], number if given is None else given)
            texts = (record["passage"], record["question"])
            current = _Last(item, record["sub_index"] or 0, texts)
            if not (last and last.goes_on_in(current, index=given, is_other_file=is_first)):
                if self.limit is not None and self.next_instance - first_instance == self.limit:
                    return
                self.next_instance += 1
            self.last = last = current
            is_first = False
            record["instance_index"] = self.next_instance - 1
            record["config"] = record["config"] or self.config
            if given not in (None, record["instance_index"]):
                record["extras"]["eval_instance_index"] = given
            answers = {record.pop("answer"): record.pop("is_correct")}
            self._records.add(answers, [record.pop("choice_index")], **record)


_Question = tuple[str, int | None, Answers]  # text, number and answers


def _questions_in(row: Row, recipe: Recipe, split: str) -> list[_Question]:
    """Return the questions of a row, each with its number and its answers."""
    has_answers = split not in recipe.no_answer_splits
    match recipe.questions:
        case Prompts(texts=texts):
            questions = [text_in(row, text) or "" for text in texts]
            answers = answers_in(row, recipe.answers, has_answers=has_answers)
            numbers = range(len(texts)) if len(texts) > 1 else (None,)
            return [*zip(questions, numbers, repeat(answers), strict=False)]
        case PromptArray(array=array):
            values = value_at(row, array)
            if not isinstance(values, list | tuple | None):
                raise FieldError(array, describe(values), "a list of questions")
            if has_answers:
                _require_parallel(row, recipe, len(values or ()), array)
            questions = [text_of(value, array) or "" for value in values or ()]
            find = partial(answers_in, row, recipe.answers, has_answers=has_answers)
            return [(text, n, find(position=n)) for n, text in enumerate(questions)]
        case TranslationPair() as pair:
            source, target = text_in(row, pair.source), text_in(row, pair.target)
            there = (source or "", 0 if pair.both_directions else None, _answer(target))
            back = (target or "", 1, _answer(source))
            return [there, back] if pair.both_directions else [there]
    return []


def _answer(text: str | None) -> Answers:
    return {text: None} if text else {}


def _require_parallel(row: Row, recipe: Recipe, n_questions: int, questions: str) -> None:
    """Raise `FieldError` if a list of answers is not as long as the list of questions."""
    for answer in recipe.answers:
        if not isinstance(answer, ArrayAnswer):
            continue
        for name in filter(None, (answer.array, answer.choices)):
            values = array_at(row, name, is_optional=answer.is_optional)
            if values is not None and len(values) != n_questions:
                expected = f"one element for each of the {n_questions} questions in {questions!r}"
                raise FieldError(name, describe(values), expected)
