"""Load YAML as plain values with the line of every key; duplicate keys are problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from decon_core.errors import Problem, RecipeError

Place = tuple[str | int, ...]


@dataclass
class YamlSource:
    value: object
    lines: dict[Place, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_yaml(path: Path) -> YamlSource:
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(Problem(str(path), "no such file", "a YAML file with recipes")) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(_unreadable(path, error)) from None
    try:
        node = loader.get_single_node()
        source = YamlSource(None)
        source.value = None if node is None else _Builder(loader, path, source).build(node, ())
    except yaml.YAMLError as error:
        raise RecipeError(_unreadable(path, error)) from None
    finally:
        loader.dispose()
    return source


def _unreadable(path: Path, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
    reason = getattr(error, "problem", None) or str(error)
    return Problem(where, f"text that is not YAML ({reason})", "YAML in UTF-8")


class _Builder:
    def __init__(self, loader: yaml.SafeLoader, path: Path, source: YamlSource) -> None:
        self._loader = loader
        self._path = path
        self._source = source

    def build(self, node: yaml.Node, place: Place) -> object:
        self._source.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, i)) for i, item in enumerate(node.value)]
        value: object = self._loader.construct_object(node, deep=True)
        return value

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[object, object]:
        self._refuse_repeats(node, place)
        self._loader.flatten_mapping(node)  # `<<: *other`
        built: dict[object, object] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            self._source.lines[(*place, key)] = key_node.start_mark.line + 1
            built[key] = self.build(value_node, (*place, key))
        return built

    def _refuse_repeats(self, node: yaml.MappingNode, place: Place) -> None:
        first_lines: dict[str, int] = {}
        for key_node, _ in node.value:
            key, line = self._key(key_node), key_node.start_mark.line + 1
            if key in first_lines:
                self._source.problems.append(
                    Problem(
                        where=f"{self._path}:{line}: {'.'.join(map(str, (*place[1:], key)))}",
                        found=f"the key a second time (first on line {first_lines[key]})",
                        expected="every key once",
                        remedy="YAML would silently keep the last one: remove or rename it.",
                    )
                )
            first_lines.setdefault(key, line)

    def _key(self, node: yaml.Node) -> str:
        # Keys are always strings: `no:` and `2024:` are not false and a number.
        return node.value if isinstance(node, yaml.ScalarNode) else str(node.value)
