"""Parse the texts of a recipe: prompts, passages and their transforms."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from decon_core.benchmarks.blocks import Block, Report
from decon_core.benchmarks.fields import describe
from decon_core.benchmarks.recipe import FieldText, JoinedText, LastParagraph, MessagesText, Text
from decon_core.benchmarks.transforms import (
    ARGUMENT_TRANSFORMS,
    LABEL_TRANSFORMS,
    TRANSFORM_NAMES,
    Steps,
)
from decon_core.benchmarks.yaml_source import Place


def optional_text(block: Block, key: str) -> Text | None:
    if block.get(key) is None:
        return None
    return parse_text(block.report, block.get(key), block.at(key))


_TEXT_FORMS = "field, fields, messages, concat_messages, last_paragraph"


def parse_text(report: Report, value: object, place: Place) -> Text | None:
    """Parse a field name, or an object that builds a text from one or more fields."""
    if isinstance(value, str) and value:
        return FieldText(field=value)
    if not isinstance(value, Mapping):
        report.add(place, describe(value), f"a field name, or an object with one of {_TEXT_FORMS}")
        return None
    block = Block(value, place, report)
    text = parse_text_form(block)
    if text is not None:
        block.close()
    return text


def parse_text_form(block: Block) -> Text | None:
    if "field" in block:
        return FieldText(
            field=block.required_text("field", "a field name"),
            transforms=parse_transforms(block),
            is_optional=block.flag("optional") or False,
        )
    if "fields" in block:
        separator = block.get("separator")
        if separator is not None and not isinstance(separator, str):
            block.wrong("separator", "text")
        if not block.texts("fields"):
            block.wrong("fields", "a list of field names")
        return JoinedText(
            fields=block.texts("fields"),
            separator=separator if isinstance(separator, str) else "\n",
        )
    if "messages" in block or "concat_messages" in block:
        return _messages(block)
    if "last_paragraph" in block:
        return LastParagraph(
            field=block.required_text("last_paragraph", "a field name"),
            min_words=block.count("min_words") or 1,
        )
    block.report.add(block.place, describe(block.mapping), f"an object with one of {_TEXT_FORMS}")
    return None


def _messages(block: Block) -> MessagesText | None:
    """Parse `messages: field`, or decon's `concat_messages: {field, content_field}`."""
    if "messages" in block:
        return MessagesText(
            field=block.required_text("messages", "the field with the turns"),
            content_field=block.text("content_field"),
            roles=block.texts("roles"),
            append_field=block.text("append_field"),
        )
    inner = block.report.block(block.get("concat_messages"), block.at("concat_messages"))
    if inner is None:
        return None
    messages = MessagesText(
        field=inner.required_text("field", "the field with the turns"),
        content_field=inner.text("content_field"),
        roles=inner.texts("roles"),
        append_field=block.text("append_field"),
    )
    inner.close()
    return messages


def parse_transforms(block: Block) -> Steps:
    """Parse `strip`, `{after_marker: "####"}`, or a list of such steps."""
    value = block.get("transform")
    if value is None:
        return ()
    steps = value if isinstance(value, list) else [value]
    parsed = [
        _step(block, step, (*block.at("transform"), i) if steps is value else block.at("transform"))
        for i, step in enumerate(steps)
    ]
    return tuple(step for step in parsed if step is not None)


def _step(block: Block, step: object, place: Place) -> tuple[str, str | None] | None:
    if isinstance(step, str):
        name, argument = step, None
    elif isinstance(step, Mapping) and len(step) == 1:
        name, argument = next(iter(step.items()))
        if not isinstance(argument, str):
            block.report.add(place, describe(argument), f"text after `{name}:`")
            return None
    else:
        block.report.add(place, describe(step), "the name of a transform, or `name: text`")
        return None
    if not _is_known(block, name, TRANSFORM_NAMES, place):
        return None
    if argument is not None and name not in ARGUMENT_TRANSFORMS:
        block.report.add(place, f"{name} with an argument", f"{name} alone; it takes none")
        return None
    return name, argument


def parse_label_transform(block: Block) -> str | None:
    name = block.text("label_transform")
    if name is not None and not _is_known(
        block, name, LABEL_TRANSFORMS, block.at("label_transform")
    ):
        return None
    return name


def _is_known(block: Block, name: str, known: Iterable[str], place: Place) -> bool:
    known = list(known)
    if name in known:
        return True
    close = difflib.get_close_matches(name, known, n=1)
    block.report.add(
        place,
        f"the unknown transform {name!r}",
        f"one of {', '.join(known)}",
        f"Did you mean {close[0]!r}?" if close else "",
    )
    return False
