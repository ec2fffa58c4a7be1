"""Duplicates of items, made without a model: the same task in another order or with other names.

A rewriting depends only on the item and on the random choices that it is given; whether it applies
depends on the item alone. The scorecard plants its results, and blends insert them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from decon_core.features.rewriting.clauses import clauses_reordered
from decon_core.features.rewriting.clues import clues_shuffled
from decon_core.features.rewriting.item_texts import ItemTexts, Shuffle
from decon_core.features.rewriting.names import names_and_numbers_replaced, names_replaced
from decon_core.features.rewriting.programs import identifiers_renamed

Rewriting = Callable[[ItemTexts, Shuffle], ItemTexts | None]

# None: there is nothing to change.
REWRITINGS: Mapping[str, Rewriting] = {
    "clauses_reordered": clauses_reordered,
    "names_replaced": names_replaced,
    "clues_shuffled": clues_shuffled,
    "identifiers_renamed": identifiers_renamed,
    "names_and_numbers_replaced": names_and_numbers_replaced,
}
# Not a duplicate but another item of the same template, without an answer.
OTHER_ITEM = "names_and_numbers_replaced"
