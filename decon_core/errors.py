"""Every error this project raises on purpose.

    DeconError
    ├── InputError              a person can mend it: a file, a row, a setting, a name
    │   ├── ConfigError         decon.toml, or a policy value
    │   ├── RecipeError         a recipe for a benchmark
    │   ├── RecordError         a benchmark row that does not fit its recipe
    │   ├── KeyNameError        a benchmark, source or pack name that cannot be a partition key
    │   └── CorpusError         a shard that cannot be read, or is not the one that was registered
    ├── MissingError            something upstream was never made
    ├── StaleError              something upstream was made from other inputs than today's
    │   └── DamagedError        a file whose content is not what was written to it
    └── IncompleteError         rows were lost on the way, and the policy does not allow that

All of them are permanent: the same inputs give the same error. What may go away by itself (a full
disk, a network that hiccups) stays an `OSError`, so that whoever schedules the work can tell the
two apart (`decon_assets/failures.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what was found there, what belongs there, what to do."""

    where: str
    found: str
    expected: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: found {self.found}; expected {self.expected}"
        return f"{text}. {self.remedy}" if self.remedy else text


_MOST_TOLD = 20


def format_problems(problems: Sequence[Problem], *, bullet: str = "") -> str:
    """Problems as lines of text; of very many the first, and how many more there are."""
    lines = [f"{bullet}{problem}" for problem in problems[:_MOST_TOLD]]
    if len(problems) > _MOST_TOLD:
        lines.append(f"{bullet}… and {len(problems) - _MOST_TOLD} more")
    heading = "" if len(problems) == 1 else f"{len(problems)} problems:\n  "
    return heading + "\n  ".join(lines)


class DeconError(Exception):
    """The root. Carries every problem of one input, so that a person mends them in one go."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(format_problems(self.problems))

    def __reduce__(self) -> tuple[type[DeconError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)  # crosses process pools with its problems


class InputError(DeconError):
    """Something that a person wrote or supplied is wrong."""


class ConfigError(InputError):
    """decon.toml, or a policy value."""


class RecipeError(InputError):
    """A recipe for a benchmark."""


class RecordError(InputError):
    """A benchmark row that does not fit its recipe."""


class KeyNameError(InputError):
    """A name that cannot be a partition key."""


class CorpusError(InputError):
    """A shard that cannot be read, or that is not the one that was registered."""


class MissingError(DeconError):
    """Something upstream was never made."""


class StaleError(DeconError):
    """Something upstream was made from other inputs than today's."""


class DamagedError(StaleError):
    """A file whose content is not what was written to it."""


class IncompleteError(DeconError):
    """Rows were lost on the way, and the policy does not allow that."""
