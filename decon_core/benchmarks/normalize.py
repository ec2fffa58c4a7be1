"""Build the table of records from a recipe and its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.benchmarks.answers import candidates_in
from decon_core.benchmarks.choices import Candidate
from decon_core.benchmarks.fields import FieldError, Row, describe, plain, text_of, value_at
from decon_core.benchmarks.files import files_by_split
from decon_core.benchmarks.hub import read_hub_rows
from decon_core.benchmarks.normalized import Normalized, benchmark_of, is_record, read_normalized
from decon_core.benchmarks.prompts import text_in
from decon_core.benchmarks.readers import read_rows
from decon_core.benchmarks.recipe import (
    ArrayAnswer,
    LocalSource,
    PromptArray,
    Prompts,
    Recipe,
    TranslationPair,
)
from decon_core.benchmarks.record_table import Record, extras_text, fingerprint_of, table_of
from decon_core.errors import Problem, RecordError
from decon_core.schemas import RECORDS

# A wrong field name is wrong in every row. 19 problems and a count make the 20 lines of an error.
_N_PROBLEMS_SHOWN = 19


def normalize(recipe: Recipe, *, base: Path, limit: int | None = None) -> pa.Table:
    """Return all records of a benchmark, in the order of splits, rows and choices.

    Local paths are relative to `base`. With `limit`, only that many items of every split. Raises
    `RecordError` with all problems.
    """
    files = files_by_split(recipe, base=base)
    tables: list[pa.Table] = []
    problems: list[Problem] = []
    uses = Counter(file for names in files.values() for file in names)
    for split in recipe.splits:
        n_instances = 0
        for origin, config, rows in _sources(recipe, split, files.get(split, ())):
            left = None if limit is None else limit - n_instances
            if left is not None and left <= 0:
                break
            batch = _Batch(recipe, split, origin, config, n_instances, left)
            batch.is_shared = uses[Path(origin)] > 1
            batch.read(rows)
            tables.append(table_of(batch.records))
            problems += batch.problems()
            n_instances = batch.next_instance
        if n_instances == 0 and not problems:
            problems.append(_empty_split(recipe, split))
    if problems:
        raise RecordError(problems)
    return pa.concat_tables([RECORDS.empty_table(), *tables]).combine_chunks()


def normalize_rows(
    recipe: Recipe,
    rows: Iterable[Row | Problem],
    *,
    split: str,
    origin: str,
    config: str | None = None,
    first_instance: int = 0,
) -> pa.Table:
    """Return the records of rows; `origin` names their source in error messages.

    A `Problem` in place of an unreadable row is reported with the others in a `RecordError`.
    """
    batch = _Batch(recipe, split, origin, config or _config_of(recipe), first_instance, None)
    batch.read(rows)
    if problems := batch.problems():
        raise RecordError(problems)
    return table_of(batch.records)


def _config_of(recipe: Recipe) -> str | None:
    if isinstance(recipe.source, LocalSource):
        return recipe.source.config
    return recipe.source.configs[0] if len(recipe.source.configs) == 1 else None


_Source = tuple[str, str | None, Iterable[Row | Problem]]


def _sources(recipe: Recipe, split: str, files: Iterable[Path]) -> Iterator[_Source]:
    """Yield the sources of a split: name, config and rows of each file or hub config."""
    source = recipe.source
    if isinstance(source, LocalSource):
        for file in files:
            yield str(file), source.config, read_rows(file)
        return
    read = partial(read_hub_rows, source, split=split, where=recipe.name)
    for config in source.configs or (None,):
        name = "/".join(part for part in (source.path, config, split) if part)
        yield name, config, read(config=config)


def _empty_split(recipe: Recipe, split: str) -> Problem:
    return Problem(
        where=f"{recipe.name} split {split!r}",
        found="no rows",
        expected="at least one row",
        remedy="An empty split would count as clean: remove it from `splits`, or fix the file.",
    )


@dataclass
class _Batch:
    """The records and problems of one file, or of one split of one config on the hub."""

    recipe: Recipe
    split: str
    origin: str
    config: str | None
    next_instance: int
    limit: int | None
    # The file contains several splits, so each row must name its split.
    is_shared: bool = False
    records: list[Record] = field(default_factory=list)
    _problems: list[Problem] = field(default_factory=list)
    _n_problems: int = 0
    _unseen_extras: set[str] = field(default_factory=set)

    def read(self, rows: Iterable[Row | Problem]) -> None:
        try:
            if self.recipe.questions is None:
                self._read_normalized(rows)
            else:
                self._read_raw(rows)
        except RecordError as error:  # the file is damaged from here on
            for problem in error.problems:
                self._add(problem)

    def problems(self) -> list[Problem]:
        n_more = self._n_problems - len(self._problems)
        if n_more == 0:
            return self._problems
        rest = Problem(self.origin, f"{n_more} more problems", "rows that match the recipe")
        return [*self._problems, rest]

    def _add(self, problem: Problem) -> None:
        self._n_problems += 1
        if len(self._problems) < _N_PROBLEMS_SHOWN:
            self._problems.append(problem)

    def _read_raw(self, rows: Iterable[Row | Problem]) -> None:
        self._unseen_extras = set(self.recipe.extra_fields)
        number = 0
        for number, row in enumerate(rows, start=1):
            if self.limit is not None and number > self.limit:
                break
            if isinstance(row, Problem):
                self._add(row)
            elif is_record(row):
                self._add(self._unexpected_record(number))
                return
            else:
                self._add_records(number, row)
            self.next_instance += 1
        if number:
            for name in sorted(self._unseen_extras):
                self._add(
                    Problem(
                        where=f"{self.origin}, extra field {name!r}",
                        found="no row that has it",
                        expected="at least one row with it",
                        remedy="Correct or remove it in extra_fields (or tests).",
                    )
                )

    def _unexpected_record(self, number: int) -> Problem:
        """As a raw row, each answer would become an item and `is_correct` would be lost."""
        return Problem(
            f"{self.origin} row {number}",
            f"a normalized record (eval_key, split, question, fingerprint), but the recipe "
            f"{self.recipe.name!r} is for raw rows",
            "raw rows, or a recipe without a prompt",
            "remove prompt, passage and answers from the recipe: records are read as they are "
            "(docs/recipes.md, Files of records)",
        )

    def _add_records(self, number: int, row: Row) -> None:
        """Add the records of a row, or the problems of all its parts."""
        recipe, before = self.recipe, self._n_problems
        questions: list[_Question] = []
        passage, config = None, self.config
        extras: dict[str, object] = {}
        with self._reporting(number):
            questions = [*_questions_in(row, recipe, self.split)]
        with self._reporting(number):
            passage = text_in(row, recipe.passage) if recipe.passage is not None else None
        if (name := recipe.dataset_name_field) is not None:
            with self._reporting(number):
                config = text_of(value_at(row, name), name) or self.config
        with self._reporting(number):
            extras = self._extras(row)
        for question in questions if self._n_problems == before else ():
            candidates: list[Candidate | None] = [*question.candidates] or [None]
            for choice_index, candidate in enumerate(candidates):
                record = self._record(
                    config=config,
                    instance_index=self.next_instance,
                    sub_index=question.sub_index,
                    choice_index=choice_index if len(candidates) > 1 else None,
                    is_correct=candidate.is_correct if candidate else None,
                    texts=(passage, question.text, candidate.text if candidate else None),
                    extras=extras,
                )
                self.records.append(record)

    @contextmanager
    def _reporting(self, number: int) -> Iterator[None]:
        """Add a `FieldError` to the problems, with the number of its row."""
        try:
            yield
        except FieldError as error:
            where = f"{self.origin} row {number}, field {error.field!r}"
            self._add(Problem(where, error.found, error.expected, error.remedy))

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

    def _record(
        self,
        *,
        texts: tuple[str | None, str, str | None],
        extras: Mapping[str, object],
        **columns: Any,
    ) -> Record:
        passage, question, answer = texts
        return Record(
            benchmark=self.recipe.name,
            split=self.split,
            passage=passage,
            question=question,
            answer=answer,
            fingerprint=fingerprint_of(*texts),
            extras=extras_text(extras),
            **columns,
        )

    def _read_normalized(self, rows: Iterable[Row | Problem]) -> None:
        """Read records and renumber their items: files of several configs each start from 0."""
        current: tuple[object, ...] | None = None
        first_instance = self.next_instance
        for number, row in enumerate(rows, start=1):
            if isinstance(row, Problem):
                self._add(row)
                continue
            name = benchmark_of(row)
            if self.recipe.eval_key is not None and name != self.recipe.eval_key:
                continue
            record = None
            with self._reporting(number):
                record = read_normalized(row, requires_split=self.is_shared)
            if record is None or record.split not in (None, self.split):
                continue
            instance = (name, record.config, number if record.instance is None else record.instance)
            if instance != current:
                if self.limit is not None and self.next_instance - first_instance == self.limit:
                    return
                current = instance
                self.next_instance += 1
            self.records.append(self._record_of(record, self.next_instance - 1))

    def _record_of(self, record: Normalized, instance_index: int) -> Record:
        extras = dict(record.extras)
        if record.instance is not None and record.instance != instance_index:
            extras["eval_instance_index"] = record.instance
        return self._record(
            config=record.config or self.config,
            instance_index=instance_index,
            sub_index=record.sub_index,
            choice_index=record.choice_index,
            is_correct=record.is_correct,
            texts=(record.passage, record.question, record.answer),
            extras=extras,
        )


@dataclass(frozen=True)
class _Question:
    text: str
    sub_index: int | None
    candidates: list[Candidate]


def _questions_in(row: Row, recipe: Recipe, split: str) -> Iterator[_Question]:
    """Yield the questions of a row with their answers."""
    find = partial(
        candidates_in, row, recipe.answers, has_answers=split not in recipe.no_answer_splits
    )
    match recipe.questions:
        case Prompts(texts=texts):
            questions = [text_in(row, text) or "" for text in texts]
            candidates = find()
            for sub_index, question in enumerate(questions):
                yield _Question(question, sub_index if len(texts) > 1 else None, candidates)
        case PromptArray(array=array):
            for position, text in enumerate(_array_of_questions(row, array, recipe, split)):
                yield _Question(text, position, find(position=position))
        case TranslationPair() as pair:
            source, target = text_in(row, pair.source), text_in(row, pair.target)
            yield _one_way(source, target, 0 if pair.both_directions else None)
            if pair.both_directions:
                yield _one_way(target, source, 1)


def _one_way(question: str | None, answer: str | None, sub_index: int | None) -> _Question:
    return _Question(question or "", sub_index, [Candidate(answer)] if answer else [])


def _array_of_questions(row: Row, array: str, recipe: Recipe, split: str) -> list[str]:
    values = value_at(row, array)
    if not isinstance(values, list | tuple | None):
        raise FieldError(array, found=describe(values), expected="a list of questions")
    if split not in recipe.no_answer_splits:
        for answer in recipe.answers:
            if isinstance(answer, ArrayAnswer):
                _check_parallel(row, answer.array, len(values or ()), array)
    return [text_of(value, array) or "" for value in values or ()]


def _check_parallel(row: Row, name: str, n_questions: int, questions: str) -> None:
    values = value_at(row, name)
    if isinstance(values, list | tuple) and len(values) != n_questions:
        raise FieldError(
            name,
            found=describe(values),
            expected=f"one answer for each of the {n_questions} questions in {questions!r}",
        )
