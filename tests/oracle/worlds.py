"""Small worlds in which every token count can be read off the page."""

from collections.abc import Sequence

from decon_core.config.policy import Policy
from tests.oracle.decon import (
    Entry,
    Index,
    Match,
    Record,
    Tokens,
    build_index,
    detect,
    grams,
)

SAMPLING = Policy(sampling="reference")
EXHAUSTIVE = Policy(sampling="exhaustive")


class WordNumbers:
    """One token a word, numbered in the order in which the words are met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [
            [self.numbers.setdefault(word, len(self.numbers)) for word in text.split(" ") if word]
            for text in texts
        ]

    def is_white_space(self, token: int) -> bool:
        return False


class SpacesCount(WordNumbers):
    """Like `WordNumbers`, with a token -1 for every space."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        words = super().encode(texts)
        return [[token for number in numbers for token in (-1, number)] for numbers in words]

    def is_white_space(self, token: int) -> bool:
        return token == -1


def run(first: int, n: int) -> Tokens:
    """`n` different tokens in a row."""
    return tuple(range(first, first + n))


def noise(n: int, first: int = 1_000_000) -> Tokens:
    """Tokens that no record holds."""
    return run(first, n)


def entry(
    question: Tokens,
    answer: Tokens = (),
    passage: Tokens = (),
    *,
    benchmark: str = "bench",
    instance: int = 0,
    is_correct: bool | None = None,
) -> Entry:
    record = Record(benchmark, "test", instance, "in tokens only", is_correct=is_correct)
    return Entry(record, question, answer, passage)


# Without a second record every idf is ln(1 / 1) = 0 and nothing is ever found.
STRANGER = entry(run(900_000, 30), run(910_000, 10), run(920_000, 10))


def world(*entries: Entry, policy: Policy) -> Index:
    """These records and a stranger, so that an n-gram of one record has idf ln(N) > 0."""
    return build_index([*entries, STRANGER], policy)


def found(document: Tokens, *entries: Entry, policy: Policy) -> list[Match]:
    return detect(document, world(*entries, policy=policy))


def numbers_found(document: Tokens, *entries: Entry, policy: Policy) -> list[int]:
    return [match.number for match in found(document, *entries, policy=policy)]


def five_grams(document: Tokens) -> list[Tokens]:
    return grams(document, 5)
