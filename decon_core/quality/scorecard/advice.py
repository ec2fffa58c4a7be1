"""Advice on which detector to choose, written by hand from the tables and printed below them.

It contains no numbers of a single run. It holds for GSM8K and AGIEval with every detector at its
default settings and others (`docs/scorecard.md` is from these). Check it after changing a detector
or a default.
"""

from __future__ import annotations

from collections.abc import Sequence

_ABOUT = (
    "These are properties of the detectors, written by hand from the numbers for GSM8K and "
    "AGIEval. If the tables on this page differ for your benchmarks, trust the tables."
)

_BY_DETECTOR = {
    "decon": (
        "**To clean a corpus, `decon`.** It flagged no hard negative and no background. Case, "
        "punctuation, line breaks, hyphens at line ends, HTML, zero-width and look-alike "
        'characters do not hide an item from it (with `preset = "reference"` they do). It needs '
        "the answer near the question: a question without its answer, or with the answer far "
        "after it, is question-only, which mixtures remove as well. Edits reduce its recall: one "
        "changed word in twenty hides about half of the items, one in ten nearly all, LaTeX "
        "within sentences a third."
    ),
    "ratcliff": (
        "**To find edited items, `ratcliff`.** Of all detectors it finds the most edited items: "
        "other words, names and numbers, shuffled sentences, and formulas in a text of another "
        "language. It compares unchanged text, so capitals and unusual "
        'characters hide an item (`normalize = "decon"` fixes that, but loses some formulas). '
        "It also flags short questions that follow a template, and items that share their setting "
        "with another: review what only it finds before you remove it."
    ),
    "longest_match": (
        "**To clean a test set, `longest_match`.** Question and answer are measured separately, so "
        "it finds questions without answers, and long answers even if their question was changed. "
        "Edits spread over a question, a line break or another case cut the run that it measures "
        '(`normalize = "whitespace"` fixes the line breaks, `"decon"` also the case). A passage '
        "that a question or an answer quotes at length is flagged even without them."
    ),
    "exact": (
        "**To count occurrences, `exact`.** One changed character hides an item, so its counts are "
        "a lower bound, not a measure of how clean a corpus is. With "
        '`normalize = "decon"` it ignores line breaks, case and punctuation. It flagged no hard '
        "negative: questions of common phrases stay below its threshold."
    ),
    "ngram_any": (
        "**To compare with published numbers, `ngram_any`.** One common run is enough, so it is "
        "the only one to find some items with a quarter of the question left. At 13 tokens it "
        "misses every shorter question, and edits of one word in five hide about half of the "
        "others. At 8 it finds more than any other detector, and flags a quarter of the hard "
        "negatives: phrases that many questions share."
    ),
}

_TOGETHER = (
    "**Several at once.** Detectors miss different items; the numbers in brackets below are items "
    "found by only one. `decon` and `ratcliff` together cover most kinds of leak: remove what "
    "`decon` flags, and review what `ratcliff` adds."
)
_NONE = (
    "**What none of them finds**: paraphrases, translations that keep no formula, and items that "
    "are too short to search for."
)


def advice(detectors: Sequence[str]) -> str:
    """Return the advice for the detectors of a scorecard, in Markdown."""
    items = [_BY_DETECTOR[detector] for detector in detectors if detector in _BY_DETECTOR]
    if {"decon", "ratcliff"} <= {*detectors}:
        items.append(_TOGETHER)
    items.append(_NONE)
    return "\n".join([f"{_ABOUT}\n", *(f"- {item}" for item in items)])
