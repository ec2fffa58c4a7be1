"""Parse recipes from YAML. All problems of a file are reported together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from decon_core.benchmarks.blocks import Block, Report
from decon_core.benchmarks.parse_answers import parse_answers
from decon_core.benchmarks.parse_texts import optional_text, parse_text
from decon_core.benchmarks.recipe import (
    Answer,
    ArrayAnswer,
    HubSource,
    LocalSource,
    PromptArray,
    Prompts,
    Questions,
    Recipe,
    TranslationPair,
)
from decon_core.benchmarks.yaml_source import Place, read_yaml
from decon_core.config.names import check_names
from decon_core.errors import KeyNameError


def load_recipes(path: Path) -> dict[str, Recipe]:
    """Load the recipes of a file with a top-level `evals:`; `RecipeError` has all its problems."""
    source = read_yaml(path)
    report = Report(path, source)
    top = report.block(source.value, ())
    evals = top.get("evals") if top else None
    if top and evals is None:
        report.add((), "no recipes", "a top-level `evals:` with one entry per benchmark")
    # Other top-level keys are ignored: users keep anchors and notes there.
    entries = report.block(evals, ("evals",)) if evals is not None else None
    recipes: dict[str, Recipe] = {}
    for name in entries.mapping if entries else ():
        recipe = _recipe(report, str(name), entries.get(name) if entries else None)
        if recipe is not None:
            recipes[recipe.name] = recipe
    report.raise_all()
    return recipes


def _recipe(report: Report, name: str, value: object) -> Recipe | None:
    n_before = len(report.problems)
    place: Place = ("evals", name)
    _check_name(report, name, place)
    block = report.block(value, place)
    if block is None:
        return None
    splits = _splits(block)
    source = _source(block, splits)
    questions = _questions(block)
    passage = optional_text(block, "passage")
    answers = parse_answers(block)
    extra_fields = _extra_fields(block)
    no_answer_splits = _no_answer_splits(block, splits)
    dataset_name_field = block.text("dataset_name_field")
    eval_key = block.text("eval_key")
    if eval_key is not None and questions is not None:
        block.wrong("eval_key", "no eval_key beside a prompt", "Only records have one.")
    block.close()
    _check_together(block, source, questions, answers)
    if len(report.problems) > n_before or source is None:
        return None
    return Recipe(
        name=name,
        source=source,
        splits=splits,
        questions=questions,
        passage=passage,
        answers=answers,
        no_answer_splits=no_answer_splits,
        extra_fields=extra_fields,
        dataset_name_field=dataset_name_field,
        eval_key=eval_key,
    )


def _check_name(report: Report, name: str, place: Place) -> None:
    try:
        check_names([name], what="benchmark")
    except KeyNameError as error:
        for problem in error.problems:
            report.add(place, problem.found, problem.expected, problem.remedy)


def _splits(block: Block) -> tuple[str, ...]:
    splits = block.texts("splits")
    if block.get("splits") is None:
        block.report.add(block.place, "no 'splits'", "a list of splits (splits: [train, test])")
    elif block.get("splits") == []:
        block.wrong("splits", "at least one split")
    return splits


def _no_answer_splits(block: Block, splits: tuple[str, ...]) -> tuple[str, ...]:
    without = block.texts("no_answer_splits")
    for split in without:
        if split not in splits:
            block.report.add(
                block.at("no_answer_splits"), repr(split), f"one of the splits {list(splits)}"
            )
    return without


def _extra_fields(block: Block) -> tuple[str, ...]:
    """Return extra fields and `tests`, the tests of a code task; no detector reads them."""
    return tuple(dict.fromkeys((*block.texts("extra_fields"), *block.texts("tests"))))


def _source(block: Block, splits: tuple[str, ...]) -> HubSource | LocalSource | None:
    has_hub, has_local = "hf_path" in block, "local_path" in block
    configs = block.texts("hf_config")
    revision = block.text("hf_revision")
    if has_hub == has_local:
        found = "both hf_path and local_path" if has_hub else "neither hf_path nor local_path"
        block.get("local_path")
        block.report.add(block.place, found, "exactly one of the two")
        return None
    if has_hub:
        path = block.required_text("hf_path", "the name of a data set on the hub")
        return HubSource(path=path, configs=configs, revision=revision)
    if revision is not None:
        block.wrong("hf_revision", "no revision beside local_path", "Remove it.")
    if len(configs) > 1:
        block.wrong("hf_config", "one name beside local_path (it is only written to the records)")
    config = configs[0] if configs else None
    return _local_source(block, splits, config)


def _local_source(block: Block, splits: tuple[str, ...], config: str | None) -> LocalSource | None:
    if not isinstance(block.get("local_path"), Mapping):
        patterns = block.texts("local_path")
        if not patterns and block.get("local_path") in (None, []):
            block.wrong("local_path", "a file, a pattern, a prefix, or `split: file` lines")
        return LocalSource(patterns=patterns, config=config)
    files = block.report.block(block.get("local_path"), block.at("local_path"))
    if files is None:
        return None
    by_split = tuple((split, files.texts(split)) for split in splits)
    for split, names in by_split:
        if not names:
            files.report.add(files.place, f"no files for the split {split!r}", f"{split}: file")
    files.close()
    return LocalSource(by_split=by_split, config=config)


def _questions(block: Block) -> Questions | None:
    forms = {
        "prompt": "prompt" in block,
        "prompts": "prompts" in block,
        "source/target": ("source" in block) | ("target" in block) | ("both_directions" in block),
    }
    present = [form for form, is_present in forms.items() if is_present]
    if len(present) > 1:
        block.report.add(
            block.place, " and ".join(present), "one of prompt, prompts, source/target"
        )
    if forms["source/target"]:
        return _pair(block)
    for key in ("prompts", "prompt"):
        if forms[key]:
            return _prompts(block, key)
    return None


def _pair(block: Block) -> TranslationPair | None:
    source, target = optional_text(block, "source"), optional_text(block, "target")
    for key, text in (("source", source), ("target", target)):
        if text is None and block.get(key) is None:
            block.report.add(block.place, f"no {key!r}", "a field for each of source and target")
    if source is None or target is None:
        return None
    return TranslationPair(
        source=source, target=target, both_directions=block.flag("both_directions") or False
    )


def _prompts(block: Block, key: str) -> Prompts | PromptArray:
    value = block.get(key)
    if isinstance(value, Mapping) and "array" in value:
        array = Block(value, block.at(key), block.report)
        prompts = PromptArray(array=array.required_text("array", "the field with the questions"))
        array.close()
        return prompts
    texts = [parse_text(block.report, item, place) for item, place in block.entries(key)]
    if not texts:
        block.wrong(key, "at least one field")
    return Prompts(texts=tuple(text for text in texts if text is not None))


def _check_together(
    block: Block,
    source: HubSource | LocalSource | None,
    questions: Questions | None,
    answers: tuple[Answer, ...],
) -> None:
    keys = set(map(str, block.mapping))
    if isinstance(questions, TranslationPair) and (
        named := keys & {"answers", "answer", "solution"}
    ):
        block.report.add(
            block.place,
            f"{min(named)} beside source/target",
            "no answers: the target is the answer",
        )
    if not isinstance(questions, PromptArray):
        for i, answer in enumerate(answers):
            if isinstance(answer, ArrayAnswer):
                block.report.add(
                    (*block.at("answers"), i), "an array", "`prompts: {array: ...}` beside it"
                )
    if keys & {"prompt", "prompts", "source", "target"}:
        return
    needless = keys & {"passage", "answers", "answer", "solution", "tests", "extra_fields"}
    needless |= keys & {"dataset_name_field", "no_answer_splits"}
    if isinstance(source, HubSource) or needless:
        beside = ", ".join(sorted(needless)) or "hf_path"
        block.report.add(
            block.place,
            f"{beside} without a prompt",
            "the field with the question (prompt: question)",
            "Only files of already normalized records need no prompt.",
        )
