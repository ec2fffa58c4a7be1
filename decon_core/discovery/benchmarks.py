"""Find recipes, and write recipes for benchmark files that have none."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from textwrap import TextWrapper

from decon_core.benchmarks.catalog import LIKENESS, entries
from decon_core.benchmarks.files import files_by_split, part_order
from decon_core.benchmarks.folder import places_of_records
from decon_core.benchmarks.normalized import is_record
from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.readers import is_readable, known_endings
from decon_core.config.validation import did_you_mean, key_from
from decon_core.corpus.formats import is_shard
from decon_core.corpus.shard_head import printable
from decon_core.discovery.decide import reading_of
from decon_core.discovery.first_rows import FirstRows, first_rows
from decon_core.discovery.overlap import overlaps
from decon_core.discovery.reading import OpenChoice, Reading
from decon_core.errors import InputError, Problem, collecting
from decon_core.storage.listing import METADATA
from decon_core.storage.paths import is_hidden

_RECIPES = (".yaml", ".yml")
_SPLITS = ("train", "test", "validation", "valid", "val", "dev")
_SPLIT = re.compile(rf"(?:^|[-_.])({'|'.join(_SPLITS)})(?=$|[-_.])", re.IGNORECASE)


@dataclass(frozen=True)
class Guess:
    """A recipe for a benchmark, as lines of YAML: chosen, or for the user to choose."""

    name: str
    lines: tuple[str, ...]
    why: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    # Fields that may be the question, if none of them is convincing.
    candidates: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        return bool(self.candidates)


@dataclass(frozen=True)
class RecipeDraft:
    """A recipe file to be written, with its text."""

    path: Path
    text: str
    guesses: tuple[Guess, ...]
    names_of_records: tuple[str, ...] = ()  # those with normalized records: nothing was guessed

    @property
    def names(self) -> tuple[str, ...]:
        """The benchmarks with a recipe, without those that wait for a choice."""
        return tuple(guess.name for guess in self.guesses if not guess.is_open)


@dataclass
class Survey:
    """The benchmarks at some places, and what could not be read there."""

    recipes: list[Path] = field(default_factory=list)
    drafts: list[RecipeDraft] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # files beside recipes that read others
    problems: list[Problem] = field(default_factory=list)  # files and folders that are left out


def survey_benchmarks(typed: Sequence[Path]) -> Survey:
    """Look at files and folders of benchmarks; raise if a place is named twice, or none is usable.

    One that cannot be read is a problem of the survey, and ends none of the others.
    """
    survey = Survey()
    rows_by_folder: dict[Path, list[Path]] = {}  # files without a recipe beside them
    places: list[tuple[str, list[Path]]] = []
    for path in typed:
        with collecting(survey.problems):
            files = _files(path)
            places.append((str(path), files))
            rows = _without_recipe(files, survey)
            folder = (path if path.is_dir() else path.parent).absolute()
            rows_by_folder.setdefault(folder, []).extend(rows)
    InputError.raise_for(overlaps(places))
    for folder, rows in rows_by_folder.items():
        draft = _draft(folder, rows, survey.problems)
        if draft is None:
            continue
        if draft.path in survey.recipes:
            found = "it has recipes for only some of the files in its folder"
            remedy = "add the missing recipes to this file by hand, or leave those files out"
            raise InputError(Problem(str(draft.path), found, remedy=remedy))
        survey.drafts.append(draft)
    if not survey.recipes and not survey.drafts:
        expected = "recipes (a top-level `evals:` in a YAML file), or files of rows"
        nothing = [Problem(str(path), "no benchmark", expected) for path in typed]
        raise InputError(dict.fromkeys(survey.problems or nothing))
    return survey


def recipe_file_of(folder: Path) -> Path | None:
    """Return the file of a folder with recipes for all its other files; None if there is none."""
    if not folder.is_dir():
        return None
    survey = Survey()
    rows = _without_recipe(_files(folder), survey)
    is_complete = len(survey.recipes) == 1 and not (rows or survey.left_out or survey.problems)
    return survey.recipes[0] if is_complete else None


def recipes_for_rows(path: Path, file: Path) -> RecipeDraft | None:
    """Return recipes for a benchmark file, or a folder of some, to be written to `file`.

    None if no recipe is needed: there is one, or the rows are normalized records. Raise
    `InputError` if a file cannot be read: its benchmark would be missing without a word.
    """
    if not path.exists():
        return None  # reported by the reader of benchmarks
    files = _files(path)
    rows = [each for each in files if is_readable(each) and each.name not in METADATA]
    if any(map(_holds_recipes, files)):
        return None
    if rows and all(map(is_record, first_rows(rows[0]).rows)):
        return None
    survey = survey_benchmarks([path])
    InputError.raise_for(survey.problems)
    (draft,) = survey.drafts
    text = _LOCAL_PATH.sub(partial(_absolute, folder=draft.path.parent), draft.text)
    return replace(draft, path=file, text=text)


_LOCAL_PATH = re.compile(r"(?<=local_path: )\{.*\}$", re.MULTILINE)


def _absolute(found: re.Match[str], folder: Path) -> str:
    places = {
        split: [str(folder / name) for name in names]
        for split, names in json.loads(found[0]).items()
    }
    return json.dumps(places, ensure_ascii=False)


def _without_recipe(files: Sequence[Path], survey: Survey) -> list[Path]:
    """Add the recipe files among these to the survey; return the files of rows if there is none."""
    recipes = []
    for file in files:
        with collecting(survey.problems):
            recipes += [file] if _holds_recipes(file) else []
    survey.recipes += recipes
    for file in files:
        if is_shard(file) and not is_readable(file):
            found = f"format {file.suffix}"
            remedy = "convert it, for example to parquet"
            survey.problems.append(Problem(str(file), found, known_endings(), remedy))
    rows = [file for file in files if is_readable(file) and file.name not in METADATA]
    if not recipes:
        return rows
    read = {
        file.resolve()
        for path in recipes
        for recipe in load_recipes(path).values()
        for of_split in files_by_split(recipe, base=path.parent).values()
        for file in of_split
    }
    survey.left_out += [str(file) for file in rows if file.resolve() not in read]
    return []


def _files(path: Path) -> list[Path]:
    below = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [
        file.absolute()
        for file in below
        if file.is_file() and not is_hidden(file.relative_to(path).parts)
    ]
    if not any(is_readable(file) or file.suffix.lower() in _RECIPES for file in files):
        what = "no recipe or benchmark file" if path.exists() else "no such file or folder"
        expected = "recipes (.yaml), rows (.jsonl, .parquet, …), or a name of the catalog"
        hint = did_you_mean(str(path), entries(), likeness=LIKENESS)
        raise InputError(Problem(str(path), what, expected, hint))
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


# Recipes for files that have none -----------------------------------------------------------------


def _draft(folder: Path, files: Sequence[Path], problems: list[Problem]) -> RecipeDraft | None:
    """Return recipes for the files of a folder; add those that cannot be read to the problems."""
    seen: dict[Path, FirstRows] = {}
    for path in files:
        with collecting(problems):
            seen[path] = first_rows(path)
    records = [path for path, first in seen.items() if all(map(is_record, first.rows))]
    guesses: list[Guess] = []
    with collecting(problems):
        guesses += _recipes_for_records(folder, records)
    names_of_records = tuple(guess.name for guess in guesses)
    raw = [path for path in seen if path not in records]
    for name, by_split in _benchmarks(folder, raw, taken=names_of_records).items():
        with collecting(problems):
            guesses.append(_guess(name, by_split, folder, seen))
    if not guesses:
        return None
    text = _HEAD + "evals:\n" + "\n".join(map(_entry, guesses))
    return RecipeDraft(folder / "evals.yaml", text, tuple(guesses), names_of_records)


def _recipes_for_records(folder: Path, files: Sequence[Path]) -> Iterator[Guess]:
    """Yield recipes that read normalized records; the rows name their benchmark and split."""
    places = places_of_records(sorted(files, key=part_order))
    uses = Counter(file for by_split in places.values() for file in set().union(*by_split.values()))
    for name, key in zip(_partition_keys(places), places, strict=True):
        by_split = places[key]
        lines = _head(folder, by_split)
        if any(uses[file] > 1 for named in by_split.values() for file in named):
            lines = (*lines, f"eval_key: {json.dumps(key, ensure_ascii=False)}")
        yield Guess(name, lines, ("fields: those of normalized records, read as they are",))


def _head(folder: Path, by_split: Mapping[str, Sequence[Path]]) -> tuple[str, ...]:
    """Return the lines of a recipe with its files and splits."""
    places = {
        split: [path.relative_to(folder).as_posix() for path in files]
        for split, files in by_split.items()
    }
    return (
        f"local_path: {json.dumps(places, ensure_ascii=False)}",
        f"splits: {json.dumps(list(by_split), ensure_ascii=False)}",
    )


_HEAD = """\
# Benchmarks found next to this file. The fields for question and answer were chosen as in a public
# benchmark with the same fields, or by names and values in the first rows. Each recipe gives the
# reasons. Read the lines with "check this" first, then look at the result:
#     decon-assets normalize THIS_FILE
# All options of recipes: docs/recipes.md.
"""


_NO_ANSWER = '# answers: ["..."]'


def _entry(guess: Guess) -> str:
    """Return the entry of a benchmark; commented out if the user has to choose the question."""
    notes = [*guess.why, *(f"check this: {doubt}" for doubt in guess.doubts)]
    wrapper = TextWrapper(94, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
    comments = [line for note in notes for line in wrapper.wrap(printable(note))]
    lines = [f"{guess.name}:", *(f"  {line}" for line in (*comments, *guess.lines))]
    mark = "# " if guess.is_open else ""
    return "".join(f"  {mark}{line}\n" for line in lines)


def _benchmarks(
    folder: Path, rows: Sequence[Path], *, taken: Sequence[str]
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
        plain = key_from(name, other="_").strip("-_") or "benchmark"
        numbered = (f"{plain}_{number}" for number in count(2))
        keys.append(next(each for each in chain([plain], numbered) if each not in {*keys, *taken}))
    return keys


def _guess(
    name: str, by_split: Mapping[str, Sequence[Path]], folder: Path, seen: Mapping[Path, FirstRows]
) -> Guess:
    """Return the recipe of a benchmark; raise `InputError` if no field may be a question."""
    first = [seen[path] for files in by_split.values() for path in files]
    where = str(next(iter(by_split.values()))[0])
    columns = {file.columns for file in first}
    if len(columns) > 1:
        found = "only some of the files of this benchmark have column names"
        raise InputError(Problem(where, found))
    head = _head(folder, by_split)
    (named,) = columns
    if named:
        head = (*head, f"columns: {json.dumps(named, ensure_ascii=False)}")
    reading = reading_of([row for file in first for row in file.rows], named, benchmark=name)
    if isinstance(reading, Reading):
        without = (_NO_ANSWER,) if reading.doubts and not reading.has_answer else ()
        lines = (*head, *reading.lines(), *without)
        return Guess(name, lines, reading.why, reading.doubts)
    return _open_guess(name, head, reading, where)


def _open_guess(name: str, head: Sequence[str], choice: OpenChoice, where: str) -> Guess:
    """Return a recipe that waits for the user's choice of a question."""
    if not choice.candidates:
        expected = "a text field that may be the question"
        remedy = "write its recipe by hand (docs/recipes.md), or leave the file out"
        found = f"fields {', '.join(choice.why) or 'without values'}"
        raise InputError(Problem(where, found, expected, remedy))
    doubt = "no field is clearly the question: choose one, and uncomment these lines"
    fields = [json.dumps(field, ensure_ascii=False) for field in choice.candidates]
    first, *others = [f"prompt: {field}" for field in fields]
    lines = (*head, first, *(f"# {other}" for other in others), _NO_ANSWER)
    return Guess(name, lines, choice.why, (doubt,), candidates=choice.candidates)
