"""The errors that this project raises.

`DeconError` and its subclasses are permanent: the same inputs give the same error. Temporary
failures (a full disk, a network error) remain `OSError`, so that a scheduler can retry only those
(`decon_assets/failures.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

_ABSENCE = {
    "no",
    "not",
    "none",
    "nothing",
    "neither",
    "missing",
}  # "no such file" is said without "found"


@dataclass(frozen=True)
class Problem:
    """One problem: where it is, what was found, what was expected, and the remedy.

    Without `expected` it is no wrong value but a failure: `found` says what happened, and `where`
    may be empty.
    """

    where: str
    found: str
    expected: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        if self.expected:
            is_absence = self.found.partition(" ")[0] in _ABSENCE
            found = self.found if is_absence else f"found {self.found}"
            text = f"{self.where}: {found}; expected {self.expected}"
        else:
            text = ": ".join(part for part in (self.where, self.found) if part)
        return f"{text}. {sentence(self.remedy)}" if self.remedy else text


def sentence(text: str) -> str:
    """Return the text with its first letter in upper case, to follow a full stop."""
    return text[:1].upper() + text[1:]


_MAX_LISTED = 20


def format_problems(problems: Sequence[Problem], *, bullet: str = "") -> str:
    """Format problems one per line; a long list is truncated and ends with a count."""
    lines = [f"{bullet}{problem}" for problem in problems[:_MAX_LISTED]]
    if len(problems) > _MAX_LISTED:
        lines.append(f"{bullet}… and {len(problems) - _MAX_LISTED} more")
    heading = "" if len(problems) == 1 else f"{len(problems)} problems:\n  "
    return heading + "\n  ".join(lines)


class DeconError(Exception):
    """Base class. Carries all problems of one input, so that they can be fixed at once."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(format_problems(self.problems))

    @classmethod
    def raise_for(cls, problems: Iterable[Problem]) -> None:
        """Raise an error with all of these problems, if there are any."""
        if listed := [*problems]:
            raise cls(listed)

    def __reduce__(self) -> tuple[type[DeconError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)  # keeps the problems when pickled by process pools


class collecting(AbstractContextManager[None, bool]):  # noqa: N801 - used like `suppress`
    """Add the problems of an error to a list in place of raising it, and go on after the block."""

    def __init__(self, problems: list[Problem], kind: type[DeconError] = DeconError) -> None:
        self._problems, self._kind = problems, kind

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, self._kind):
            return False
        self._problems += error.problems
        return True


class InputError(DeconError):
    """A file, row, setting or name supplied by the user is invalid."""


class ConfigError(InputError):
    """decon.toml or a policy value is invalid."""


class RecipeError(InputError):
    """A benchmark recipe is invalid."""


class RecordError(InputError):
    """A benchmark row does not match its recipe."""


class KeyNameError(InputError):
    """The name of a benchmark, source or pack cannot be a partition key."""


class CorpusError(InputError):
    """A shard is unreadable or not the registered file."""


class MissingError(DeconError):
    """An upstream product does not exist."""


class StaleError(DeconError):
    """An upstream product was built from other inputs than the current ones."""


class DamagedError(StaleError):
    """A file has a wrong or missing checksum."""


class IncompleteError(DeconError):
    """Rows could not be read, and the policy does not allow that."""


class EngineError(DeconError):
    """Jobs cannot be run: an engine or worker processes fail."""
