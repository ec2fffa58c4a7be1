"""Parse recipes from YAML. All problems of a file are reported together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from decon_core.benchmarks.fields import describe
from decon_core.benchmarks.languages import language_in
from decon_core.benchmarks.recipe import (
    LANGUAGE_KEYS,
    WRAPPERS,
    ArrayAnswer,
    FieldText,
    HubSource,
    LocalSource,
    PromptArray,
    Prompts,
    Questions,
    Recipe,
    RecipeTable,
    Text,
    TranslationPair,
)
from decon_core.config.validation import check_names, validated
from decon_core.errors import KeyNameError, Problem, RecipeError

Place = tuple[str | int, ...]
_AN_OBJECT = "an object (`key: value` lines)"
_ONLY_WITH_A_PROMPT = ("passage", "tests", "extra_fields", "dataset_name_field", "no_answer_splits")

IN_MEMORY = "test"  # the split of rows in memory that name none
_CONFIG = "{config}"  # an entry with this in its name is a recipe for each of its configs


def load_recipes(path: Path) -> dict[str, Recipe]:
    """Load the recipes of a file with a top-level `evals:`; `RecipeError` has all its problems."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise RecipeError(Problem(str(path), "no such file", "a YAML file with recipes")) from None
    except IsADirectoryError:
        expected = "a YAML file with recipes, such as evals.yaml in this folder"
        raise RecipeError(Problem(str(path), "a folder", expected)) from None
    return dict(_parse(path, content))


def refused_in(path: Path) -> list[tuple[str, str]]:
    """Return the benchmarks that a recipe file names under `refused:`, each with the reason."""
    content = YamlSource(path, path.read_bytes()).value
    refused = content.get("refused") if isinstance(content, Mapping) else None
    return [*refused.items()] if isinstance(refused, Mapping) else []


def parse_recipes(text: str, *, where: str) -> dict[str, Recipe]:
    """Return the recipes in the text of a recipe file; problems name `where`."""
    return dict(_parse(Path(where), text.encode()))


# Every command and asset asks for the recipes several times, and a hundred take 0.1 s to parse.
@lru_cache(maxsize=64)
def _parse(path: Path, content: bytes) -> dict[str, Recipe]:
    parser = _Parser(YamlSource(path, content))
    recipes = parser.recipes()
    RecipeError.raise_for(parser.problems)
    return recipes


def parse_recipe(name: str, fields: Mapping[str, object], *, where: str) -> Recipe:
    """Return a recipe for rows in memory, from the keys of a recipe that name their fields."""
    given = [key for key in ("local_path", "hf_path", "splits") if key in fields]
    if given:
        expected = "only keys that name fields of the rows, such as prompt, answers and passage"
        raise RecipeError(Problem(where, ", ".join(given), expected))
    try:
        table = {"local_path": "rows", "splits": [IN_MEMORY], **fields}
        content = yaml.safe_dump({"evals": {name: table}}, sort_keys=False).encode()
    except yaml.YAMLError as error:
        found = f"a value that cannot be written as YAML ({error})"
        raise RecipeError(Problem(where, found, "texts, lists and mappings")) from None
    return _parse(Path(where), content)[name]


def expanded(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield name, key and entry of each recipe: `quiz_{config}` is one for each `hf_config`."""
    for key, entry in entries.items():
        configs = entry.get("hf_config") if isinstance(entry, Mapping) else None
        if _CONFIG not in key or not isinstance(configs, list):
            yield key, key, entry
            continue
        start = key.partition(_CONFIG)[0]
        for config in configs:
            name = re.sub(r"[^a-z0-9]+", "_", str(config).lower()).strip("_")
            name = name.removeprefix(start)  # xquad_{config} for xquad.de is xquad_de
            yield key.replace(_CONFIG, name), key, {**entry, "hf_config": config}


class _Parser:
    """Builds the recipes of one file and collects the problems with their line numbers."""

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self.problems = source.problems

    def recipes(self) -> dict[str, Recipe]:
        top = self._source.value
        # Other top-level keys are ignored: users keep anchors and notes there.
        entries = top.get("evals") if isinstance(top, Mapping) else None
        if isinstance(entries, Mapping):
            recipes = [self._recipe(*parts) for parts in expanded(entries)]
            return {recipe.name: recipe for recipe in recipes if recipe is not None}
        if not isinstance(top, Mapping):
            self._add((), "an empty file" if top is None else describe(top), _AN_OBJECT)
        elif entries is None:
            self._add((), "no recipes", "a top-level `evals:` with one entry per benchmark")
        else:
            self._add(("evals",), describe(entries), _AN_OBJECT)
        return {}

    def _recipe(self, name: str, key: str, entry: object) -> Recipe | None:
        before, place = len(self.problems), ("evals", key)
        try:
            check_names([name], what="benchmark")
        except KeyNameError as error:
            for problem in error.problems:
                self._add(place, problem.found, problem.expected, problem.remedy)
        if not isinstance(entry, Mapping):
            self._add(place, describe(entry), _AN_OBJECT)
            return None
        table = validated(
            RecipeTable,
            entry,
            problems=self.problems,
            place=lambda path: self._source.where(_place_in_yaml(place, path, entry)),
            describe=describe,
        )
        if table is None:
            return None
        questions, source = self._questions(place, table), self._source_of(place, table)
        given = [key for key in entry if entry[key] is not None]
        self._check_answers(place, table, questions, given)
        for split in table.no_answer_splits:
            if split not in table.splits:
                expected = f"one of the splits {[*table.splits]}"
                self._add((*place, "no_answer_splits"), repr(split), expected)
        if table.eval_key is not None and questions is not None:
            found, expected = repr(table.eval_key), "no eval_key with a prompt"
            self._add((*place, "eval_key"), found, expected, "Only records have one.")
        if len(self.problems) > before or source is None:
            return None
        return Recipe(
            name=name,
            source=source,
            splits=table.splits,
            questions=questions,
            passage=table.passage,
            answers=table.answers or table.answer or table.solution,
            no_answer_splits=table.no_answer_splits,
            # `tests` of a code task are kept, too; no detector reads them.
            extra_fields=tuple(dict.fromkeys((*table.extra_fields, *table.tests))),
            dataset_name_field=table.dataset_name_field,
            eval_key=table.eval_key,
            is_verified=table.verified,
        )

    def _source_of(self, place: Place, table: RecipeTable) -> HubSource | LocalSource | None:
        local = table.local_path
        if (table.hf_path is None) == (local is None):
            both = "neither hf_path nor local_path", "both hf_path and local_path"
            self._add(place, both[local is not None], "exactly one of the two")
            return None
        revision = table.hf_revision
        if table.columns and local is None:
            expected = "columns only with local_path"
            self._add((*place, "columns"), describe(table.columns), expected, "Remove it.")
        if table.hf_path is not None:
            return HubSource(path=table.hf_path, configs=table.hf_config, revision=revision)
        if revision is not None:
            expected = "no hf_revision with local_path"
            self._add((*place, "hf_revision"), repr(revision), expected, "Remove it.")
        if len(table.hf_config) > 1:
            expected = "a single name with local_path (it is only written to the records)"
            self._add((*place, "hf_config"), describe(table.hf_config), expected)
        config = table.hf_config[0] if table.hf_config else None
        if local == ():
            expected = "a file, a pattern, a prefix, or `split: file` lines"
            self._add((*place, "local_path"), describe(local), expected)
        if not isinstance(local, dict):
            return LocalSource(patterns=local or (), config=config, columns=table.columns)
        by_split = tuple((split, local.get(split, ())) for split in table.splits)
        for split, files in by_split:
            if not files:
                found = f"no files for the split {split!r}"
                self._add((*place, "local_path"), found, f"{split}: file")
        for split in local.keys() - {*table.splits}:
            expected = f"one of {', '.join(table.splits)}"
            self._add((*place, "local_path", split), f"unknown split {split!r}", expected)
        return LocalSource(by_split=by_split, config=config, columns=table.columns)

    def _questions(self, place: Place, table: RecipeTable) -> Questions | None:
        is_pair = table.source is not None or table.target is not None
        forms = {
            "prompt": table.prompt is not None,
            "prompts": table.prompts is not None,
            "source/target": is_pair or table.both_directions,
        }
        given = [form for form, is_given in forms.items() if is_given]
        if len(given) > 1:
            self._add(place, " and ".join(given), "one of prompt, prompts, source/target")
        if forms["source/target"]:
            for key, text in (("source", table.source), ("target", table.target)):
                if text is None:
                    self._add(place, f"no {key!r}", "both source and target")
            if table.source is None or table.target is None:
                return None
            languages = self._languages(place, table, table.source, table.target)
            return TranslationPair(
                source=table.source,
                target=table.target,
                both_directions=table.both_directions,
                **dict(zip(LANGUAGE_KEYS, languages, strict=True)),
            )
        for key in LANGUAGE_KEYS:
            if (name := getattr(table, key)) is not None:
                self._add((*place, key), repr(name), "source and target, too", "Remove it.")
        prompt = table.prompts if table.prompt is None else table.prompt
        return Prompts(texts=prompt) if isinstance(prompt, tuple) else prompt

    def _languages(
        self, place: Place, table: RecipeTable, source: Text, target: Text
    ) -> tuple[str, str]:
        """Return the languages of a pair: as given, or for both directions, as its fields say."""
        given = table.source_language, table.target_language
        if given[0] is not None and given[1] is not None:
            return given[0], given[1]
        if given != (None, None):
            self._add(place, "one of source_language and target_language", "both or none")
        fields = [text.field for text in (source, target) if isinstance(text, FieldText)]
        match [language_in(field) for field in fields if table.both_directions]:
            case [first, second] if first and second and first.language != second.language:
                return first.language, second.language
        return "", ""

    def _check_answers(
        self, place: Place, table: RecipeTable, questions: Questions | None, keys: Sequence[str]
    ) -> None:
        given = [key for key in ("answers", "answer", "solution") if key in keys]
        if len(given) > 1:
            self._add(place, " and ".join(given), "one of answers, answer, solution")
        for key in given:
            answers = getattr(table, key)
            if not answers:
                remedy = f"Remove `{key}` if there are no answers."
                self._add((*place, key), describe(answers), "at least one entry", remedy)
            for number, answer in enumerate(answers):
                if isinstance(answer, ArrayAnswer) and not isinstance(questions, PromptArray):
                    expected = "`prompts: {array: ...}`, too"
                    self._add((*place, key, number), "an array", expected)
        if given and isinstance(questions, TranslationPair):
            expected = "no answers: the target is the answer"
            self._add(place, f"{min(given)} with source/target", expected)
        if {"prompt", "prompts", "source", "target"} & {*keys}:
            return
        needless = [key for key in (*given, *_ONLY_WITH_A_PROMPT) if key in keys]
        if needless or table.hf_path is not None:
            found = f"{', '.join(sorted(needless)) or 'hf_path'} without a prompt"
            remedy = "Only files of already normalized records need no prompt."
            self._add(place, found, "the field with the question (prompt: question)", remedy)

    def _add(self, place: Place, found: str, expected: str, remedy: str = "") -> None:
        self.problems.append(Problem(self._source.where(place), found, expected, remedy))


def _place_in_yaml(place: Place, path: Sequence[str | int], value: Any) -> Place:
    """Return the place of a validated value in the file, where an object may be wrapped.

    `path` counts a single value as a list, calls the text of an answer `text`, and leaves out
    `expand_choices` and the like.
    """
    for key in path:
        wrappers = (name for name in WRAPPERS if isinstance(value, dict) and name in value)
        wrapper = next(wrappers, None)
        if wrapper is not None and key not in value:
            place, value = (*place, wrapper), value[wrapper]
        if isinstance(value, dict) and (key != "text" or key in value):
            place, value = (*place, key), value.get(key)
        elif isinstance(value, list):
            place, value = (*place, key), value[int(key)]
    return place


# The one of libyaml is ten times as fast; PyYAML may have been built without it.
YAML_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlSource:
    """The value of a YAML file, the lines of its keys, and the problems of repeated keys."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        self._lines: dict[Place, int] = {}
        self.problems: list[Problem] = []
        try:
            self._loader = YAML_LOADER(content.decode())
            node = self._loader.get_single_node()
            self.value: object = None if node is None else self._build(node, ())
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
            found = f"text that is not YAML ({getattr(error, 'problem', None) or str(error)})"
            raise RecipeError(Problem(where, found, "YAML in UTF-8")) from None

    def where(self, place: Place) -> str:
        """Format a place in the file, with its line or the nearest enclosing line."""
        outwards = (place[:n] for n in range(len(place), -1, -1))
        line = next((self._lines[outer] for outer in outwards if outer in self._lines), 1)
        name = ".".join(map(str, place[1:]))
        return f"{self._path}:{line}{f': {name}' if name else ''}"

    def _build(self, node: yaml.Node, place: Place) -> object:
        self._lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._build(item, (*place, i)) for i, item in enumerate(node.value)]
        value: object = self._loader.construct_object(node, deep=True)
        return value

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[object, object]:
        first_lines: dict[str, int] = {}
        for key_node, _ in node.value:
            key, line = _key(key_node), key_node.start_mark.line + 1
            if key in first_lines:
                where = f"{self._path}:{line}: {'.'.join(map(str, (*place[1:], key)))}"
                found = f"a repeated key (first on line {first_lines[key]})"
                remedy = "YAML would silently keep only the last one: remove or rename one of them."
                self.problems.append(Problem(where, found, "every key once", remedy))
            first_lines.setdefault(key, line)
        self._loader.flatten_mapping(node)  # `<<: *other`
        built: dict[object, object] = {}
        for key_node, value_node in node.value:
            key = _key(key_node)
            self._lines[(*place, key)] = key_node.start_mark.line + 1
            built[key] = self._build(value_node, (*place, key))
        return built


def _key(node: yaml.Node) -> str:
    # Keys are always strings: `no:` and `2024:` are not false and a number.
    return node.value if isinstance(node, yaml.ScalarNode) else str(node.value)
