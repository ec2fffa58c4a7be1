"""What a report does not cover, in words: for its page, its card and the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from decon_core.config.detector_registry import find
from decon_core.wording import counted

# Shown with every count of no-answer items, which is incomplete without them.
QUESTIONS_LEFT_OUT = "most questions of up to 43 tokens are left out, because keep_no_answer is off"


def blind_spots(detectors: Iterable[str], n_unknown: int | None) -> str:
    """Return the sentence that limits what `clean` means.

    `n_unknown`: the items that no chosen detector can find and that were not found; None if their
    number is unknown.
    """
    chosen = [detector for detector in map(find, detectors) if detector]
    finds_other_words = any(detector.compares_any_order for detector in chosen)
    reworded = "completely reworded" if finds_other_words else "reworded"
    finds_numbers = any(detector.finds_other_numbers for detector in chosen)
    changed = f"{reworded} or translated"
    if not finds_numbers:
        changed = f"{reworded}, translated or given other numbers"
    finds_programs = any(detector.finds_other_names for detector in chosen)
    finds_answers = any(detector.finds_answers for detector in chosen)
    answers = "answers or tests" if finds_programs else "answers, solutions or tests"
    parts = [f"items that were {changed}", f"{'tests' if finds_answers else answers} alone"]
    if not finds_programs:
        parts.append("code with all names changed")
    if n_unknown:
        parts.append(f"{counted(n_unknown, 'item')} that no chosen detector can find")
    if n_unknown is None:
        parts.append("an unknown number of items that no detector can find")
    return f"Not covered: {'; '.join(parts)}."
