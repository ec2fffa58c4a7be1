"""Prints the estimates of `decon-assets scan --sample`, and what they assume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.terminal.output import say, say_rows
from decon_core.wording import counted, percent

if TYPE_CHECKING:
    from decon_core.corpus.sample import Sample, ShardSample
    from decon_core.library.estimates import Rate
    from decon_core.library.results import Outcome


def say_estimates(outcome: Outcome, sample: Sample | ShardSample, out: Path) -> None:
    """Print the estimates as a table, and below it what the ends of the intervals mean."""
    from decon_core.library.estimates import ALL, SAMPLE_FILE

    n = f"{outcome.n_documents + outcome.n_not_sampled:,} documents"
    if outcome.not_drawn:
        n = f"{outcome.n_shards:,} shards"
    say(f"\nestimates for all {n}, from a {sample.words}:\n")
    rows = [
        {
            "with a leak": rate.of,
            "source": "all" if rate.source == ALL else rate.source,
            "benchmark": "any" if rate.benchmark == ALL else rate.benchmark,
            "in the sample": rate.n_found,
            "estimate": _estimate(rate),
            "95 % interval": "" if rate.low is None else f"{rate.low:,} to {rate.high:,}",
            "share": f"{percent(rate.rate_low)} to {percent(rate.rate_high)}",
        }
        for rate in outcome.rates
    ]
    say_rows(rows)
    certain = (
        "\nitems: only items that a detector can find; the lower end of an interval is the number "
        "found in the sample"
    )
    for line in _upper_ends(outcome):
        say(f"{certain}; {line}" if certain else line)
        certain = ""
    say(f"estimates: {out / SAMPLE_FILE}; what they mean: docs/studies/sampling.md")


def _estimate(rate: Rate) -> str:
    """Return an estimated number; a share, if it is not known of how many."""
    is_number = rate.rate is not None and rate.estimate is not None
    return f"{rate.estimate:,.0f}" if is_number else percent(rate.rate)


def _upper_ends(outcome: Outcome) -> Iterator[str]:
    """Yield what the upper ends assume, and why some are unknown."""
    from decon_core.decisions.sampling import FEWEST_SHARDS, most_above

    if not outcome.not_drawn:
        together = max((rate.together or 1 for rate in outcome.rates), default=1)
        yield (
            "the upper end assumes that no document contains more items of a benchmark than the "
            f"sampled documents do (at most {together:,})"
        )
        return
    n = len(outcome.n_documents_of_shards)
    yield "if no item was found, the upper end is the number of all items"
    yield (
        "the shares of documents, and the upper ends of items that were found, assume that no "
        "shard contains more leaks than the worst sampled shard; after a sample of "
        f"{counted(n, 'shard')}, up to {percent(most_above(n))} of all shards may contain more"
    )
    if any(rate.of == "documents" and rate.rate is None for rate in outcome.rates):
        yield (
            f"unknown: an interval needs at least {FEWEST_SHARDS} shards; draw more, or use "
            "--sample 1%, which searches one document in a hundred of every shard"
        )
