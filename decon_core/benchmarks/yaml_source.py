"""Load YAML as plain values with the line of every key; duplicate keys are problems."""

from __future__ import annotations

from pathlib import Path

import yaml

from decon_core.errors import Problem, RecipeError

Place = tuple[str | int, ...]


class YamlSource:
    """The value of a YAML file, the lines of its keys, and the problems of repeated keys."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[Place, int] = {}
        self.problems: list[Problem] = []
        try:
            self._loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
            node = self._loader.get_single_node()
            self.value: object = None if node is None else self._build(node, ())
        except FileNotFoundError:
            problem = Problem(str(path), "no such file", "a YAML file with recipes")
            raise RecipeError(problem) from None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
            found = f"text that is not YAML ({getattr(error, 'problem', None) or str(error)})"
            raise RecipeError(Problem(where, found, "YAML in UTF-8")) from None

    def where(self, place: Place) -> str:
        """Format a place in the file; of one without a line, the line of what contains it."""
        outwards = (place[:n] for n in range(len(place), -1, -1))
        line = next((self._lines[one] for one in outwards if one in self._lines), 1)
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
                found = f"the key a second time (first on line {first_lines[key]})"
                remedy = "YAML would silently keep the last one: remove or rename it."
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
