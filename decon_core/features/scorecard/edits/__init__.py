"""Ways to change an item on its way into training data, by topic; see `edit.py` for what one is."""

from __future__ import annotations

from decon_core.features.scorecard.edits import (
    characters,
    content,
    duplicates,
    markup,
    surface,
    turns,
    words,
)
from decon_core.features.scorecard.edits.edit import Edit

# The report lists them in this order.
TRANSFORMATIONS: tuple[Edit, ...] = (
    *surface.EDITS,
    *markup.EDITS,
    *characters.EDITS,
    *words.EDITS,
    *content.EDITS,
    *duplicates.EDITS,
    *turns.EDITS,
)
