"""Parse the answers of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from decon_core.benchmarks.blocks import Block, Report
from decon_core.benchmarks.parse_texts import (
    parse_label_transform,
    parse_text,
    parse_text_form,
    parse_transforms,
)
from decon_core.benchmarks.recipe import (
    Answer,
    ArrayAnswer,
    ChoicesAnswer,
    IndexedAnswer,
    PlainAnswer,
    PrefixAnswer,
)
from decon_core.benchmarks.yaml_source import Place


def parse_answers(block: Block) -> tuple[Answer, ...]:
    present = [key for key in ("answers", "answer", "solution") if key in block]
    if len(present) > 1:
        block.report.add(block.place, " and ".join(present), "one of answers, answer, solution")
    answers: list[Answer] = []
    for key in present:
        for entry, place in block.entries(key):
            answer = _answer(block.report, entry, place)
            if answer is not None:
                answers.append(answer)
        if block.get(key) == []:
            block.wrong(key, "at least one entry", f"Remove `{key}` if there are no answers.")
    return tuple(answers)


def _answer(report: Report, value: object, place: Place) -> Answer | None:
    if not isinstance(value, Mapping):
        text = parse_text(report, value, place)
        return None if text is None else PlainAnswer(text=text)
    block = Block(value, place, report)
    for key, read in _ANSWER_FORMS.items():
        if key in value:
            block.get(key)
            inner = block if key == "array" else report.block(value[key], (*place, key))
            answer = read(inner) if inner is not None else None
            if inner is not None:
                inner.close()
            block.close()
            return answer
    if "key_field" in value:  # the older way to write `indexed`
        answer = _indexed(block)
        block.close()
        return answer
    return _plain_answer(block)


def _plain_answer(block: Block) -> PlainAnswer | None:
    is_correct = block.flag("is_correct")
    text = parse_text_form(block)
    if text is None:
        return None
    block.close()
    return PlainAnswer(text=text, is_correct=is_correct)


_CORRECT = ("correct_index", "correct_text", "correct_flags")


def _choices(block: Block) -> ChoicesAnswer:
    present = [key for key in _CORRECT if key in block]
    if len(present) != 1:
        block.report.add(
            block.place,
            " and ".join(present) or f"none of {', '.join(_CORRECT)}",
            "exactly one of them",
            "Write `correct_index: null` if the rows do not name the correct choice.",
        )
    if ("field" in block) == ("fields" in block):
        found = "both field and fields" if "field" in block else "neither field nor fields"
        block.report.add(block.place, found, "exactly one of the two")
    return ChoicesAnswer(
        field=block.text("field"),
        fields=block.texts("fields"),
        transforms=parse_transforms(block),
        correct_index=block.text("correct_index"),
        correct_text=block.text("correct_text"),
        correct_flags=block.text("correct_flags"),
        label_transform=parse_label_transform(block),
    )


def _prefix(block: Block) -> PrefixAnswer:
    return PrefixAnswer(
        prefix=block.required_text("prefix", "how the names of the fields begin"),
        suffix_match_field=block.text("suffix_match_field"),
        label_transform=parse_label_transform(block),
    )


def _indexed(block: Block) -> IndexedAnswer:
    prefix, field = block.text("prefix"), block.text("field")
    if (prefix is None) == (field is None):
        found = "neither prefix nor field" if prefix is None else "both prefix and field"
        block.report.add(block.place, found, "exactly one of the two")
    return IndexedAnswer(
        key_field=block.required_text("key_field", "the field with the index or label"),
        prefix=prefix,
        field=field,
        label_transform=parse_label_transform(block),
    )


def _array(block: Block) -> ArrayAnswer:
    return ArrayAnswer(array=block.required_text("array", "the field with the answers"))


_ANSWER_FORMS: dict[str, Callable[[Block], Answer]] = {
    "expand_choices": _choices,
    "expand_prefix": _prefix,
    "indexed": _indexed,
    "array": _array,
}
