"""Recipes among files, and recipes for benchmark files that have none."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from decon_core.benchmarks import Recipe, files_by_split, load_recipes, normalize
from decon_core.benchmarks.folder import part_order, places_of_records
from decon_core.benchmarks.normalized import is_record
from decon_core.benchmarks.readers import is_readable, read_rows
from decon_core.config.names import folded
from decon_core.corpus.first_rows import MOST_ROWS, Row, fields_of
from decon_core.discovery.overlap import named_twice
from decon_core.errors import DeconError, InputError, Problem, RecipeError
from decon_core.storage.paths import is_hidden

_RECIPES = (".yaml", ".yml")
_SPLITS = ("train", "test", "validation", "valid", "val", "dev")
_SPLIT = re.compile(rf"(?:^|[-_.])({'|'.join(_SPLITS)})(?=$|[-_.])", re.IGNORECASE)

_PROMPTS = ("question", "prompt", "problem", "query", "instruction", "input", "goal", "sentence")
_PASSAGES = ("passage", "context", "article", "story")
_CHOICES = ("choices", "options", "endings")
_ANSWERS = ("answer", "answers", "solution", "target", "output", "response", "label", "completion")


@dataclass(frozen=True)
class Guess:
    """A recipe that fits the rows that were looked at, as lines of YAML."""

    name: str
    lines: tuple[str, ...]
    fields: str


@dataclass(frozen=True)
class Written:
    """A recipe file that is to be written, and what goes into it."""

    path: Path
    text: str
    names: tuple[str, ...]
    names_of_records: tuple[str, ...] = ()  # of these, files of records: nothing was guessed


def survey_benchmarks(typed: Sequence[Path]) -> tuple[list[Path], list[Written], list[str]]:
    """Recipe files, those that have to be written, and what is left out; all problems at once."""
    recipes: list[Path] = []
    guessed: dict[Path, list[Path]] = {}  # by folder: files that no recipe is beside
    places: list[tuple[str, list[Path]]] = []
    left_out: list[str] = []
    problems: list[Problem] = []
    for path in typed:
        try:
            files = _files(path)
            places.append((str(path), files))
            known = [file for file in files if _holds_recipes(file)]
            recipes += known
            rows = [file for file in files if is_readable(file)]
            if known:
                left_out += _unnamed(known, rows)
            else:
                guessed.setdefault(_folder(path), []).extend(rows)
        except DeconError as error:
            problems += error.problems
    problems += named_twice(places)
    written, unclear = _recipe_files(guessed, recipes)
    if problems or unclear:
        raise InputError(dict.fromkeys([*problems, *unclear]))
    return recipes, written, left_out


def _folder(typed: Path) -> Path:
    return (typed if typed.is_dir() else typed.parent).absolute()


def _files(path: Path) -> list[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [
        one.absolute()
        for one in found
        if one.is_file() and not is_hidden(one.relative_to(path).parts)
    ]
    if not any(is_readable(one) or one.suffix.lower() in _RECIPES for one in files):
        what = "no recipe and no benchmark file" if path.exists() else "no such file or folder"
        raise InputError(Problem(str(path), what, "recipes (.yaml), or rows (.jsonl, .parquet, …)"))
    return files


def _holds_recipes(path: Path) -> bool:
    """Whether this is YAML with a top-level `evals:`. What is wrong inside of it is an error."""
    if path.suffix.lower() not in _RECIPES:
        return False
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not any(line.startswith("evals:") for line in lines) and "{" not in "".join(lines[:1]):
        return False
    load_recipes(path)
    return True


def _unnamed(recipes: Sequence[Path], rows: Sequence[Path]) -> list[str]:
    """Files of rows that no recipe beside them reads."""
    read = {
        file.resolve()
        for path in recipes
        for recipe in load_recipes(path).values()
        for files in files_by_split(recipe, base=path.parent).values()
        for file in files
    }
    return [str(file) for file in rows if file.resolve() not in read]


# Recipes for files that have none -----------------------------------------------------------------


def _recipe_files(
    guessed: Mapping[Path, Sequence[Path]], recipes: Sequence[Path]
) -> tuple[list[Written], list[Problem]]:
    written: list[Written] = []
    problems: list[Problem] = []
    for folder, rows in guessed.items():
        try:
            written.append(_recipe_file(folder, rows))
        except DeconError as error:
            problems += error.problems
    problems += [
        Problem(
            str(one.path),
            "recipes that are given, and files beside them that have none",
            "recipes for all of them, or for none",
            "write the others into that file by hand, or leave them out",
        )
        for one in written
        if one.path in recipes
    ]
    return written, problems


def _recipe_file(folder: Path, rows: Sequence[Path]) -> Written:
    problems: list[Problem] = []
    records = [path for path in rows if _holds_records(path)]
    guesses, problems = _recipes_for_records(folder, records)
    names_of_records = tuple(one.name for one in guesses)
    raw = [path for path in rows if path not in records]
    for name, by_split in _benchmarks(folder, raw, taken=names_of_records).items():
        try:
            guesses.append(_guess(name, by_split, folder))
        except DeconError as error:
            problems += error.problems
    if problems:
        raise RecipeError(problems)
    text = _HEAD + "evals:\n" + "\n".join(_entry(one) for one in guesses)
    names = tuple(one.name for one in guesses)
    return Written(folder / "evals.yaml", text, names, names_of_records)


def _holds_records(path: Path) -> bool:
    """Whether the first rows are normalized records: fields with a meaning that is known."""
    rows = _some_rows(path)
    return bool(rows) and all(map(is_record, rows))


def _recipes_for_records(folder: Path, files: Sequence[Path]) -> tuple[list[Guess], list[Problem]]:
    """Recipes that read records as they are: the rows say which benchmark and split they are."""
    try:
        places = places_of_records(sorted(files, key=part_order))
    except DeconError as error:
        return [], [*error.problems]
    uses = Counter(file for by_split in places.values() for file in set().union(*by_split.values()))
    guesses = []
    for name, key in zip(_plain(places), places, strict=True):
        by_split = places[key]
        lines = _head(folder, by_split)
        if any(uses[file] > 1 for named in by_split.values() for file in named):
            lines = (*lines, f"    eval_key: {json.dumps(key, ensure_ascii=False)}")
        guesses.append(Guess(name, lines, "those of normalized records, read as they are"))
    return guesses, []


def _head(folder: Path, by_split: Mapping[str, Sequence[Path]]) -> tuple[str, ...]:
    """The lines of a recipe that say where its files are."""
    places = {
        split: [path.relative_to(folder).as_posix() for path in files]
        for split, files in by_split.items()
    }
    return (
        f"    local_path: {json.dumps(places, ensure_ascii=False)}",
        f"    splits: {json.dumps(list(by_split), ensure_ascii=False)}",
    )


_HEAD = """\
# Benchmarks that were found beside this file, and which of their fields are what, guessed from the
# names of the fields in the first rows. Look at them before you trust a scan:
#     decon-assets normalize THIS_FILE
# docs/recipes.md says what else a recipe can do.
"""


def _entry(guess: Guess) -> str:
    lines = [f"  {guess.name}:", f"    # fields: {guess.fields}", *guess.lines]
    return "\n".join(lines) + "\n"


def _benchmarks(
    folder: Path, rows: Sequence[Path], *, taken: Sequence[str] = ()
) -> dict[str, dict[str, list[Path]]]:
    """Files by the name of their benchmark, and by split: what names say besides the split."""
    found: dict[str, dict[str, list[Path]]] = {}
    for path in rows:
        bare = path.relative_to(folder).as_posix().split("/")
        bare[-1] = bare[-1].split(".")[0]
        told = "_".join(bare)
        split = next((each[1].lower() for each in _SPLIT.finditer(told)), "test")
        name = _SPLIT.sub("", told)
        name = re.sub(r"[-_.]?\d+(-of-\d+)?$", "", name) if len(rows) > 1 else name
        found.setdefault(name.strip("-_."), {}).setdefault(split, []).append(path)
    return dict(zip(_plain(found, taken=taken), found.values(), strict=True))


def _plain(names: Iterable[str], *, taken: Sequence[str] = ()) -> list[str]:
    """Names that can be partition keys, each another, and none that is taken."""
    plain: list[str] = []
    for name in names:
        bare = re.sub(r"[^A-Za-z0-9_-]+", "_", folded(name)).strip("-_") or "benchmark"
        numbered = (f"{bare}_{number}" for number in count(2))
        plain.append(next(each for each in chain([bare], numbered) if each not in {*plain, *taken}))
    return plain


def _guess(name: str, by_split: Mapping[str, Sequence[Path]], folder: Path) -> Guess:
    """The first way to read the rows that gives records of all that were looked at."""
    rows = [row for files in by_split.values() for path in files for row in _some_rows(path)]
    fields = ", ".join(map(str, fields_of(rows)))
    where = str(next(iter(by_split.values()))[0])
    if not rows:
        raise RecipeError(Problem(where, "no row that can be read", "rows of a benchmark"))
    head = _head(folder, by_split)
    for lines in _ways(rows):
        guess = Guess(name, (*head, *lines), fields)
        if _fits(guess, folder):
            return guess
    raise RecipeError(
        Problem(
            where,
            f"fields {fields}",
            f"one that asks, called {', '.join(_PROMPTS)}, with a text in every row",
            "write its recipe by hand (docs/recipes.md), or leave the file out",
        )
    )


def _some_rows(path: Path) -> list[Row]:
    return [row for row in islice(read_rows(path), MOST_ROWS) if not isinstance(row, Problem)]


def _ways(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Recipes for rows with these fields, the fullest first."""
    names = [field.name for field in fields_of(rows)]
    prompts = [name for name in _PROMPTS if name in names] or _longest(rows)
    passage = next((f"    passage: {name}" for name in _PASSAGES if name in names), None)
    for prompt in prompts:
        asked = [f"    prompt: {json.dumps(prompt, ensure_ascii=False)}"]
        for answers in _answers(names, prompt):
            if passage:
                yield [*asked, passage, *answers]
            yield [*asked, *answers]


def _longest(rows: Sequence[Row]) -> list[str]:
    texts = [field for field in fields_of(rows) if "text" in field.kinds]
    return [field.name for field in sorted(texts, key=lambda field: -field.n_characters)[:1]]


def _answers(names: Sequence[str], prompt: str) -> Iterator[list[str]]:
    choices = [name for name in _CHOICES if name in names]
    right = [name for name in (*_ANSWERS, "answer_index", "correct") if name in names]
    for many in choices:
        for one in right:
            for kind in ("correct_index", "correct_text"):
                yield [f"    answers: [{{expand_choices: {{field: {many}, {kind}: {one}}}}}]"]
    for name in (*right, *(n for n in names if n.partition(".")[0] in _ANSWERS)):
        if name != prompt:
            yield [f"    answers: [{json.dumps(name, ensure_ascii=False)}]"]
    yield []


def _fits(guess: Guess, folder: Path) -> bool:
    with TemporaryDirectory() as place:
        path = Path(place) / "evals.yaml"
        path.write_text("evals:\n" + _entry(guess), encoding="utf-8")
        try:
            recipe: Recipe = load_recipes(path)[guess.name]
            return bool(normalize(recipe, base=folder, limit=MOST_ROWS).num_rows)
        except DeconError:
            return False
