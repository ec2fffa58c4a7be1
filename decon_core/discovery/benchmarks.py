"""Find recipes, and write recipes for benchmark files that have none."""

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
from decon_core.benchmarks.files import part_order
from decon_core.benchmarks.folder import places_of_records
from decon_core.benchmarks.normalized import is_record
from decon_core.benchmarks.readers import is_readable, read_rows
from decon_core.config.names import folded
from decon_core.corpus.first_rows import MOST_ROWS, Row, fields_of
from decon_core.discovery.overlap import overlaps
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
    """A recipe that fits the first rows, as lines of YAML."""

    name: str
    lines: tuple[str, ...]
    fields: str
    has_answer: bool = True


@dataclass(frozen=True)
class RecipeDraft:
    """A recipe file to be written, with its text."""

    path: Path
    text: str
    names: tuple[str, ...]
    names_of_records: tuple[str, ...] = ()  # those with normalized records: nothing was guessed
    names_without_answer: tuple[str, ...] = ()


def survey_benchmarks(typed: Sequence[Path]) -> tuple[list[Path], list[RecipeDraft], list[str]]:
    """Return recipe files, recipe files to write, and files left out; or raise all problems."""
    recipes: list[Path] = []
    guessed: dict[Path, list[Path]] = {}  # by folder: files without a recipe beside them
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
                read = _read_by(known)
                left_out += [str(file) for file in rows if file.resolve() not in read]
            else:
                folder = (path if path.is_dir() else path.parent).absolute()
                guessed.setdefault(folder, []).extend(rows)
        except DeconError as error:
            problems += error.problems
    problems += overlaps(places)
    drafts: list[RecipeDraft] = []
    for folder, rows in guessed.items():
        try:
            drafts.append(_draft(folder, rows))
        except DeconError as error:
            problems += error.problems
    for one in drafts:
        if one.path in recipes:
            found = "recipes for some of the files in its folder, but not for all"
            remedy = "add the missing recipes to this file by hand, or leave those files out"
            expected = "recipes for all of them, or for none"
            problems.append(Problem(str(one.path), found, expected, remedy))
    if problems:
        raise InputError(dict.fromkeys(problems))
    return recipes, drafts, left_out


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
    """Whether this is YAML with a top-level `evals:`; raise if its recipes are invalid."""
    if path.suffix.lower() not in _RECIPES:
        return False
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not any(line.startswith("evals:") for line in lines) and "{" not in "".join(lines[:1]):
        return False
    load_recipes(path)
    return True


def _read_by(recipes: Sequence[Path]) -> set[Path]:
    """Return the files of rows that recipes read."""
    return {
        file.resolve()
        for path in recipes
        for recipe in load_recipes(path).values()
        for files in files_by_split(recipe, base=path.parent).values()
        for file in files
    }


# Recipes for files that have none -----------------------------------------------------------------


def _draft(folder: Path, rows: Sequence[Path]) -> RecipeDraft:
    first_rows = {path: _some_rows(path) for path in rows}
    records = [path for path, some in first_rows.items() if some and all(map(is_record, some))]
    problems: list[Problem] = []
    guesses: list[Guess] = []
    try:
        guesses += _recipes_for_records(folder, records)
    except DeconError as error:
        problems += error.problems
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
    without = tuple(one.name for one in guesses if not one.has_answer)
    return RecipeDraft(folder / "evals.yaml", text, names, names_of_records, without)


def _recipes_for_records(folder: Path, files: Sequence[Path]) -> Iterator[Guess]:
    """Yield recipes that read normalized records; the rows name their benchmark and split."""
    places = places_of_records(sorted(files, key=part_order))
    uses = Counter(file for by_split in places.values() for file in set().union(*by_split.values()))
    for name, key in zip(_partition_keys(places), places, strict=True):
        by_split = places[key]
        lines = _head(folder, by_split)
        if any(uses[file] > 1 for named in by_split.values() for file in named):
            lines = (*lines, f"    eval_key: {json.dumps(key, ensure_ascii=False)}")
        yield Guess(name, lines, "those of normalized records, read as they are")


def _head(folder: Path, by_split: Mapping[str, Sequence[Path]]) -> tuple[str, ...]:
    """Return the lines of a recipe with its files and splits."""
    places = {
        split: [path.relative_to(folder).as_posix() for path in files]
        for split, files in by_split.items()
    }
    return (
        f"    local_path: {json.dumps(places, ensure_ascii=False)}",
        f"    splits: {json.dumps(list(by_split), ensure_ascii=False)}",
    )


_HEAD = """\
# Benchmarks found beside this file. The meaning of their fields is guessed from the names of the
# fields in the first rows. Check the result before you trust a scan:
#     decon-assets normalize THIS_FILE
# All options of recipes: docs/recipes.md.
"""


_ANSWER_LINE = "    answers: "
_NO_ANSWER = f'{_ANSWER_LINE.replace("a", "# a", 1)}["..."]  # no field has the name of an answer'


def _entry(guess: Guess) -> str:
    lines = [f"  {guess.name}:", f"    # fields: {guess.fields}", *guess.lines]
    return "\n".join(lines) + "\n"


def _benchmarks(
    folder: Path, rows: Sequence[Path], *, taken: Sequence[str] = ()
) -> dict[str, dict[str, list[Path]]]:
    """Group files by benchmark and split, both taken from the file name."""
    benchmarks: dict[str, dict[str, list[Path]]] = {}
    for path in rows:
        parts = path.relative_to(folder).as_posix().split("/")
        parts[-1] = parts[-1].split(".")[0]
        stem = "_".join(parts)
        split = next((each[1].lower() for each in _SPLIT.finditer(stem)), "test")
        name = _SPLIT.sub("", stem)
        name = re.sub(r"[-_.]?\d+(-of-\d+)?$", "", name) if len(rows) > 1 else name
        benchmarks.setdefault(name.strip("-_."), {}).setdefault(split, []).append(path)
    return dict(zip(_partition_keys(benchmarks, taken=taken), benchmarks.values(), strict=True))


def _partition_keys(names: Iterable[str], *, taken: Sequence[str] = ()) -> list[str]:
    """Return unique names that are valid partition keys and not in `taken`."""
    keys: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", folded(name)).strip("-_") or "benchmark"
        numbered = (f"{plain}_{number}" for number in count(2))
        keys.append(next(each for each in chain([plain], numbered) if each not in {*keys, *taken}))
    return keys


def _guess(name: str, by_split: Mapping[str, Sequence[Path]], folder: Path) -> Guess:
    """Return the first recipe that gives records; raise `RecipeError` if none does."""
    rows = [row for files in by_split.values() for path in files for row in _some_rows(path)]
    fields = ", ".join(map(str, fields_of(rows)))
    where = str(next(iter(by_split.values()))[0])
    if not rows:
        raise RecipeError(Problem(where, "no row that can be read", "rows of a benchmark"))
    head = _head(folder, by_split)
    for lines in _candidates(rows):
        has_answer = any(line.startswith(_ANSWER_LINE) for line in lines)
        without = () if has_answer else (_NO_ANSWER,)
        guess = Guess(name, (*head, *lines, *without), fields, has_answer)
        if _fits(guess, folder):
            return guess
    expected = f"a field with the question ({', '.join(_PROMPTS)}), with text in every row"
    remedy = "write its recipe by hand (docs/recipes.md), or leave the file out"
    raise RecipeError(Problem(where, f"fields {fields}", expected, remedy))


def _some_rows(path: Path) -> list[Row]:
    return [row for row in islice(read_rows(path), MOST_ROWS) if not isinstance(row, Problem)]


def _candidates(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield recipes for rows with these fields, those that use most fields first."""
    fields = fields_of(rows)
    names = [field.name for field in fields]
    lengths = {field.name: field.n_characters for field in fields if "text" in field.kinds}
    longest = [max(lengths, key=lengths.__getitem__)] if lengths else []
    prompts = [name for name in _PROMPTS if name in names] or longest
    passage = next((f"    passage: {name}" for name in _PASSAGES if name in names), None)
    for prompt in prompts:
        prompt_line = f"    prompt: {json.dumps(prompt, ensure_ascii=False)}"
        for answers in _answers(names, prompt):
            if passage:
                yield [prompt_line, passage, *answers]
            yield [prompt_line, *answers]


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
