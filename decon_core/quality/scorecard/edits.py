"""Transformations of benchmark items, as on their way into training data: graded and seeded.

A transformation returns None for an item with nothing to change (no numbers, a single sentence).
Unless stated otherwise, passage, question, choices and answer are planted in this order, and the
question and the passage are changed separately: detectors compare the question first, and edits
that all fell into a long passage would leave it unchanged.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from random import Random
from textwrap import TextWrapper
from urllib.parse import quote

from decon_core.quality.scorecard.items import (
    Choice,
    Item,
    answer_line,
    as_text,
    body,
    ending,
    together,
)
from decon_core.quality.scorecard.lexicon import Lexicon, filler, is_name_like
from decon_core.quality.scorecard.pieces import (
    NUMBER_WORDS,
    Span,
    begins_sentence,
    formulas,
    numbers,
    outside,
    owners,
    plain_words,
    sentences,
    spliced,
    word_spans,
)


@dataclass(frozen=True)
class Turn:
    """A message of a conversation."""

    role: str
    content: str


Written = str | tuple[Turn, ...]


@dataclass(frozen=True)
class Material:
    """The input of a transformation."""

    item: Item
    lexicon: Lexicon
    rng: Random
    partner: Item | None = None  # the second item, if two are planted together


@dataclass(frozen=True)
class Transformation:
    """A way to plant an item. Related ones share the group; the name is unique."""

    group: str
    grade: str
    meaning: str
    apply: Callable[[Material], Written | None]
    has_partner: bool = False

    @property
    def name(self) -> str:
        return f"{self.group}: {self.grade}" if self.grade else self.group


Change = Callable[[str], str | None]


def verbatim(m: Material) -> str:
    return as_text(m.item)


def _reworded(item: Item, change: Change) -> Item | None:
    """Change question and passage; None if the question does not change."""
    question = change(item.question)
    if question is None or question == item.question:
        return None
    return replace(item, question=question, passage=item.passage and change(item.passage))


def _planted(item: Item | None) -> str | None:
    return as_text(item) if item else None


def _different(new: str, old: str) -> str | None:
    return new if new != old else None


# The surface --------------------------------------------------------------------------------------

_SIGNS = r".,;:!?\"“”'‘’()\[\]…。，；：！？、—–-"
_PUNCTUATION = re.compile(rf"(?<!\d)[{_SIGNS}]|[{_SIGNS}](?!\d)")  # except within numbers


def lower_case(m: Material) -> str | None:
    return _different(as_text(m.item).lower(), as_text(m.item))


def upper_case(m: Material) -> str | None:
    return _different(as_text(m.item).upper(), as_text(m.item))


def without_punctuation(m: Material) -> str | None:
    text = as_text(m.item)
    bare = _PUNCTUATION.sub(" ", text)
    return _different(re.sub(r"[^\S\n]+", " ", bare).strip(), text)


_TYPESET = (
    (re.compile(r'(?<!\S)"|(?<=[(\[])"'), "“"),
    (re.compile(r'"'), "”"),
    (re.compile(r"(?<=\w)'"), "’"),
    (re.compile(r"'"), "‘"),
    (re.compile(r"\.\.\."), "…"),
    (re.compile(r" -{1,2} |--"), " – "),
    (re.compile(r"(?<=\d) (?=[^\W\d])"), "\u00a0"),
    (re.compile(r"(?<=[.?!]) (?=\S)"), "  "),
    (re.compile(r"fi"), "ﬁ"),
    (re.compile(r"fl"), "ﬂ"),
)


def typeset(m: Material) -> str | None:
    """Typeset: curly quotes, dashes, ligatures, non-breaking and double spaces."""
    text = as_text(m.item)
    for pattern, sign in _TYPESET:
        text = pattern.sub(sign, text)
    return _different(text, as_text(m.item))


def rewrapped(m: Material, *, width: int, has_hyphens: bool = False) -> str | None:
    wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    text = as_text(m.item)
    wrapped = [wrapper.wrap(line) for line in text.split("\n")]
    made = [_hyphenated(lines) for lines in wrapped] if has_hyphens else wrapped
    if has_hyphens and made == wrapped:
        return None
    return _different("\n".join("\n".join(lines) for lines in made), text)


_LONG_WORD = re.compile(r"([^\W\d_]{3,5})([^\W\d_]{3,})")


def _hyphenated(lines: list[str]) -> list[str]:
    """Hyphenate: move the start of a long first word to the end of the line before."""
    made = list(lines)
    for at in range(len(made) - 1):
        long = _LONG_WORD.match(made[at + 1])
        if made[at] and long:
            made[at] += f" {long.group(1)}-"
            made[at + 1] = made[at + 1][long.end(1) :]
    return made


def as_html(m: Material) -> str | None:
    return _marked_up(
        m,
        escape=lambda text: html.escape(text, quote=False),
        emphasis=("<b>{}</b>", "<em>{}</em>", '<a href="#{}">{}</a>'),
        passage='<div class="passage"><p>{}</p></div>\n',
        question="<p>{}</p>",
        choice="<li>{}</li>",
        around=("<ol>\n", "\n</ol>"),
        answer="<p><strong>Answer:</strong> {}</p>",
        line="<br/>\n",
    )


def as_markdown(m: Material) -> str | None:
    return _marked_up(
        m,
        escape=lambda text: re.sub(r"([*_`#])", r"\\\1", text),
        emphasis=("**{}**", "_{}_", "[{}](#{})"),
        passage="> {}\n",
        question="### Question\n\n{}\n",
        choice="- [ ] {}",
        around=("", "\n"),
        answer="**Answer:** {}",
        line="  \n",
    )


def as_latex(m: Material) -> str | None:
    return _marked_up(
        m,
        escape=lambda text: re.sub(r"(?<!\\)([%&#_$])", r"\\\1", text),
        emphasis=(r"\textbf{{{}}}", r"\emph{{{}}}", r"\href{{{}}}{{{}}}"),
        passage="\\begin{{quote}}\n{}\n\\end{{quote}}\n",
        question="\\begin{{problem}}\n{}\n\\end{{problem}}",
        choice="  \\item {}",
        around=("\\begin{enumerate}\n", "\n\\end{enumerate}"),
        answer="\\begin{{solution}}\n{}\n\\end{{solution}}",
        line=" \\\\\n",
    )


def _marked_up(
    m: Material,
    *,
    escape: Callable[[str], str],
    emphasis: Sequence[str],
    passage: str,
    question: str,
    choice: str,
    around: tuple[str, str],
    answer: str,
    line: str,
) -> str | None:
    def marked(text: str) -> str:
        """Escape all but formulas, and emphasise one word in 25, at least one."""
        spans = plain_words(text)
        chosen = m.rng.sample(spans, min(len(spans), max(1, len(spans) // 25)))
        changes = [(span, escape(text[slice(*span)])) for span in _gaps(text, chosen)]
        for start, stop in chosen:
            pattern, word = m.rng.choice(emphasis), text[start:stop]
            changes.append(((start, stop), pattern.format(*[word] * pattern.count("{}"))))
        return spliced(text, changes).replace("\n", line)

    def _gaps(text: str, chosen: Sequence[Span]) -> list[Span]:
        """Return the maximal spans that are neither emphasised nor a formula."""
        cuts = sorted([*chosen, *formulas(text)])
        starts = [0, *(stop for _, stop in cuts)]
        stops = [*(start for start, _ in cuts), len(text)]
        return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]

    item = m.item
    parts = [passage.format(marked(item.passage)) if item.passage else ""]
    parts.append(question.format(marked(item.question)))
    if item.choices:
        listed = "\n".join(choice.format(marked(str(each))) for each in item.choices)
        parts.append(around[0] + listed + around[1])
    if item.correct is not None:
        parts.append(answer.format(marked(str(item.choices[item.correct]))))
    elif item.answer:
        parts.append(answer.format(marked(item.answer)))
    return together(parts)


# Other characters for the same text -------------------------------------------------------------

# One word in this many is changed.
_TOUCHED = 5
_ZERO_WIDTH = "\u200b\u200c\u2060\ufeff"
_TAGS = ("<b>{}</b>", "<span class='w'>{}</span>", "<wbr>{}", "{}<!-- -->", "<i>{}</i>")
_SAME_LOOK = str.maketrans("aceiopsxyACEHKMOPTX", "асеіорѕхуАСЕНКМОРТХ")
_LIGATURES = (("ffi", "ﬃ"), ("ffl", "ﬄ"), ("ff", "ﬀ"), ("fi", "ﬁ"), ("fl", "ﬂ"))
_FULL_WIDTH = {point: point + 0xFEE0 for point in range(ord("!"), ord("~") + 1)}


def _touched(m: Material, change: Callable[[str, int], str]) -> str | None:
    """Change one word in five, at least one; `change` gets a position within the word."""
    text = as_text(m.item)
    spans = [(start, stop) for start, stop in plain_words(text) if stop - start > 1]
    chosen = m.rng.sample(spans, -(-len(spans) // _TOUCHED))
    changes = [
        (span, change(text[slice(*span)], m.rng.randrange(1, span[1] - span[0])))
        for span in sorted(chosen)
    ]
    return _different(spliced(text, changes), text)


def with_zero_width(m: Material) -> str | None:
    return _touched(m, lambda word, at: word[:at] + m.rng.choice(_ZERO_WIDTH) + word[at:])


def with_soft_hyphens(m: Material) -> str | None:
    return _touched(m, lambda word, at: f"{word[:at]}\u00ad{word[at:]}")


def in_full_width(m: Material) -> str | None:
    return _different(as_text(m.item).translate(_FULL_WIDTH), as_text(m.item))


def with_ligatures(m: Material) -> str | None:
    text = as_text(m.item)
    for letters, ligature in _LIGATURES:
        text = text.replace(letters, ligature)
    return _different(text, as_text(m.item))


def with_other_spaces(m: Material) -> str | None:
    return _different(as_text(m.item).replace(" ", "\u00a0"), as_text(m.item))


def with_look_alikes(m: Material) -> str | None:
    """Replace letters by Cyrillic look-alikes in the second part of a word."""
    return _touched(m, lambda word, at: word[:at] + word[at:].translate(_SAME_LOOK))


def with_tags_in_words(m: Material) -> str | None:
    return _touched(m, lambda word, at: word[:at] + m.rng.choice(_TAGS).format(word[at:]))


def with_entities_in_words(m: Material) -> str | None:
    def escaped(word: str, at: int) -> str:
        number = m.rng.choice(("&#{};", "&#x{:x};", "&shy;&#{};"))
        return word[:at] + number.format(ord(word[at])) + word[at + 1 :]

    return _touched(m, escaped)


def url_encoded(m: Material) -> str | None:
    return _different(quote(as_text(m.item), safe=""), as_text(m.item))


# Words --------------------------------------------------------------------------------------------


def words_replaced(m: Material, *, rate: float) -> str | None:
    def change(text: str) -> str | None:
        return _replaced(text, _chosen(plain_words(text), rate, m.rng), m)

    return _planted(_reworded(m.item, change))


def _replaced(text: str, spans: Sequence[Span], m: Material) -> str | None:
    changes = []
    for span in spans:
        word = m.lexicon.another(text[slice(*span)], m.rng)
        if word is None:
            return None
        changes.append((span, word))
    return spliced(text, changes) if changes else None


def _chosen(spans: Sequence[Span], rate: float, rng: Random) -> list[Span]:
    """Choose a share of the spans, rounded; none in a very short text."""
    return rng.sample(spans, round(rate * len(spans)))


def words_deleted(m: Material, *, rate: float) -> str | None:
    def change(text: str) -> str | None:
        chosen = _chosen(plain_words(text), rate, m.rng)
        # Including the following space: a double space would show the deletion.
        gone = [(start, _behind_space(text, stop)) for start, stop in chosen]
        return spliced(text, [(span, "") for span in gone]).strip() if gone else None

    return _planted(_reworded(m.item, change))


def _behind_space(text: str, at: int) -> int:
    return at + (text[at : at + 1] == " ")


def words_inserted(m: Material, *, rate: float) -> str | None:
    def change(text: str) -> str | None:
        changes = []
        for start, stop in _chosen(plain_words(text), rate, m.rng):
            # A word about as frequent as its neighbour.
            word = m.lexicon.another(text[start:stop].lower(), m.rng)
            if word is None:
                return None
            changes.append(((stop, stop), f" {word}"))
        return spliced(text, changes) if changes else None

    return _planted(_reworded(m.item, change))


# Less of it ---------------------------------------------------------------------------------------


def truncated(m: Material, *, kept: float) -> str | None:
    spans = word_spans(m.item.question)
    n = round(kept * len(spans))
    if not 0 < n < len(spans):
        return None
    return body(replace(m.item, question=m.item.question[: spans[n - 1][1]]))


def question_only(m: Material) -> str | None:
    return body(m.item) if ending(m.item) else None


def answer_apart(m: Material, *, n_words: int) -> str | None:
    between = filler(m.lexicon, n_words, m.rng)
    if not ending(m.item) or between is None:
        return None
    return "\n\n".join([body(m.item), between, ending(m.item)])


# Choices ------------------------------------------------------------------------------------------


def choices_shuffled(m: Material) -> str | None:
    item = m.item
    if len({choice.text for choice in item.choices}) < 2:
        return None
    order = list(range(len(item.choices)))
    while [item.choices[at].text for at in order] == [choice.text for choice in item.choices]:
        m.rng.shuffle(order)
    choices = tuple(
        Choice(choice.label, item.choices[at].text)
        for choice, at in zip(item.choices, order, strict=True)
    )
    correct = None if item.correct is None else order.index(item.correct)
    return as_text(replace(item, choices=choices, correct=correct))


_LABELS: dict[str, Callable[[int], str]] = {
    "1. 2. 3.": lambda at: f"{at + 1}. ",
    "bullets": lambda at: "• ",  # noqa: ARG005 - same signature as the others
}


def choices_relabelled(m: Material, *, labels: str) -> str | None:
    item = m.item
    if not item.choices:
        return None
    label = _LABELS[labels]
    choices = tuple(Choice(label(at), choice.text) for at, choice in enumerate(item.choices))
    return None if choices == item.choices else as_text(replace(item, choices=choices))


# Other content ------------------------------------------------------------------------------------


def numbers_changed(m: Material, *, has_all: bool) -> str | None:
    """Replace one or all numbers of the question, consistently within the item."""
    found = [m.item.question[slice(*span)] for span in numbers(m.item.question)]
    if not found:
        return None
    chosen = None if has_all else m.rng.choice(found)
    new: dict[str, str] = {}

    def change(text: str) -> str:
        changes = []
        for span in numbers(text):
            old = text[slice(*span)]
            if chosen in (None, old):
                new.setdefault(old, another_number(old, m.rng))
                changes.append((span, new[old]))
        return spliced(text, changes)

    return as_text(everywhere(m.item, change))


def everywhere(item: Item, change: Callable[[str], str]) -> Item:
    return replace(
        item,
        question=change(item.question),
        passage=item.passage and change(item.passage),
        answer=item.answer and change(item.answer),
        choices=tuple(Choice(choice.label, change(choice.text)) for choice in item.choices),
    )


def another_number(old: str, rng: Random) -> str:
    """Return another number of equal length, with the same points and commas."""
    if old.lower() in NUMBER_WORDS:
        word = rng.choice([word for word in NUMBER_WORDS if word != old.lower()])
        return word.capitalize() if old[0].isupper() else word
    while True:
        new = "".join(str(rng.randrange(10)) if sign.isdigit() else sign for sign in old)
        if new != old and (new[0] != "0" or old[0] == "0"):
            return new


def names_substituted(m: Material) -> str | None:
    """Replace every name of the question, consistently within the item."""
    new: dict[str, str] = {}
    for span in name_spans(m.item.question, m.lexicon):
        name = m.item.question[slice(*span)]
        new.setdefault(name, _unused_name(name, new, m))
    if not new:
        return None

    def change(text: str) -> str:
        found = [(span, new.get(text[slice(*span)])) for span in owners(text, word_spans(text))]
        return spliced(text, [(span, name) for span, name in found if name])

    return as_text(everywhere(m.item, change))


def _unused_name(name: str, used: dict[str, str], m: Material) -> str:
    for _ in range(20):  # the same name for two people would change the text
        found = m.lexicon.another_name(name, m.rng)
        if found not in used.values():
            break
    return found


def name_spans(text: str, lexicon: Lexicon) -> list[Span]:
    """Return the capitalised words inside sentences, and known names anywhere."""
    return [
        (start, stop)
        for start, stop in owners(text, plain_words(text))
        if text[start:stop] in lexicon.all_names
        or (
            is_name_like(text[start:stop])
            and not begins_sentence(text, start)
            and text[start:stop].casefold() not in lexicon.template
        )
    ]


# Another order ------------------------------------------------------------------------------------


def clues_shuffled(m: Material) -> str | None:
    """Shuffle the sentences of the passage, and of the question except its last one."""
    question = sentences(m.item.question)
    clues = _shuffled(question[:-1], m.rng)
    passage = _shuffled(sentences(m.item.passage or ""), m.rng)
    if clues is None and passage is None:
        return None
    return as_text(
        replace(
            m.item,
            question=" ".join([*clues, question[-1]]) if clues else m.item.question,
            passage=" ".join(passage) if passage else m.item.passage,
        )
    )


def _shuffled(ordered: Sequence[str], rng: Random) -> list[str] | None:
    if len(set(ordered)) < 2:
        return None
    shuffled = list(ordered)
    while shuffled == list(ordered):
        rng.shuffle(shuffled)
    return shuffled


def interleaved(m: Material) -> str | None:
    if m.partner is None:
        return None
    both = [sentences(body(item)) for item in (m.item, m.partner)]
    if min(map(len, both)) < 2:
        return None
    mixed = chain.from_iterable(zip_longest(*both, fillvalue=""))
    return together([" ".join(filter(None, mixed)), ending(m.item), ending(m.partner)])


# Another language ---------------------------------------------------------------------------------

# Phrases before the first formula, between two formulas, and after the last one.
_INSTRUCTIONS = {
    "Urdu": (
        ("درج ذیل سوال کو غور سے پڑھیں اور حل کریں۔ فرض کریں کہ", "مان لیجیے کہ", "اگر"),
        ("اور یہ بھی معلوم ہے کہ", "جہاں", "تو اس صورت میں"),
        ("کی قیمت معلوم کریں۔", "ہو تو جواب مرحلہ وار لکھیں۔", "کو حل کریں۔"),
    ),
    "Chinese": (
        ("请仔细阅读下面的题目并作答。设", "已知", "如果"),
        ("，并且", "，其中", "，又因为"),
        ("，求它的值。", "，请写出解题步骤。", "，请计算结果。"),
    ),
    "Spanish": (
        ("Lee con atención el siguiente problema y resuélvelo. Sea", "Se sabe que", "Si"),
        ("y además", "donde", "de modo que"),
        ("Halla su valor.", "Escribe la solución paso a paso.", "Calcula el resultado."),
    ),
}


# An item is not recognizable by "8 * 7" alone.
_LEAST_FORMULA = 16  # characters
_FORMULA_SHARE = 0.25


def instruction_translated(m: Material, *, language: str) -> str | None:
    """Replace the words of the question by fixed phrases of another language, not a translation.

    Formulas keep their order; choices and answers that are formulas or numbers are kept. Passages,
    and choices and answers in words, are left out.
    """
    first, inner, last = _INSTRUCTIONS[language]
    text = m.item.question
    spans = formulas(text)
    n_formula = sum(stop - start for start, stop in spans)
    is_enough = n_formula >= max(_LEAST_FORMULA, _FORMULA_SHARE * len(text))
    if not is_enough or not outside(plain_words(text), spans):
        return None
    phrases = [m.rng.choice(first), *(m.rng.choice(inner) for _ in spans[1:]), m.rng.choice(last)]
    kept = [text[slice(*span)] for span in spans]
    mixed = " ".join(filter(None, chain.from_iterable(zip_longest(phrases, kept, fillvalue=""))))
    item = replace(m.item, question=mixed, passage=None)
    if any(map(_has_words, [item.answer or "", *(choice.text for choice in item.choices)])):
        return item.question
    return as_text(replace(item, correct=None))  # "Answer:" is English


def _has_words(text: str) -> bool:
    return any(stop - start > 2 for start, stop in plain_words(text))


# Conversations ------------------------------------------------------------------------------------


def asked_and_answered(m: Material) -> tuple[Turn, ...] | None:
    asked = together([body(m.item), *map(str, m.item.choices)])
    answer = answer_line(m.item)
    return (Turn("user", asked), Turn("assistant", answer)) if answer else None


_GO_ON = ("Go on.", "I see. And then?", "Understood, what is the question?", "Yes?")


def split_in_the_question(m: Material) -> tuple[Turn, ...] | None:
    """Split the question near its middle, at the end of a sentence if there is one."""
    text = m.item.question
    spans = word_spans(text)
    if len(spans) < 4:
        return None
    middle = spans[len(spans) // 2][0]
    spans = outside(spans[1:], formulas(text))
    ends = [start for start, _ in spans if begins_sentence(text, start)]
    if not spans:
        return None
    cut = min(ends or [start for start, _ in spans], key=lambda end: abs(end - middle))
    first = "\n\n".join(filter(None, [m.item.passage, text[:cut].strip()]))
    turns = [Turn("user", first), Turn("assistant", m.rng.choice(_GO_ON))]
    turns.append(Turn("user", together([text[cut:].strip(), *map(str, m.item.choices)])))
    answer = answer_line(m.item)
    return (*turns, Turn("assistant", answer)) if answer else tuple(turns)


# The table ----------------------------------------------------------------------------------------


def _rates(
    group: str, meaning: str, apply: Callable[..., Written | None], rates: Sequence[float]
) -> list[Transformation]:
    return [
        Transformation(group, f"{rate:.0%}".replace("%", " %"), meaning, partial(apply, rate=rate))
        for rate in rates
    ]


_CASE = "case and punctuation"
_WRAP = "lines"
_OBFUSCATED = "obfuscated"
_NUMBERS = "numbers changed"
_APART = "answer apart"
_TURNS = "chat turns"

TRANSFORMATIONS: tuple[Transformation, ...] = (
    Transformation("verbatim", "", "passage, question, choices and answer unchanged", verbatim),
    Transformation(_CASE, "lower case", "all in lower case", lower_case),
    Transformation(_CASE, "upper case", "all in capitals", upper_case),
    Transformation(_CASE, "no punctuation", "removed, except within numbers", without_punctuation),
    Transformation(_CASE, "typeset", "curly quotes, dashes, ligatures, other spaces", typeset),
    Transformation(_WRAP, "72 columns", "wrapped at 72 columns", partial(rewrapped, width=72)),
    Transformation(_WRAP, "40 columns", "wrapped at 40 columns", partial(rewrapped, width=40)),
    Transformation(
        _WRAP,
        "hyphens",
        "wrapped at 60 columns, long words hyphenated",
        partial(rewrapped, width=60, has_hyphens=True),
    ),
    Transformation("mark-up", "HTML", "tags and entities; one word in 25 emphasised", as_html),
    Transformation("mark-up", "Markdown", "signs; one word in 25 emphasised", as_markdown),
    Transformation("mark-up", "LaTeX", "commands; one word in 25 emphasised", as_latex),
    *(
        Transformation(_OBFUSCATED, grade, meaning, apply)
        for grade, meaning, apply in (
            ("zero width", "a zero-width character in one word in five", with_zero_width),
            ("soft hyphens", "one in one word in five", with_soft_hyphens),
            ("full width", "all letters and signs in full width", in_full_width),
            ("ligatures", "ligatures for ff, fi, fl, ffi, ffl", with_ligatures),
            ("other spaces", "all spaces non-breaking", with_other_spaces),
            ("look-alikes", "Cyrillic letters in one word in five", with_look_alikes),
            ("tags in words", "HTML tags and comments in one word in five", with_tags_in_words),
            ("entities in words", "HTML entities in one word in five", with_entities_in_words),
            ("URL-encoded", "the whole text", url_encoded),
        )
    ),
    *_rates(
        "words replaced",
        "this share of words of question and passage replaced by equally frequent ones",
        words_replaced,
        (0.05, 0.1, 0.2, 0.4),
    ),
    *_rates(
        "words deleted",
        "this share of words of question and passage deleted",
        words_deleted,
        (0.05, 0.1, 0.2, 0.4),
    ),
    *_rates(
        "words inserted",
        "this share of words inserted into question and passage",
        words_inserted,
        (0.05, 0.1, 0.2, 0.4),
    ),
    *(
        Transformation(
            "truncated",
            f"{percent} % kept",
            "the beginning of the question, after its passage; no choices, no answer",
            partial(truncated, kept=percent / 100),
        )
        for percent in (75, 50, 25)
    ),
    Transformation(
        "question only", "", "passage and question; no choices, no answer", question_only
    ),
    Transformation(
        _APART,
        "30 words",
        "this much generated text between the question and choices or answer",
        partial(answer_apart, n_words=30),
    ),
    Transformation(
        _APART,
        "400 words",
        "this much generated text between the question and choices or answer",
        partial(answer_apart, n_words=400),
    ),
    Transformation(
        "choices shuffled",
        "",
        "choices in another order; labels in the same order",
        choices_shuffled,
    ),
    *(
        Transformation(
            "choices relabelled",
            labels,
            "other labels before the choices",
            partial(choices_relabelled, labels=labels),
        )
        for labels in _LABELS
    ),
    Transformation(
        _NUMBERS,
        "one",
        "one number of the question replaced everywhere in the item",
        partial(numbers_changed, has_all=False),
    ),
    Transformation(
        _NUMBERS,
        "all",
        "all numbers replaced, in digits or English words",
        partial(numbers_changed, has_all=True),
    ),
    Transformation(
        "clues shuffled",
        "",
        "sentences of the passage, and of the question except its last, in another order",
        clues_shuffled,
    ),
    Transformation(
        "names substituted", "", "the names of the question replaced", names_substituted
    ),
    *(
        Transformation(
            "instruction translated",
            language,
            "words between formulas replaced by fixed phrases of another language",
            partial(instruction_translated, language=language),
        )
        for language in _INSTRUCTIONS
    ),
    Transformation(
        "two interleaved",
        "",
        "two items of the benchmark, sentence by sentence, then both answers",
        interleaved,
        has_partner=True,
    ),
    Transformation(
        _TURNS, "at the answer", "asked in one turn, answered in the next", asked_and_answered
    ),
    Transformation(
        _TURNS,
        "in the question",
        "half the question in one turn, half in a later one",
        split_in_the_question,
    ),
)
