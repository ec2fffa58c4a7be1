"""What the options of `decon-assets scan` name: recipes, a policy, a sample, verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.terminal.options import detectors_in, names_in
from decon_core.benchmarks.catalog import SET_MARK, Selection, as_recipe_file, pinned, select
from decon_core.config.layouts import known_layouts
from decon_core.config.load import load_policy
from decon_core.config.policy import Policy
from decon_core.config.validation import did_you_mean
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts, read_verdicts
from decon_core.errors import InputError, Problem
from decon_core.storage.files import make_folder, write_text

if TYPE_CHECKING:
    from decon_core.corpus.sample import Sample, ShardSample


def names_of_catalog(evals: Path) -> list[str]:
    """Return the sets and names of the catalog that were given instead of a path, if they were."""
    given = str(evals)
    is_path = evals.exists() or (SET_MARK not in given and {"/", "."} & {*given})
    return [] if is_path else names_in(given)


def selected(names: Sequence[str]) -> Selection:
    """Return what names and sets given as `--evals` stand for."""
    try:
        return select(names)
    except InputError as error:
        raise InputError(
            replace(problem, where="--evals", expected=f"an existing path, {problem.expected}")
            for problem in error.problems
        ) from None


def with_recipes(evals: Path, out: Path) -> Path:
    """Return the benchmarks as given, or a file of recipes for them, written to `out`."""
    from decon_core.discovery.benchmarks import recipe_file_of, recipes_for_rows

    written = out / "evals.yaml"
    if names := names_of_catalog(evals):
        make_folder(out)
        write_text(written, as_recipe_file(selected(names)))
        return written
    draft = recipes_for_rows(evals, written)
    if draft is None:
        return recipe_file_of(evals) or evals
    from decon_assets.cli.init import say_draft

    make_folder(out)
    write_text(draft.path, draft.text)
    say_draft(draft)
    if any(guess.is_open for guess in draft.guesses):
        failure = "the question field of a benchmark is uncertain"
        remedy = f"Choose it in {draft.path}, then scan with --evals {draft.path}"
        raise InputError(Problem(str(evals), failure, remedy=remedy))
    return draft.path


def pin_recipes(written: Path, revisions: Mapping[str, str]) -> None:
    """Write the scanned revisions into the recipes that `with_recipes` took from the catalog."""
    if revisions:
        write_text(written, pinned(written.read_text(encoding="utf-8"), revisions))


def require_layout(name: str | None) -> None:
    if name and name not in known_layouts():
        names = known_layouts()
        expected = f"one of {', '.join(names)}"
        raise InputError(Problem("--layout", repr(name), expected, did_you_mean(name, names)))


def policy_from(path: Path | None, preset: str | None, detectors: str | None) -> Policy:
    base = Policy.from_mapping({"preset": preset} if preset else {}, where="--preset")
    policy = load_policy(path, like=base) if path else base
    return replace(policy, detectors=detectors_in(detectors)) if detectors else policy


def sample_from(share: str | None, seed: int | None) -> Sample | ShardSample | None:
    from decon_core.corpus.sample import Sample, ShardSample

    if share is None:
        if seed is not None:
            raise InputError(Problem("--sample-seed", "no --sample", "--sample with --sample-seed"))
        return None
    if of_shards := re.fullmatch(r"([1-9]\d*) ?shards?", share.strip()):
        return ShardSample(n_shards=int(of_shards[1]), seed=seed or 0)
    number, per_cent, rest = share.strip().partition("%")
    try:
        if rest or "/" in number:
            raise ValueError
        given = Fraction(number.strip()) / (100 if per_cent else 1)
    except ValueError:
        expected = "a share of documents (1% or 0.01) or a number of shards (20shards)"
        raise InputError(Problem("--sample", repr(share), expected)) from None
    return Sample.of(given, seed=seed or 0)


def require_apart(corpus: Sequence[str], evals: Sequence[Path]) -> None:
    """Raise InputError if the same folder or file is given as corpus and as benchmarks."""
    paths = {Path(path).resolve() for path in corpus}
    found = "given as the corpus and as benchmarks, so every item would be found in its own file"
    InputError.raise_for(
        Problem(str(path), found, remedy="Change one of the two")
        for path in evals
        if path.exists() and path.resolve() in paths
    )


def verdicts_from(path: Path | None) -> Verdicts:
    if path is None:
        return NO_VERDICTS
    if not path.is_file():
        expected = "a verdicts file, as written by `decon-assets review`"
        raise InputError(Problem(str(path), "no such file", expected))
    return read_verdicts(path)
