"""What a place is to an item, in the order in which the kinds are asked for.

Weights are those of `comparison.py`. What tells an item from its siblings counts as much as how
much of it was found: an item of which only the template stands there is not there.
"""

from __future__ import annotations

from decon_core.alignment.comparison import Comparison

VERBATIM, EDITED, VARIANT, PART, TEMPLATE = "verbatim", "edited", "variant", "part", "template"
KINDS = (VERBATIM, EDITED, VARIANT, PART, TEMPLATE)

# The smallest weight that can be attributed to an item: lighter text may be from anywhere.
LEAST_WEIGHT = 12_000
# Fewer words say too little unless the answer is there, too: one changed word leaves no evidence.
FEWEST_WORDS = 8
# Numbers and letters alone are in any formula, table and list: a place needs words, too.
_LEAST_WORDS_WEIGHT = 2_000
_LEAST_SHARE = 0.4  # share of the question, or of the units that only it has
_LEAST_OWN_WEIGHT = 5_000  # below, nothing tells an item from its siblings
_LEAST_OWN_RUNS_WEIGHT = 9_000
_LONG_RUN = 20  # words
_LEAST_OWN_OF_FAMILY = 0.75
_LARGE_FAMILY = 20  # items; a few others may have the same distinguishing words
_NEARLY_WHOLE = 0.85
_LEAST_TOLD = 0.4
LEAST_PASSAGE = 0.5


def kind_of(
    comparison: Comparison,
    *,
    passage: float | None,
    is_sibling: bool,
    is_answered: bool,
    told: float = 0.0,
) -> tuple[str, float] | None:
    """Return the kind of a comparison and its score; None if the two are hardly related.

    `passage`: the share of the item's passage that stands near, None if it has none.
    `is_answered`: whether its answer stands near. Beside its answer or passage, a whole question
    may say little. `told`: how much stands near of answers about its passage alone, 1 if enough to
    tell it from others.
    """
    is_confirmed = comparison.is_whole and (is_answered or has_passage(passage))
    if comparison.weight_found < LEAST_WEIGHT and not is_confirmed:
        return None
    share = comparison.weight_found / comparison.weight
    own = _own_share(comparison, share, passage, is_sibling=is_sibling, is_told=told >= 1)
    if comparison.is_whole and own and not is_sibling:
        return VERBATIM, 1.0
    if (
        comparison.words_found < _LEAST_WORDS_WEIGHT
        and comparison.n_found < _NEARLY_WHOLE * comparison.n_units
    ):
        return None  # such as years in a row, or a formula
    is_of_family = comparison.n_family >= _LARGE_FAMILY
    # Most of the question, with few words in between, or nearly all of it in pieces.
    is_most = (
        share >= _LEAST_SHARE
        and comparison.n_found >= (FEWEST_WORDS - 1) * comparison.units_per_word
        and comparison.extent >= 0.6 * comparison.n_units
        and (comparison.is_in_pieces or not comparison.is_interrupted)
    )
    if not is_sibling:
        if is_most and _is_variant(comparison) and (own >= _LEAST_SHARE or not is_of_family):
            return VARIANT, share
        if _is_part(comparison, passage, is_most=is_most):
            return PART, share
        if is_most and own >= (_LEAST_OWN_OF_FAMILY if is_of_family else _LEAST_SHARE):
            return EDITED, min(own, share)
    if told >= _LEAST_TOLD and comparison.is_whole and not is_sibling:
        return PART, share
    is_template = is_sibling or is_of_family or own < _LEAST_SHARE
    return (TEMPLATE, share) if is_template and share >= _LEAST_SHARE else None


def has_passage(share: float | None) -> bool:
    """Return whether enough of an item's passage stands near to be a copy of it."""
    return share is not None and share >= LEAST_PASSAGE


def _own_share(
    comparison: Comparison,
    share: float,
    passage: float | None,
    *,
    is_sibling: bool,
    is_told: bool,
) -> float:
    """Return how much of what tells the item from others was found; 0 if nothing does."""
    has_own = comparison.own_weight >= _LEAST_OWN_WEIGHT
    own = comparison.own_found / comparison.own_weight if has_own else 0.0
    if passage is not None:
        if has_passage(passage) or is_told:
            return max(own, share)
        return 0.0 if comparison.n_family >= _LARGE_FAMILY else own
    is_nearly_whole = comparison.is_whole or share >= _NEARLY_WHOLE
    return share if is_nearly_whole and not has_own and not is_sibling else own


def _is_telling(comparison: Comparison) -> bool:
    """Whether no other item has what was found: its units, or many of its runs of three."""
    return (
        comparison.own_found >= _LEAST_OWN_WEIGHT
        or comparison.own_runs_found >= _LEAST_OWN_RUNS_WEIGHT
    )


def _is_variant(comparison: Comparison) -> bool:
    """Whether numbers or names were replaced by others, and little else."""
    n_changed = comparison.n_numbers_changed + comparison.n_names_changed
    return comparison.n_found >= 0.75 * (comparison.n_units - n_changed) and (
        2 * comparison.n_numbers_changed >= max(1, comparison.n_numbers_found)
        or comparison.n_names_changed >= max(1, comparison.n_names_found)
    )


def _is_part(comparison: Comparison, passage: float | None, *, is_most: bool) -> bool:
    """Whether one run of a question was found that tells it from others, but not most of it.

    A passage has words of the questions about it: near it they are no part.
    """
    n_units = comparison.n_units
    least = max((FEWEST_WORDS - 1) * comparison.units_per_word, 0.4 * n_units)
    # Code and formulas have many units: half of the words may be fewer of them.
    if not is_most and 5 * comparison.weight_found >= comparison.weight:
        least = min(least, max(_LONG_RUN * comparison.units_per_word, 0.2 * n_units))
    return (
        _is_telling(comparison)
        and comparison.longest >= least
        and (comparison.n_found < 0.7 * n_units or not is_most)
        and not has_passage(passage)
    )
