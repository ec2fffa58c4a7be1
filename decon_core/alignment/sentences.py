"""The sentences of a question: an edited copy has each of them, and asks what the question asks.

If a heavy sentence is missing, or the sentence that asks is another one, the text may tell the same
story and ask for something else. If none of its words and no question mark asks, it states a fact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from decon_core.alignment.comparison import Comparison
from decon_core.alignment.units import Units, units_of
from decon_core.kernels.arrays import Array
from decon_core.text.characters import Form

_QUESTION_MARKS = "?？؟"
_UNSPACED_MARKS = "。！？"  # end a sentence whatever follows
_MARKS = ".!?؟।"
_BEHIND = " \n\t\"'”’)]*"  # signs of which one follows the mark that ends a sentence
_HEAVY = 0.15  # share of the question's weight: a lighter sentence may be missing
_LEAST_FOUND = 0.4  # share of a sentence's weight
_LEAST_FOUND_OF_ASKING = 0.5  # the same of the last sentence with a question mark
_FEWEST_LOST = 3  # words: an edit of two leaves a short sentence what it was
# A question mark soon behind the last words found, in the same sentence.
_ASKED = re.compile(rf"[^.!。！\u0964]{{0,24}}[{_QUESTION_MARKS}]")
_ASKING_WORDS = (
    "what which who whom whose when where why how "
    "was welche welcher welches welchen welchem wer wem wen wessen wann wo warum wieso wie wieviel "
    "quel quelle quels quelles qui que quoi quand où pourquoi comment combien "
    "qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuánta cuántos cuántas "
    "che chi quale quali cosa dove perché come quanto quanta quanti quante "
    "qual quais quem quando onde como por "
    "wat welk welke wie waar wanneer waarom hoe hoeveel "
    "co kto gdzie kiedy jak dlaczego ile który która które ne kim nerede nasıl neden gì nào ai "
    "какой какая какое какие каком какую кто кого что чего когда где почему как сколько "
    "무엇 누구 어디 언제 왜 어떻게 어느 몇 क्या कौन किस कब कहाँ कितने ما من متى أين كيف لماذا كم أي "
    "谁 誰 哪 吗 嗎 几 幾 何 怎 么 麼"
)


def sentences_of(texts: Sequence[str], units: Units) -> dict[str, Array]:
    """Return how many units each sentence of texts without mark-up has, and which of them ask."""
    characters = np.frombuffer(
        ("\n".join(texts) + "\n").encode("utf-32-le", "surrogatepass"), np.uint32
    )
    mark, behind = characters[:-1], characters[1:]
    is_end = np.isin(mark, _codes(_MARKS)) & np.isin(behind, _codes(_BEHIND))
    ends = np.flatnonzero(is_end | np.isin(mark, _codes(_UNSPACED_MARKS)))
    is_question = np.isin(mark[ends], _codes(_QUESTION_MARKS))
    # Each text is a line: its end ends a sentence, too.
    line_ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    order = np.argsort(np.concatenate([ends, line_ends]), kind="stable")
    ends = np.concatenate([ends, line_ends])[order]
    is_question = np.append(is_question, np.zeros(len(texts), np.bool_))[order]
    lines = np.append(0, line_ends[:-1] + 1) if texts else line_ends
    starts = units.starts + np.repeat(lines, units.lengths)
    stops = np.searchsorted(starts, ends)
    sizes = np.diff(stops, prepend=0)
    has_units = sizes > 0
    text_of = np.searchsorted(line_ends, ends[has_units])
    return {
        "sentence_sizes": sizes[has_units],
        "is_question": is_question[has_units].astype(np.uint8),
        "n_sentences": np.bincount(text_of, minlength=len(texts)),
    }


def _codes(signs: str) -> Array:
    return np.array([*map(ord, signs)], np.uint32)


class Sentences:
    """The sentences of all indexed questions."""

    def __init__(self, arrays: Mapping[str, Any], form: Form) -> None:
        self._units, self._edges = arrays["unit_edges"], arrays["sentence_edges"]
        self._sentences, self._is_question = arrays["sentence_units"], arrays["is_question"]
        self._keys, self._weights = arrays["keys"], arrays["weights"]
        self._per_word = arrays["units_per_word"]
        self._asking = frozenset(units_of([_ASKING_WORDS], form).keys.tolist())

    def are_in(self, text: str, question: int, comparison: Comparison) -> bool:
        """Return whether a place has all heavy sentences of a question, and asks what it asks."""
        begin, end = self._edges[question : question + 2].tolist()
        first = int(self._units[question])
        edges = self._sentences[begin : end + 1] - first
        starts, stops = edges[:-1], edges[1:]
        found = comparison.found_at[:, 0]
        sentence = np.searchsorted(stops, found, side="right")
        n_lost = stops - starts - np.bincount(sentence, minlength=stops.size)
        there = np.bincount(sentence, comparison.weights, minlength=stops.size)
        weights = self._weights[first : first + comparison.n_units].astype(np.int64)
        weight = np.add.reduceat(weights, starts)
        is_lost = n_lost >= _FEWEST_LOST * self._per_word[question]
        is_heavy = weight >= _HEAVY * comparison.weight
        if (is_lost & is_heavy & (there < _LEAST_FOUND * weight)).any():
            return False
        asking = np.flatnonzero(self._is_question[begin:end])
        if not asking.size:
            return True
        last = asking[-1]
        are_few = 2 * n_lost[last] > stops[last] - starts[last]
        if is_lost[last] and (are_few or there[last] < _LEAST_FOUND_OF_ASKING * weight[last]):
            return False
        keys = self._keys[first + starts[last] : first + stops[last]].tolist()
        word = next((at for at, key in enumerate(keys) if key in self._asking), None)
        if word is None or starts[last] + word in found:
            return True
        stop = comparison.found_at[sentence <= last, 2].max(initial=comparison.start)
        return _ASKED.match(text, int(stop)) is not None
