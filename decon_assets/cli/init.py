"""`decon-assets init`: inspect a corpus and benchmarks, and write a decon.toml for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from decon_assets.cli.scan_options import names_of_catalog, require_apart, selected
from decon_assets.terminal.options import flag, nonempty, nonempty_path, option
from decon_assets.terminal.output import say, say_next
from decon_core.benchmarks.catalog import SET_MARK
from decon_core.benchmarks.configured import benchmarks_of
from decon_core.config.load import load_config
from decon_core.corpus.shard_head import printable
from decon_core.discovery.benchmarks import RecipeDraft, Survey, survey_benchmarks
from decon_core.discovery.corpus import CorpusSurvey, SourceFinding, survey_corpus
from decon_core.discovery.settings import settings_text, shards_line
from decon_core.errors import ConfigError, DeconError, InputError, Problem, collecting
from decon_core.storage.files import atomic_path


def init(
    *,
    corpus: list[str] = option("folders, files or globs", "PATH...", parser=nonempty),
    evals: list[Path] = option(
        "recipe files, benchmark files, folders of them, or names and sets from the catalog (such "
        "as @math)",
        "PATH...",
        parser=nonempty_path,
    ),
    out: Path = option(
        "the file to write (default: decon.toml)",
        "FILE",
        parser=nonempty_path,
        default=Path("decon.toml"),
    ),
    force: bool = flag("--force", "overwrite existing files"),
) -> int:
    """Inspect the first rows of shards and benchmarks, and write a decon.toml that reads them.

    Use it to start a project. The new decon.toml describes each source with the layouts of its
    rows, and sets the number of shards per pack (shards that are scanned together). By default,
    all text of a row is read. `decon-assets settings` lists all other settings.

    For benchmark files without a recipe, the command writes a recipe to an evals.yaml in the same
    folder, with a reason for every choice; check the choices marked "check this". If the command
    cannot tell which field is the question, the recipe is a comment that lists the candidates:
    choose one of them, and uncomment the recipe. Inputs that cannot be read are listed and left
    out; the exit code is then 4.

    Examples:
      decon-assets init --corpus shards/ --evals benchmarks/
      decon-assets init --corpus 'web/*.parquet' chat/ --evals evals.yaml --out my/decon.toml
      decon-assets init --corpus shards/ --evals @math mmlu benchmarks/
    """
    catalog, paths_of_evals = _catalog_and_paths(evals)
    require_apart(corpus, paths_of_evals)
    shards, benchmarks = _survey(corpus, paths_of_evals)
    sources, written = shards.sources, benchmarks.drafts
    paths = [*benchmarks.recipes, *(file.path for file in written)]
    names = _benchmark_names(sources, benchmarks.recipes, written, catalog)
    text = settings_text(
        sources, paths, folder=out.absolute().parent, catalog=catalog, left_out=shards.unread
    )
    texts = {**{file.path: file.text for file in written}, out: text}
    ConfigError.raise_for(
        Problem(str(path), "an existing file", "a new file", "Use --force to overwrite it")
        for path in (out, *(file.path for file in written))
        if path.exists() and not force
    )
    with ExitStack() as drafts:  # all files, or none if one cannot be written
        for path, content in texts.items():
            drafts.enter_context(atomic_path(path)).write_text(content, encoding="utf-8")
    for file in written:
        say_draft(file)
    for source in sources:
        say(f"source {source.source.name}: {shards_line(source)}: {source.rows.layouts_line}")
        for doubt in source.rows.doubts:
            say(f"  check this: {printable(doubt)}")
    no_recipe = [f"{path}: no recipe" for path in benchmarks.left_out]
    for reason in (*shards.left_out, *no_recipe, *benchmarks.problems):
        say(f"left out: {reason}")
    for problem in shards.problems:
        say(f"not read: {problem}")
    say(f"benchmarks: {', '.join(names) or 'none yet'}")
    config = "" if out == Path("decon.toml") else f" --config '{out}'"
    say(f"\nwrote {out}")
    say_next(f"check {out}, then run: decon-assets run{config}")
    is_open = any(guess.is_open for file in written for guess in file.guesses)
    is_partial = shards.left_out or shards.problems or benchmarks.problems or is_open
    return 4 if is_partial else 0


def say_draft(file: RecipeDraft) -> None:
    """Print what was chosen in a recipe file, what is doubtful, and what remains to choose."""
    if file.names_of_records:
        say(f"{file.path}: {', '.join(file.names_of_records)}: normalized records, read unchanged")
    guessed = [name for name in file.names if name not in file.names_of_records]
    if guessed:
        say(f"{file.path}: recipes for {', '.join(guessed)}; comments give the reasons")
    for guess in file.guesses:
        if guess.is_open:
            named = ", ".join(guess.candidates)
            say(f"  {guess.name}: choose its question field in {file.path}: {named}")
        else:
            for doubt in guess.doubts:
                say(f"  {guess.name}: check this: {doubt}")


def _benchmark_names(
    sources: Sequence[SourceFinding],
    recipes: Sequence[Path],
    written: Sequence[RecipeDraft],
    catalog: Sequence[str],
) -> Collection[str]:
    """Return the benchmarks that the new files name; write drafts, and raise if they are wrong."""
    with TemporaryDirectory() as folder:
        complete = [file for file in written if file.names]  # others have no recipe yet
        drafts = {Path(folder) / f"{number}.yaml": file for number, file in enumerate(complete)}
        for draft, file in drafts.items():
            draft.write_text(file.text, encoding="utf-8")
        config = Path(folder) / "decon.toml"
        if not recipes and not drafts and not catalog:
            return ()
        paths = [*recipes, *drafts]
        text = settings_text(sources, paths, folder=config.parent, catalog=catalog)
        config.write_text(text, encoding="utf-8")
        try:
            return benchmarks_of(load_config(config))
        except DeconError as error:
            problems = list(error.problems)
            for draft, file in drafts.items():  # name the files that the drafts will be
                problems = [
                    replace(problem, where=problem.where.replace(str(draft), str(file.path)))
                    for problem in problems
                ]
            raise InputError(problems) from None


def _catalog_and_paths(evals: Sequence[Path]) -> tuple[list[str], list[Path]]:
    """Return the sets and names of the catalog, and the paths; a name that is neither is a path."""
    catalog: list[str] = []
    paths: list[Path] = []
    for given in evals:
        names = names_of_catalog(given)
        try:
            selected(names)
        except InputError:
            if SET_MARK in str(given):
                raise
            names = []
        catalog += names
        paths += [] if names else [given]
    return catalog, paths


def _survey(corpus: Sequence[str], evals: Sequence[Path]) -> tuple[CorpusSurvey, Survey]:
    """Return what the corpus and the benchmarks hold; raise for all problems."""
    problems: list[Problem] = []
    with collecting(problems):
        found = survey_corpus(corpus)
    with collecting(problems):
        benchmarks = survey_benchmarks(evals) if evals else Survey()
    InputError.raise_for(problems)
    return found, benchmarks
