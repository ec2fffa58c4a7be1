"""Find the files of each split of a local benchmark."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

from decon_core.benchmarks.readers import is_readable, is_task, known_endings
from decon_core.benchmarks.recipe import LocalSource, Recipe
from decon_core.errors import Problem, RecipeError
from decon_core.storage.paths import RemotePath, expand_glob, parse_path

_PARTS = r"(?:[-_]\d+(?:-of-\d+)?)?\."


def files_by_split(recipe: Recipe, *, base: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files of every split in reading order; {} for a dataset on the hub.

    A local path may be a file, a pattern (`*`, `?`, `[`), contain `{split}`, or be a prefix of the
    file names (`bundled/gsm8k_` for gsm8k_train-1.jsonl.gz, gsm8k_train-2.jsonl.gz, ...). Raises
    `RecipeError` if a split has no file or a file has an unknown format.
    """
    problems: list[Problem] = []
    files: dict[str, tuple[Path, ...]] = {}
    for split, patterns in _patterns(recipe):
        by_pattern = [_files_of(recipe, pattern, split, base, problems) for pattern in patterns]
        files[split] = tuple(dict.fromkeys(chain(*by_pattern)))
    RecipeError.raise_for(dict.fromkeys(problems))
    return files


def local_paths(recipe: Recipe) -> list[str]:
    """Return the local paths and patterns as written in the recipe; none for a hub dataset."""
    return [pattern for _, patterns in _patterns(recipe) for pattern in patterns]


def _patterns(recipe: Recipe) -> list[tuple[str, tuple[str, ...]]]:
    source = recipe.source
    if not isinstance(source, LocalSource):
        return []
    return list(source.by_split) or [(split, source.patterns) for split in recipe.splits]


def _files_of(
    recipe: Recipe, pattern: str, split: str, base: Path, problems: list[Problem]
) -> list[Path]:
    where = f"{recipe.name}.local_path"
    files, tried, names_split = _search(base, pattern, split)
    problems += [
        Problem(where, f"the file {file}", f"a name that ends in {known_endings()}")
        for file in files
        if not is_readable(file) and not is_task(file)
    ]
    if not files:
        problems.append(Problem(where, f"no file for the split {split!r}", tried))
    has_lines = isinstance(recipe.source, LocalSource) and bool(recipe.source.by_split)
    is_shared = len(recipe.splits) > 1 and not has_lines and not names_split
    if is_shared and recipe.questions is not None:
        found = f"{pattern!r} for {len(recipe.splits)} splits"
        remedy = "Put {split} into the path, or write `split: file` lines."
        problems.append(Problem(where, found, "different files for each split", remedy))
    return files


def _search(base: Path, pattern: str, split: str) -> tuple[list[Path], str, bool]:
    """Return the files, what was searched for, and whether the names depend on the split."""
    names_split = "{split}" in pattern
    path = parse_path(pattern.replace("{split}", split), base=base)
    if any(mark in pattern for mark in "*?["):
        if isinstance(path, RemotePath):
            files: list[Path] = [file for file, _ in expand_glob(str(path))]
        else:
            root = Path(path.anchor) if path.is_absolute() else Path()
            relative = path.relative_to(root) if path.is_absolute() else path
            files = [file for file in root.glob(str(relative)) if file.is_file()]
        return sorted(files, key=part_order), f"a file that matches {path}", names_split
    if path.is_file():
        return [path], f"the file {path}", names_split
    if names_split or is_readable(path):
        return [], f"the file {path}", names_split
    ends_in_folder = pattern.endswith("/") or path.is_dir()
    folder, start = (path, "") if ends_in_folder else (path.parent, path.name)
    name = re.compile(re.escape(start + split) + _PARTS)
    files = [file for file in folder.glob("*") if name.match(file.name) and is_readable(file)]
    tried = f"a file like {folder / (start + split)}.jsonl or ...-1.jsonl.gz"
    return sorted(files, key=part_order), tried, True


def part_order(path: Path) -> list[tuple[int, str]]:
    """Sort key in the order in which files are read: part 2 before part 10."""
    pieces = re.split(r"(\d+)", str(path))
    return [(int(piece) if piece.isdecimal() else -1, piece) for piece in pieces]
