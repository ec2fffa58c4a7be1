"""What to choose when: written by hand from the tables, and printed below them.

Nothing in here is a number of one run. What it says was so on GSM8K and AGIEval with every rule at
its default settings and at others (`docs/scorecard.md` was made from these); whoever changes a rule
or a default reads it again.
"""

from __future__ import annotations

from collections.abc import Sequence

_ABOUT = (
    "These are properties of the rules, written by hand from the numbers for GSM8K and AGIEval. "
    "Where the tables on this page say otherwise for your benchmarks, believe the tables."
)

_OF_RULE = {
    "decon": (
        "**To clean a corpus, `decon`.** It flagged no hard negative and no background. Case, "
        "punctuation, line breaks, hyphens at line ends, HTML, zero-width and look-alike "
        'characters do not hide an item from it (with `preset = "reference"` they do). It wants '
        "the answer with the question: a question without its answer, or with an answer that is "
        "far behind it, is question-only, which mixtures take out as well. Edits cost it much: one "
        "word in twenty hides about half of the items, one in ten nearly all, LaTeX "
        "within sentences a third."
    ),
    "ratcliff": (
        "**To find what was edited, `ratcliff`.** Of all rules it finds most of what was edited: "
        "other words, names and numbers, shuffled sentences, and formulas in a text of another "
        "language. It reads text as it stands, so capitals and odd "
        'characters hide an item (`normalize = "decon"` mends that, and costs some of the '
        "formulas). It flags short questions that follow a template, and items that share their "
        "setting with another: look at what it alone finds before you remove it."
    ),
    "longest_match": (
        "**To clean a test set, `longest_match`.** Question and answer count each by itself, so it "
        "finds questions without answers, and long answers whatever became of their questions. "
        "Edits spread over a question, a line break or another case cut the run that it measures "
        '(`normalize = "whitespace"` mends the lines, `"decon"` the case as well). A passage that '
        "a question or an answer quotes at length is flagged without them."
    ),
    "exact": (
        "**To count occurrences, `exact`.** One changed character hides an item, so what it counts "
        "is a lower bound, and never a measure of how clean a corpus is. With "
        '`normalize = "decon"` it sees through lines, case and punctuation. It flagged no hard '
        "negative: questions of common phrases stay below its threshold."
    ),
    "ngram_any": (
        "**To compare with published numbers, `ngram_any`.** One run in common is enough, so it "
        "alone finds some items of which a quarter of the question is left. At 13 tokens it misses "
        "every question that is shorter than that, and edits of one word in five hide about half "
        "of the others. At 8 it finds more than any other rule, and flags a quarter of what only "
        "looks like an item: phrases that many questions share."
    ),
}

_TOGETHER = (
    "**Several at once.** Rules fail on different items; how many one rule alone finds is told "
    "below, in brackets. `decon` with `ratcliff` beside it covers most kinds of leak: remove what "
    "`decon` calls, and have a person look at what `ratcliff` adds."
)
_NONE = (
    "**What none of them sees**: paraphrases, translations that keep no formula, and items "
    "that are too short to be looked for."
)


def advice(rules: Sequence[str]) -> str:
    """For the rules of a scorecard."""
    items = [_OF_RULE[rule] for rule in rules if rule in _OF_RULE]
    if {"decon", "ratcliff"} <= {*rules}:
        items.append(_TOGETHER)
    items.append(_NONE)
    return "\n".join([f"{_ABOUT}\n", *(f"- {item}" for item in items)])
