"""Tables 19 to 21 of GAPERON: shares and sums of training data by phase, from the printed tokens.

docs/studies/composition.md states what is checked here.
"""

from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from decon_core.mixtures.composition import Amount, composition_rows, phase_rows

TABLES = yaml.safe_load(Path(__file__).with_name("gaperon_compositions.yaml").read_text())
# Shares, and how many of them differ in the last digit because their tokens were rounded.
SHARES = {"table_19": (88, 6), "table_20": (115, 6), "table_21": (88, 2)}


class Printed(NamedTuple):
    """A printed row: tokens in millions and share of each phase, and tokens of all phases."""

    tokens: list[int | None]
    shares: list[float | None]
    total: int


def printed(cells):
    return Printed(cells[:-1:2], cells[1:-1:2], cells[-1])


@pytest.fixture(params=TABLES)
def table(request):
    """Name and sources of a table, its printed sums, kinds, and what the card of a blend shows."""
    content = TABLES[request.param]
    sources = {name: printed(row[1:]) for name, row in content["sources"].items()}
    kinds = {name: row[0] for name, row in content["sources"].items()}
    phases = [
        {name: Amount(0, row.tokens[at]) for name, row in sources.items() if row.tokens[at]}
        for at in range(len(content["phases"]))
    ]
    rows = phase_rows(phases, {name: {"kind": kind} for name, kind in kinds.items()})
    sums = {name: printed(row) for name, row in content["sums"].items()}
    return request.param, sources, sums, kinds, {row[1]: row[2:] for row in rows}


def rounding(*amounts):
    """Return what rounding may have taken from printed numbers, in millions of tokens."""
    return sum(50 if n >= 1_000 else 0.5 for n in amounts)


def shares_of(cells):
    return [float(cell.split()[0]) for cell in cells[1:-2:2]]


def test_all_shares_but_14_of_291_are_the_printed_ones_and_those_were_rounded(table):
    name, sources, sums, _, card = table
    n_shares = n_others = 0
    for source, row in sources.items():
        phases = zip(
            shares_of(card[source]), row.shares, row.tokens, sums["all"].tokens, strict=True
        )
        for own, share, n_tokens, whole in phases:
            if n_tokens is None:
                assert own == 0
                continue
            assert own == pytest.approx(share, abs=0.1 + 100 * rounding(n_tokens) / whole)
            n_shares += 1
            n_others += f"{own:.1f}" != f"{share:.1f}"
    assert (n_shares, n_others) == SHARES[name]


def test_sums_of_kinds_and_phases_are_the_printed_ones_within_rounding(table):
    _, sources, sums, kinds, card = table
    for kind, row in sums.items():
        members = [own for name, own in sources.items() if kind in ("all", kinds[name])]
        columns = zip(*(own.tokens for own in members), strict=True)
        parts = [*([n or 0 for n in column] for column in columns), [own.total for own in members]]
        for amounts, n_tokens in zip(parts, [*row.tokens, row.total], strict=True):
            assert abs(sum(amounts) - n_tokens) <= rounding(*filter(None, amounts), n_tokens)
        if kind != "all":
            assert card[kind][:-2:2] == [f"{sum(amounts):,}" for amounts in parts[:-1]]
            assert shares_of(card[kind]) == pytest.approx(row.shares, abs=0.11)


def test_tokens_of_all_phases_are_the_sums_of_the_phases(table):
    _, sources, _, _, card = table
    for source, row in sources.items():
        amounts = [n for n in row.tokens if n]
        assert card[source][-2] == f"{sum(amounts):,}"
        assert abs(sum(amounts) - row.total) <= rounding(*amounts, row.total)


def test_a_mixture_lists_the_sources_of_a_phase_and_their_kinds_by_size():
    content = TABLES["table_19"]["sources"]
    part = {name: Amount(0, row[1]) for name, row in content.items() if row[1]}
    rows = composition_rows(part, {name: {"kind": row[0]} for name, row in content.items()})
    shares = {row[1]: row[-1] for row in rows}
    assert [*shares][:4] == ["FineWeb-Edu", "RP-FR Hi-Head", "The Stack", "TxT360 Non-CC"]
    assert [*shares.items()][-3:] == [("en", "51.7 %"), ("fr", "33.9 %"), ("code", "14.4 %")]
