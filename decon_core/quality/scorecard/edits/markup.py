"""Edits that write an item in a markup language."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decon_core.quality.scorecard.edits.edit import Material, graded
from decon_core.quality.scorecard.items import together
from decon_core.quality.scorecard.pieces import Span, formulas, plain_words, spliced


@dataclass(frozen=True)
class _Markup:
    """A markup language: templates for the parts of an item."""

    escape: Callable[[str], str]
    emphasis: Sequence[str]
    passage: str
    question: str
    choice: str
    around_choices: tuple[str, str]
    answer: str
    line: str


_HTML = _Markup(
    escape=lambda text: html.escape(text, quote=False),
    emphasis=("<b>{}</b>", "<em>{}</em>", '<a href="#{}">{}</a>'),
    passage='<div class="passage"><p>{}</p></div>\n',
    question="<p>{}</p>",
    choice="<li>{}</li>",
    around_choices=("<ol>\n", "\n</ol>"),
    answer="<p><strong>Answer:</strong> {}</p>",
    line="<br/>\n",
)
_MARKDOWN = _Markup(
    escape=lambda text: re.sub(r"([*_`#])", r"\\\1", text),
    emphasis=("**{}**", "_{}_", "[{}](#{})"),
    passage="> {}\n",
    question="### Question\n\n{}\n",
    choice="- [ ] {}",
    around_choices=("", "\n"),
    answer="**Answer:** {}",
    line="  \n",
)
_LATEX = _Markup(
    escape=lambda text: re.sub(r"(?<!\\)([%&#_$])", r"\\\1", text),
    emphasis=(r"\textbf{{{}}}", r"\emph{{{}}}", r"\href{{{}}}{{{}}}"),
    passage="\\begin{{quote}}\n{}\n\\end{{quote}}\n",
    question="\\begin{{problem}}\n{}\n\\end{{problem}}",
    choice="  \\item {}",
    around_choices=("\\begin{enumerate}\n", "\n\\end{enumerate}"),
    answer="\\begin{{solution}}\n{}\n\\end{{solution}}",
    line=" \\\\\n",
)


def marked_up(markup: _Markup, m: Material) -> str | None:
    item = m.item
    parts = [markup.passage.format(_marked(markup, m, item.passage)) if item.passage else ""]
    parts.append(markup.question.format(_marked(markup, m, item.question)))
    if item.choices:
        listed = [markup.choice.format(_marked(markup, m, str(one))) for one in item.choices]
        parts.append("\n".join(listed).join(markup.around_choices))
    answer = item.answer if item.correct is None else str(item.choices[item.correct])
    if answer:
        parts.append(markup.answer.format(_marked(markup, m, answer)))
    return together(parts)


def _marked(markup: _Markup, m: Material, text: str) -> str:
    """Escape all but formulas, and emphasise one word in 25, at least one."""
    spans = plain_words(text)
    chosen = m.rng.sample(spans, min(len(spans), max(1, len(spans) // 25)))
    changes = [(span, markup.escape(text[slice(*span)])) for span in _unmarked(text, chosen)]
    for start, stop in chosen:
        pattern, word = m.rng.choice(markup.emphasis), text[start:stop]
        changes.append(((start, stop), pattern.format(*[word] * pattern.count("{}"))))
    return spliced(text, changes).replace("\n", markup.line)


def _unmarked(text: str, chosen: Sequence[Span]) -> list[Span]:
    """Return the maximal spans that are neither emphasised nor a formula."""
    cuts = sorted([*chosen, *formulas(text)])
    starts = [0, *(stop for _, stop in cuts)]
    stops = [*(start for start, _ in cuts), len(text)]
    return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


EDITS = (
    *graded("mark-up", "tags and entities; one word in 25 emphasised", marked_up, {"HTML": _HTML}),
    *graded("mark-up", "signs; one word in 25 emphasised", marked_up, {"Markdown": _MARKDOWN}),
    *graded("mark-up", "commands; one word in 25 emphasised", marked_up, {"LaTeX": _LATEX}),
)
