"""What a mixture or a blend consists of: by source, and by the labels of the sources.

Rows of each column are in the order of their tokens, as in published tables of such compositions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from decon_core.config.sources import Source
from decon_core.wording import percent, plain

SOURCE = "source"
NOT_DECLARED = "not declared"  # label of a source without a label that others have
ITEMS = "items of benchmarks"  # what a blend has in place of documents; no source

Labels = Mapping[str, Mapping[str, str]]  # labels of each source


NO_LABELS: Labels = MappingProxyType({})


@dataclass(frozen=True)
class Amount:
    n_documents: int
    n_tokens: int


Part = Mapping[str, Amount]  # amount of each source


def labels_of(sources: Iterable[Source]) -> Labels:
    """Return the labels of the sources that have any."""
    return {source.name: dict(source.labels) for source in sources if source.labels}


def composition(part: Part, labels: Labels) -> Iterator[tuple[str, str, Amount]]:
    """Yield column, value and amount: first by source, the largest values of each column first."""
    columns = [(SOURCE, {source: source for source in part})]
    for column in sorted({column for source in part for column in labels.get(source, ())}):
        values = {source: labels.get(source, {}).get(column, NOT_DECLARED) for source in part}
        if ITEMS in values:
            values[ITEMS] = ITEMS
        columns.append((column, values))
    for column, values in columns:
        n_documents, n_tokens = Counter[str](), Counter[str]()
        for source, amount in part.items():
            n_documents[values[source]] += amount.n_documents
            n_tokens[values[source]] += amount.n_tokens
        for value in sorted(n_tokens, key=lambda value: (-n_tokens[value], value)):
            yield column, value, Amount(n_documents[value], n_tokens[value])


HEADS = ("by", "", "documents", "share of all", "tokens", "share of all")


def composition_rows(part: Part, labels: Labels) -> list[list[str]]:
    """Return the rows of a Markdown table of a whole, with `HEADS`."""
    n_documents = sum(amount.n_documents for amount in part.values())
    n_tokens = sum(amount.n_tokens for amount in part.values())
    return [
        [
            column,
            plain(value),
            f"{amount.n_documents:,}",
            _share(amount.n_documents, n_documents),
            f"{amount.n_tokens:,}",
            _share(amount.n_tokens, n_tokens),
        ]
        for column, value, amount in composition(part, labels)
    ]


def phase_heads(n_phases: int) -> list[str]:
    """Return the heads of `phase_rows`."""
    heads = ["by", ""]
    for number in range(n_phases):
        heads += [f"phase {number + 1}, tokens", "share of phase"]
    return [*heads, *HEADS[4:]]


def phase_rows(phases: Sequence[Part], labels: Labels) -> list[list[str]]:
    """Return the rows of a table with the tokens and shares of every phase, and of all."""
    n_tokens = phase_tokens(phases, labels)
    of_sources = [numbers for (column, _), numbers in n_tokens.items() if column == SOURCE]
    totals = [sum(numbers) for numbers in zip(*of_sources, strict=True)]
    rows = []
    for (column, value), numbers in n_tokens.items():
        row = [column, plain(value)]
        for n, total in zip(numbers, totals, strict=True):
            row += [f"{n:,}", _share(n, total)]
        rows.append(row)
    return rows


def phase_tokens(phases: Sequence[Part], labels: Labels) -> dict[tuple[str, str], list[int]]:
    """Return the tokens of every phase, and of all, by column and value."""
    whole: dict[str, Amount] = {}
    for phase in phases:
        for source, amount in phase.items():
            before = whole.get(source, Amount(0, 0))
            whole[source] = Amount(
                before.n_documents + amount.n_documents, before.n_tokens + amount.n_tokens
            )
    nothing = dict.fromkeys(whole, Amount(0, 0))
    parts = [{**nothing, **phase} for phase in phases] + [whole]
    by_part = [
        {(column, value): amount.n_tokens for column, value, amount in composition(part, labels)}
        for part in parts
    ]
    return {name: [n_tokens[name] for n_tokens in by_part] for name in by_part[-1]}


def _share(n: int, of: int) -> str:
    return percent(n / of) if of else "–"
