"""Ways to change an item on its way into training data, by topic; see `edit.py` for what one is."""

from __future__ import annotations

from decon_core.features.scorecard.edits import content, surface, words
from decon_core.features.scorecard.edits.edit import Edit

# The report lists them in this order.
TRANSFORMATIONS: tuple[Edit, ...] = (*surface.EDITS, *words.EDITS, *content.EDITS)
