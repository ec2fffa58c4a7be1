"""Read rows of an unknown benchmark: which field asks, which choices there are, what answers.

Names count by their words, in any spelling; values by kind, length, and how often they repeat. An
answer that points to a choice is tried on the rows: it must point to one in each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from decon_core.benchmarks.fields import Row
from decon_core.benchmarks.languages import language_in
from decon_core.discovery.choices import (
    Choices,
    choices_among,
    label_path,
    numbered_groups,
    ways_to_point,
)
from decon_core.discovery.columns import Column, columns_of, words_of
from decon_core.discovery.field_words import (
    ANSWERS,
    ASKS,
    CHOICES,
    CLASSES,
    CODE,
    MAY_ASK,
    NO_TEXT,
    PAIRED,
    PASSAGES,
    WRONG,
)
from decon_core.discovery.reading import OpenChoice, Reading, field_names, records_of

_N_TRIED = 200  # rows, when a combination of fields is tried
_MARGIN = 1.0  # a question that is not better by this is doubtful
_CONVINCING = 2.0
# How solutions mark their final answer, and the transform that extracts it.
_FINAL_ANSWERS = {"####": "after_marker", r"\boxed{": "boxed"}
_LENGTH_OF_PASSAGE = 150  # characters, on average
_ANSWERING = ANSWERS | WRONG | CODE
_ROLES = ASKS | CHOICES | _ANSWERING


def has_role(column: Column) -> bool:
    """Return whether a field has the name and the values of a question, a choice or an answer."""
    is_text = bool(column.texts) and not column.has_labels and not column.repeats
    is_choices = column.kind == "object" and column.is_called(CHOICES)
    return is_named(column) and (is_text or is_choices)


def is_named(column: Column) -> bool:
    """Return whether a field has the name of a question, a choice or an answer."""
    return column.is_called(_ROLES) and not column.is_called(NO_TEXT)


def read_by_evidence(rows: Sequence[Row]) -> Reading | OpenChoice:
    """Return how to read the rows, or which fields may be the question if none is convincing."""
    columns = [column for column in columns_of(rows) if column.values]
    return _translation(columns) or _Rows(rows[:_N_TRIED], columns).reading()


# Questions ----------------------------------------------------------------------------------------


def _score(column: Column) -> float:
    """Return how well name and values of a field suit a question."""
    score = 3.0 if column.is_called(ASKS) else 1.0 if column.is_called(MAY_ASK) else 0.0
    score -= 0.25 * (sum(map(str.isalpha, column.words)) - 1)
    score -= 3.0 * column.is_called(NO_TEXT) + 2.0 * column.is_called(_ANSWERING)
    score += 1.0 * column.is_prose + 0.5 * column.is_asking + 0.5 * ("hypothesis" in column.words)
    score -= 2.0 * column.repeats + 2.0 * (column.share < 0.8)
    return score - (0.0 if column.is_prose else 1.0 if column.n_characters >= 10 else 3.0)


def _is_question(column: Column) -> bool:
    kinds = ("text", "chat", "list of text", "list of object", "list of chat")
    return column.kind in kinds and not column.is_sql


def _prompt(column: Column) -> dict[str, object] | None:
    """Return the keys of a recipe for a question in this field; None if no recipe reads it."""
    match column.kind:
        case "text":
            return {"prompt": column.name}
        case "chat":
            return {"prompt": {"messages": column.name, "roles": ["user"]}}
        case "list of chat":
            return {"prompt": {"messages": f"{column.name}.0", "roles": ["user"]}}
        case "list of text":
            return {"prompts": {"array": column.name}}
        case "list of object" if _has_content(column):
            return {"prompt": {"messages": column.name, "content_field": "content"}}
    return None


def _has_content(column: Column) -> bool:
    items = [item for value in column.values if isinstance(value, list) for item in value]
    return all(isinstance(item, Mapping) and "content" in item for item in items)


# Translations -------------------------------------------------------------------------------------


def _translation(columns: Sequence[Column]) -> Reading | None:
    """Return the reading of a pair of texts whose names differ in the language only."""
    pairs: defaultdict[str, list[Column]] = defaultdict(list)
    for column in columns:
        named = language_in(column.name)
        if named and column.kind == "text" and column.is_prose:
            pairs[named.prefix].append(column)
    pair = next((group for group in pairs.values() if len(group) >= 2), None)
    if pair is None:
        return None
    source = next((column for column in pair if column.is_called({"en", "eng"})), pair[0])
    target = next(column for column in pair if column is not source)
    keys = {"source": source.name, "target": target.name, "both_directions": True}
    others = ", ".join(column.name for column in pair if column not in (source, target))
    doubts = (f"only two of the languages are read; there are also {others}",) if others else ()
    return Reading(keys, (f"translation: {source} and {target} are named after languages",), doubts)


# Rows ---------------------------------------------------------------------------------------------


class _Pointer(NamedTuple):
    """A field that names the correct choice, and the way it does it."""

    column: Column
    kind: str
    transform: str | None


class _Rows:
    """Some rows, their fields, and what was decided about them so far."""

    def __init__(self, rows: Sequence[Row], columns: Sequence[Column]) -> None:
        self.rows, self.columns = rows, columns
        self.why: list[str] = []
        self.doubts: list[str] = []
        self.choices: tuple[str, ...] = ()  # the fields that are read as choices

    def reading(self) -> Reading | OpenChoice:
        prompt = self._question()
        if prompt is None:
            texts = [column for column in self.columns if _is_question(column) and column.texts]
            prose = [text for text in texts if not text.is_called(NO_TEXT) or text.is_prose]
            likely = sorted(prose or texts, key=lambda text: (-_score(text), -text.n_characters))
            names = tuple(text.name for text in likely)
            return OpenChoice(names, tuple(map(str, likely or self.columns)))
        keys = dict(prompt)
        choices = self._choices(keys)
        keys |= self._with_passage(keys, choices)
        choices = choices or self._choices_of_array(keys)
        if choices:
            keys["answers"] = [choices]
        elif answers := self._free_answers(keys):
            keys["answers"] = answers
        self._name_the_rest(keys)
        return Reading(keys, tuple(self.why), tuple(self.doubts))

    def _question(self) -> dict[str, object] | None:
        """Return the keys for the most convincing question; None if there is none."""
        grouped = {field for choices in choices_among(self.columns) for field in choices.columns}
        columns = [
            column for column in self.columns if _is_question(column) and self._is_usable(column)
        ]
        ranked = sorted(columns, key=lambda column: -_score(column) + (column.name in grouped))
        usable = [
            (column, keys) for column in ranked if (keys := _prompt(column)) and self._fits(keys)
        ]
        if not usable:
            return None
        best, keys = usable[0]
        others = [column for column, _ in usable[1:] if not column.is_called(ANSWERS | PASSAGES)]
        if joined := self._joined(best):
            return joined
        if _score(best) < _CONVINCING:
            return self._only_prose([column for column, _ in usable])
        self.why.append(f"question: {best}, chosen by its name and texts")
        close = [other for other in others if _score(best) - _score(other) < _MARGIN]
        if close:
            self.doubts.append(f"the question may also be {_listed(close)}")
        if best.kind == "list of chat":
            self.doubts.append(f"only the first conversation of {best.name} is read")
        return keys

    def _is_usable(self, column: Column) -> bool:
        """Return whether a field is outside of lists of objects, or these hold an answer, too."""
        if not self._is_in_a_list(column):
            return True
        beside = [other for other in self.columns if other.parent == column.parent]
        return any(other.is_called(ANSWERS) for other in beside if other is not column)

    def _is_in_a_list(self, column: Column) -> bool:
        """Return whether a field is in a list of objects."""
        return any(
            other.name == column.parent and other.kind == "list of object" for other in self.columns
        )

    def _only_prose(self, columns: Sequence[Column]) -> dict[str, object] | None:
        """Return the keys for the only field that asks, or that has prose, without a name for it.

        A field named otherwise is never the question.
        """
        named = NO_TEXT | _ANSWERING
        free = [column for column in columns if not column.is_called(named) and column.share >= 0.8]
        asking = [column for column in free if column.is_asking and not column.repeats]
        prose = [column for column in free if column.is_prose and not column.repeats]
        only = asking if len(asking) == 1 else prose
        if len(only) != 1:
            return None
        reason = "the only field with questions" if asking else "the only field with prose"
        self.why.append(f"question: {only[0]}, {reason}")
        self.doubts.append(f"{only[0].name} is not a typical name for a question")
        return _prompt(only[0])

    def _joined(self, best: Column) -> dict[str, object] | None:
        """Return the keys for numbered texts that are compared: sentence1 and sentence2."""
        group = next(
            (group for group in numbered_groups(self.columns).values() if best in group), []
        )
        if len(group) < 2 or not all(column.is_called(PAIRED) for column in group):
            return None
        names = [column.name for column in group]
        self.why.append(f"question: {', '.join(names)}, which have related names")
        self.doubts.append("these fields are read as one question")
        return {"prompt": {"fields": names}}

    def _fits(self, keys: Mapping[str, object]) -> bool:
        return bool(records_of(keys, self.rows))

    # Answers --------------------------------------------------------------------------------------

    def _choices(self, keys: Mapping[str, object]) -> dict[str, object] | None:
        """Return the answer that expands the choices, with the field naming the correct choice."""
        used = {*field_names([*keys.values()])}
        unsure: list[Choices] = []
        for choices in choices_among(self.columns):
            if used & {*choices.columns}:
                continue
            pointers = self._pointers(choices, keys)
            named = [pointer for pointer in pointers if pointer.column.is_called(ANSWERS)]
            sure = named or pointers
            if sure and (choices.is_named or sure[0].column.is_called(ANSWERS)):
                return self._pointed(choices, sure)
            if choices.is_named and self._records(
                choices.expanded(None, "correct_index", None), keys
            ):
                unsure.append(choices)
        if not unsure:
            return None
        self.why.append(f"choices: {', '.join(unsure[0].columns)}, chosen by their names")
        self.doubts.append("no field says which choice is correct")
        self.choices = unsure[0].columns
        return unsure[0].expanded(None, "correct_index", None)

    def _choices_of_array(self, keys: Mapping[str, object]) -> dict[str, object] | None:
        """Return the answer that expands the choices of each question in a list of questions."""
        if "prompts" not in keys:
            return None
        options = [each for each in self.columns if each.kind == "list of list of text"]
        labels = [each for each in self.columns if each.is_called(ANSWERS) and each not in options]
        for choices, label in product(options, labels):
            answer: dict[str, object] = {"array": label.name, "choices": choices.name}
            has_correct: dict[object, bool] = {}
            for record in self._records(answer, keys):
                question = record["instance_index"], record["sub_index"]
                has_correct[question] = has_correct.get(question) or bool(record["is_correct"])
            if has_correct and all(has_correct.values()):
                self.why.append(f"choices: {choices}; {label} points to one for every question")
                return answer
        return None

    def _pointed(self, choices: Choices, pointers: Sequence[_Pointer]) -> dict[str, object]:
        column, kind, transform = pointers[0]
        ways = [
            pointer.transform
            for pointer in pointers
            if (pointer.column, pointer.kind) == (column, kind)
        ]
        self.choices = choices.columns
        by = "is the text of" if kind == "correct_text" else "points to"
        self.why.append(f"choices: {', '.join(choices.columns)}; {column} {by} one in every row")
        if len(ways) > 1:
            shown = ", ".join(way or "none" for way in ways)
            self.doubts.append(f"several label_transforms fit {column.name}: {shown}")
        if not column.is_called(ANSWERS):
            self.doubts.append(f"{column.name} is not a typical name for an answer")
        return choices.expanded(label_path(column), kind, transform)

    def _pointers(self, choices: Choices, keys: Mapping[str, object]) -> list[_Pointer]:
        """Return the fields that name a correct choice in every row, with the way they do it."""
        columns = [column for column in self.columns if column.name not in choices.columns]
        columns.sort(
            key=lambda column: (-len(ANSWERS.intersection(column.words)), len(column.words))
        )
        pointers: dict[object, _Pointer] = {}
        for column in columns:
            for kind, transform in ways_to_point(column, choices):
                answer = choices.expanded(label_path(column), kind, transform)
                correct = tuple(record["is_correct"] for record in self._records(answer, keys))
                if any(correct) and not all(correct):  # ways with the same result are one
                    pointers.setdefault((column, correct), _Pointer(column, kind, transform))
        return [*pointers.values()]

    def _records(
        self, answer: Mapping[str, object], keys: Mapping[str, object]
    ) -> list[dict[str, object]]:
        return records_of({**keys, "answers": [answer]}, self.rows)

    def _free_answers(self, keys: Mapping[str, object]) -> list[object]:
        """Return the fields with answers, those with wrong ones marked."""
        used = {*field_names([*keys.values()])}
        columns = [column for column in self._outside(used) if _answers(column)]
        if all(column.is_called(WRONG) for column in columns):
            return self._replies(keys)
        is_marked = any(column.is_called(WRONG) for column in columns)
        answers: list[object] = []
        for column in columns:
            answer = _free_answer(column, is_marked=is_marked, prompt=keys)
            if records_of({**keys, "answers": [*answers, answer]}, self.rows):
                answers.append(answer)
                self.why.append(f"answer: {column}, chosen by its name")
                if self._is_in_a_list(column):
                    self.doubts.append(f"some of the texts in {column.name} may be wrong answers")
                if _is_class_name(column) and not column.is_prose:
                    self.doubts.append(f"{column.name} may be a class label instead of an answer")
                for mark, transform in _FINAL_ANSWERS.items():
                    if column.kind == "text" and all(mark in text for text in column.texts):
                        answers.append({"field": column.name, "transform": transform})
                        self.why.append(f"answer: also what follows {mark} in {column.name}")
        return answers

    def _replies(self, keys: Mapping[str, object]) -> list[object]:
        """Return the turns of the assistant, if the question is a conversation that has them."""
        prompt = keys.get("prompt")
        if not isinstance(prompt, Mapping) or "roles" not in prompt:
            return []
        answer = {**prompt, "roles": ["assistant"]}
        if not any(record["answer"] for record in self._records(answer, keys)):
            return []
        self.why.append(f"answer: the assistant's text in {prompt['messages']}")
        named = [column for column in self.columns if {*words_of(column.name)} & ANSWERS]
        also = f"; {_listed(named)} may be the answer instead" if named else ""
        self.doubts.append(f"the assistant's text may not be the right answer{also}")
        return [answer]

    # Passage, and what is left --------------------------------------------------------------------

    def _with_passage(
        self, keys: Mapping[str, object], choices: Mapping[str, object] | None
    ) -> dict[str, object]:
        """Return the passage: by its name, or by that of a question if it is another field's."""
        used = {*field_names([*keys.values(), choices])}
        columns = [column for column in self._outside(used) if may_be_passage(column)]
        columns.sort(key=lambda column: not column.is_called(PASSAGES))
        for column in columns:
            listed = column.kind == "list of text"
            passage = {"field": column.name, "transform": "join"} if listed else column.name
            if self._fits({**keys, "passage": passage}):
                self.why.append(f"passage: {column}, chosen by its name")
                if not column.is_called(PASSAGES):
                    self.doubts.append(f"{column.name} may not be a passage")
                return {"passage": passage}
        return {}

    def _name_the_rest(self, keys: Mapping[str, object]) -> None:
        """Note the texts that are not read: one of them may be the answer."""
        rest = self._outside({*field_names([*keys.values()]), *self.choices})
        parents = {column.name for column in rest}
        rest = [column for column in rest if column.parent not in parents]
        if rest:
            self.why.append(f"not read: {_listed(rest)}")
        named = [column for column in rest if has_role(column) or may_be_passage(column)]
        if named:
            self.doubts.append(f"{_listed(named)} may belong to the question or the answer")
        for column in rest:
            is_long = column.n_characters >= _LENGTH_OF_PASSAGE and not column.is_called(NO_TEXT)
            if is_long and column not in named:
                self.doubts.append(f"{column.name} is not read, but may be a passage: it is long")
        if "answers" not in keys:
            self.doubts.append("no field looks like an answer by name and values")

    def _outside(self, used: set[str]) -> list[Column]:
        """Return the fields that are not used, that contain no used one, and are in none."""
        return [
            column
            for column in self.columns
            if not any(
                f"{name}.".startswith(f"{column.name}.") or column.name.startswith(f"{name}.")
                for name in used
            )
        ]


def may_be_passage(column: Column) -> bool:
    """Return whether a field has a name and texts of what a question may be about."""
    others = NO_TEXT | _ANSWERING | {"question", "prompt"}
    is_called_so = column.is_called(PASSAGES | ASKS | MAY_ASK) and not column.is_called(others)
    return is_called_so and column.is_prose and not column.is_sql


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _answers(column: Column) -> bool:
    """Return whether a field has the name and the values of an answer in words or numbers."""
    if column.is_sql and column.is_called(_ROLES):
        return column.kind == "text"
    if not column.is_called(_ANSWERING) or len(column.words) > 3:
        return False
    if column.is_called(NO_TEXT | ASKS | CHOICES) or NO_TEXT.intersection(words_of(column.parent)):
        return False
    is_class = _is_class_name(column) and (column.repeats or column.kind != "text")
    kinds = ("text", "number", "boolean", "list of text")
    return not is_class and not column.has_letters and column.kind in kinds


def _is_class_name(column: Column) -> bool:
    """Return whether a field has only such a name of an answer that classes have as well."""
    return _ANSWERING.intersection(column.words) <= CLASSES


def _free_answer(column: Column, *, is_marked: bool, prompt: Mapping[str, object]) -> object:
    if "prompts" in prompt and column.kind.startswith("list of"):
        return {"array": column.name, **({"optional": True} if column.share < 1 else {})}
    table: dict[str, object] = {"field": column.name}
    table |= {"transform": column.parser} if column.parser else {}
    table |= {"optional": True} if column.share < 1 else {}
    table |= {"is_correct": not column.is_called(WRONG)} if is_marked else {}
    return table if len(table) > 1 else column.name
