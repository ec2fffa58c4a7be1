"""Edits of words: other words, fewer, more, and text that is left out or put in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from decon_core.features.scorecard.edits.edit import Edit, Material, graded
from decon_core.features.scorecard.items import as_text, body, ending
from decon_core.features.scorecard.lexicon import filler
from decon_core.text.segments import Span, plain_words, spliced, word_spans

_RATES = {"5 %": 0.05, "10 %": 0.1, "20 %": 0.2, "40 %": 0.4}
_KEPT = {"75 % kept": 0.75, "50 % kept": 0.5, "25 % kept": 0.25}
_N_WORDS = {"30 words": 30, "400 words": 400}

Change = tuple[Span, str]


def replaced(m: Material, text: str, span: Span) -> Change | None:
    word = m.lexicon.another(text[slice(*span)], m.rng)
    return (span, word) if word is not None else None


def deleted(_: Material, text: str, span: Span) -> Change:
    start, stop = span
    # Including the following space: a double space would show the deletion.
    return (start, stop + (text[stop : stop + 1] == " ")), ""


def inserted(m: Material, text: str, span: Span) -> Change | None:
    start, stop = span
    # A word about as frequent as its neighbour.
    word = m.lexicon.another(text[start:stop].lower(), m.rng)
    return ((stop, stop), f" {word}") if word is not None else None


def reworded(
    rate: float,
    m: Material,
    *,
    change: Callable[[Material, str, Span], Change | None],
    finish: Callable[[str], str] = str,
) -> str | None:
    """Change a share of the words of question and passage, rounded: none in a very short text.

    Return None if the question stays the same, or if a word has no replacement.
    """

    def changed(text: str) -> str | None:
        spans = plain_words(text)
        chosen = m.rng.sample(spans, round(rate * len(spans)))
        changes = [change(m, text, span) for span in chosen]
        known = [made for made in changes if made is not None]
        return finish(spliced(text, known)) if changes and len(known) == len(changes) else None

    question = changed(m.item.question)
    if question is None or question == m.item.question:
        return None
    passage = m.item.passage and changed(m.item.passage)
    return as_text(replace(m.item, question=question, passage=passage))


def truncated(kept: float, m: Material) -> str | None:
    spans = word_spans(m.item.question)
    n = round(kept * len(spans))
    if not 0 < n < len(spans):
        return None
    return body(replace(m.item, question=m.item.question[: spans[n - 1][1]]))


def question_only(m: Material) -> str | None:
    return body(m.item) if ending(m.item) else None


def answer_apart(n_words: int, m: Material) -> str | None:
    between = filler(m.lexicon, n_words, m.rng)
    if not ending(m.item) or between is None:
        return None
    return "\n\n".join([body(m.item), between, ending(m.item)])


EDITS = (
    *graded("words replaced", partial(reworded, change=replaced), _RATES),
    *graded("words deleted", partial(reworded, change=deleted, finish=str.strip), _RATES),
    *graded("words inserted", partial(reworded, change=inserted), _RATES),
    *graded("truncated", truncated, _KEPT),
    Edit("question only", "", question_only),
    *graded("answer apart", answer_apart, _N_WORDS),
)
