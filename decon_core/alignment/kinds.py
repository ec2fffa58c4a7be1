"""What a place is to an item, in the order in which the kinds are asked for.

Weights are those of `comparison.py`. What tells an item from its siblings counts as much as how
much of it was found: an item of which only the template stands there is not there.
"""

from __future__ import annotations

import numpy as np

from decon_core.alignment.comparison import Comparison, Question

VERBATIM, EDITED, VARIANT, PART, TEMPLATE = "verbatim", "edited", "variant", "part", "template"
KINDS = (VERBATIM, EDITED, VARIANT, PART, TEMPLATE)

# A question that weighs less says too little to be told from any other text.
LEAST_WEIGHT = 14_000
# So do fewer words, unless the answer is there, too; a changed word leaves nothing to go by.
FEWEST_UNITS = 8
LEAST_EDITED = 0.4  # edited questions are recorded from here on; a threshold decides
_LEAST_OWN_WEIGHT = 2_500  # below, nothing tells an item from its siblings
_LEAST_TEMPLATE = 0.35
_LEAST_OWN = 0.25
_LARGE_FAMILY = 10
_LEAST_OWN_OF_FAMILY = 0.75
_NEARLY_WHOLE = 0.85
_LEAST_PASSAGE = 0.5


def kind_of(
    one: Comparison, *, passage: float | None, is_sibling: bool
) -> tuple[str, float] | None:
    """Return the kind of a comparison and its score; None if the two are hardly related.

    `passage`: the share of the item's passage that stands near, None if it has none.
    """
    share = one.weight_found / max(1, one.weight)
    own = _own_share(one, share, passage, is_sibling=is_sibling)
    if one.is_whole and own is not None and not is_sibling:
        return (VERBATIM, 1.0) if one.weight >= LEAST_WEIGHT else None
    if one.weight_found < LEAST_WEIGHT:
        return None
    template = (TEMPLATE, share) if share >= _LEAST_TEMPLATE else None
    if own is None or is_sibling:
        return template
    is_of_family = one.n_family >= _LARGE_FAMILY
    if own >= _LEAST_OWN:
        if _is_variant(one, own):
            return VARIANT, share
        if _is_edited(one, min(own, share), is_of_family=is_of_family, own=own):
            return EDITED, min(own, share)
        if _is_part(one, share, own, is_of_family=is_of_family):
            return PART, share
    return template if is_of_family or own < _LEAST_OWN else None


def may_have_kind(question: Question, text: str) -> bool:
    """Whether a place with this text can be of any kind to a question, without its passage.

    The text is in lower case, without mark-up or signs that canonical text folds. Only that words
    occur there counts, not their order, so this excludes most places cheaply.
    """
    units, weights = question.units, question.weights
    occurs = np.array(
        [number or key in text for key, number in zip(units.keys, units.is_number, strict=True)]
    )
    found = int(weights[occurs].sum())
    if found < LEAST_WEIGHT:
        return False
    if found >= _LEAST_TEMPLATE * weights.sum():
        return True
    own = int(weights[question.own.is_own].sum())
    own_found = int(weights[occurs & question.own.is_own].sum())
    return own >= _LEAST_OWN_WEIGHT and own_found >= _LEAST_OWN * own


def _own_share(
    one: Comparison, share: float, passage: float | None, *, is_sibling: bool
) -> float | None:
    """Return how much of what tells the item from others was found; None if nothing does."""
    own = one.own_found / one.own_weight if one.own_weight >= _LEAST_OWN_WEIGHT else None
    if passage is not None:
        if passage >= _LEAST_PASSAGE:
            return share if own is None else max(own, share)
        return None if one.n_family >= _LARGE_FAMILY else own
    if own is None and not is_sibling and (one.is_whole or share >= _NEARLY_WHOLE):
        return share
    return own


def _is_variant(one: Comparison, own: float) -> bool:
    """Whether numbers or names were replaced by others, and little else."""
    n_changed = one.n_numbers_changed + one.n_names_changed
    are_most = one.n_numbers_changed >= max(1, one.n_numbers / 2) or one.n_names_changed >= max(
        1, one.n_names / 2
    )
    return (
        are_most
        and own >= 0.35
        and one.n_found >= 6
        and one.n_found >= 0.75 * (one.n_units - n_changed)
        and one.extent >= 0.7 * one.n_units
        and one.n_inserted < 0.5 * one.n_found
    )


def _is_edited(one: Comparison, score: float, *, is_of_family: bool, own: float) -> bool:
    return (
        score >= LEAST_EDITED
        and (own >= _LEAST_OWN_OF_FAMILY or not is_of_family)
        and one.n_found >= FEWEST_UNITS - 1
        and one.extent >= 0.6 * one.n_units
        and one.n_inserted < 0.4 * one.n_found
    )


def _is_part(one: Comparison, share: float, own: float, *, is_of_family: bool) -> bool:
    """Whether one run holds most of what was found."""
    return (
        share >= 0.2
        and own >= (0.5 if is_of_family else 0.2)
        and one.own_found >= 9_000
        and one.longest >= max(6, 0.6 * one.n_found, 0.4 * one.n_units)
    )
