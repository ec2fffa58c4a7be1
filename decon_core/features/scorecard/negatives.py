"""Hard negatives: edits whose texts look like a leak, in which no item may be found."""

from __future__ import annotations

from dataclasses import replace

from decon_core.features.scorecard.edits.content import another_number, everywhere, other_item
from decon_core.features.scorecard.edits.edit import Edit, Material
from decon_core.features.scorecard.edits.surface import verbatim
from decon_core.features.scorecard.items import Choice, as_text
from decon_core.features.scorecard.lexicon import is_name_like, like, longest_kept
from decon_core.text import segments

# A question that is nearly all template ("Which of the following is true?") would rightly match.
_LONGEST_KEPT = 6  # words in a row
_MOST_KEPT = 0.6


def same_template(m: Material) -> str | None:
    """Replace every number and every word that few questions share, consistently."""
    new: dict[str, str] = {}

    def change(text: str) -> str:
        changes = []
        counted = segments.numbers(text)
        for span in counted:
            number = text[slice(*span)]
            if number not in new:
                new[number] = another_number(number, m.rng)
            changes.append((span, new[number]))
        # The symbols of a formula are template, too; its numbers are not.
        for span in segments.outside(
            segments.word_spans(text), [*counted, *segments.formulas(text)]
        ):
            word = text[slice(*span)]
            if word.casefold() not in m.lexicon.template and len(word) > 1:
                if word not in new:
                    new[word] = _another(word, m)
                changes.append((span, new[word]))
        return segments.spliced(text, changes)

    made = everywhere(m.item, change)
    before, after = (segments.canonical_words(item.question) for item in (m.item, made))
    if len(before) != len(after) or longest_kept(before, after) > _LONGEST_KEPT:
        return None
    n_kept = sum(old == new for old, new in zip(before, after, strict=True))
    return as_text(made) if n_kept <= _MOST_KEPT * len(before) else None


def _another(word: str, m: Material) -> str:
    """Return another name for a name, or another word that is not of the template."""
    if is_name_like(word) and word in m.lexicon.all_names:
        return m.lexicon.another_name(word, m.rng)
    for _ in range(20):
        other = m.lexicon.another(word, m.rng)
        if other and other.casefold() not in m.lexicon.template:
            return other
    return word


def benchmark_like(m: Material) -> str | None:
    """Fill the layout of this item (sentences, choices, words) with phrases of many items."""

    def made_up(text: str | None) -> str | None:
        return like(m.lexicon, text, m.rng) if text else None

    question = made_up(m.item.question)
    choices = [Choice(choice.label, made_up(choice.text) or "") for choice in m.item.choices]
    if question is None or not all(choice.text for choice in choices):
        return None
    return as_text(
        replace(
            m.item,
            question=question,
            passage=made_up(m.item.passage),
            choices=tuple(choices),
            answer=made_up(m.item.answer),
        )
    )


HARD_NEGATIVES = (
    Edit("same template", "", same_template),
    Edit("other names and numbers", "", other_item),
    Edit("passage alone", "", lambda m: m.item.passage),
    Edit("neighbouring item", "", verbatim, is_of_held_out=True),
    Edit("benchmark-like", "", benchmark_like),
)
