"""What the tests of the alignment share: texts as units, and a question of a benchmark."""

from decon_core.alignment.comparison import Question, compare
from decon_core.alignment.siblings import Own, items_with_runs, own_of
from decon_core.alignment.units import Units, units_of
from decon_core.config.policy import Policy

FORM = Policy().form
TRAIN = "A train has 12 cars with 48 seats each. How many seats does the train have?"


def read(text: str) -> Units:
    return units_of(text, FORM)


def questions_of(*texts: str, n_items: list[int] | None = None) -> list[Question]:
    """The questions of one benchmark."""
    units = [read(text) for text in texts]
    shared = items_with_runs(units, n_items or [1] * len(units))
    return [
        Question(one, own_of(counts), len(text))
        for one, counts, text in zip(units, shared, texts, strict=True)
    ]


def owned(question: Question, *, n_family: int, is_own: list[bool]) -> Question:
    return Question(
        question.units,
        Own(question.own.is_own & is_own, n_family),
        question.n_characters,
    )


def compared(question: str, document: str, *, span: tuple[int, int] | None = None):
    """Compare the only question of a benchmark with a document."""
    (one,) = questions_of(question)
    return compare(one, read(document), span or (0, len(document)))
