"""The sentences of a question: an edited copy has each of them, and asks what the question asks.

If a heavy sentence or half of the question is missing, or the sentence that asks is another one,
the text may tell the same story and ask for something else. If a word that asks is missing, and no
question mark asks, it states a fact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from decon_core.alignment.comparison import Comparison
from decon_core.alignment.units import Units, units_of
from decon_core.kernels.arrays import Array, Bools, Integers
from decon_core.text.characters import Form

_QUESTION_MARKS = "?？؟"
_UNSPACED_MARKS = "。！？"  # end a sentence whatever follows
_MARKS = ".!?؟।"
_BEHIND = " \n\t\"'”’)]*"  # signs of which one follows the mark that ends a sentence
_HEAVY = 0.15  # share of the question's weight: a lighter sentence may be missing
_LEAST_FOUND = 0.4  # share of the weight of a sentence, or of half of the question
_LEAST_FOUND_OF_ASKING = 0.5  # the same of the last sentence with a question mark, or the last
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
    ends = np.flatnonzero(np.isin(mark, _codes(_MARKS + _UNSPACED_MARKS)))
    is_spaced = np.isin(behind[ends], _codes(_BEHIND))
    ends = ends[is_spaced | np.isin(mark[ends], _codes(_UNSPACED_MARKS))]
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
        first, n_units = int(self._units[question]), comparison.n_units
        edges = self._sentences[begin : end + 1] - first
        asking = np.flatnonzero(self._is_question[begin:end])
        last = int(asking[-1]) if asking.size else edges.size - 2
        is_found = np.zeros(n_units, np.bool_)
        is_found[comparison.found_at[:, 0]] = True
        weights = self._weights[first : first + n_units].astype(np.int64)
        fewest = _FEWEST_LOST * int(self._per_word[question])
        if not _are_there(edges, last, is_found, weights, fewest):
            return False
        if not asking.size:
            return True
        start, stop = edges[last : last + 2].tolist()
        keys = self._keys[first : first + stop].tolist()
        words = [at for at, key in enumerate(keys) if key in self._asking]
        # An abbreviation may have ended a sentence: then all interrogatives before count.
        if is_found[[at for at in words if at >= start] or words].all():
            return True
        stops = comparison.found_at[comparison.found_at[:, 0] < stop, 2]
        return _ASKED.match(text, int(stops.max(initial=comparison.start))) is not None


def _are_there(
    edges: Integers, asking: int, is_found: Bools, weights: Integers, fewest: int
) -> bool:
    """Return whether enough was found of each heavy sentence, of the one that asks, and of halves.

    `fewest`: units that a stretch has lost if it is not there.
    """
    up_to = np.zeros((3, weights.size + 1), np.int64)
    np.cumsum([~is_found, weights, weights * is_found], axis=1, out=up_to[:, 1:])
    half = (weights.size + 1) // 2
    n_lost, weight, there = up_to[:, half:] - up_to[:, :-half]
    if ((n_lost >= fewest) & (there < _LEAST_FOUND * weight)).any():
        return False
    n_lost, weight, there = np.diff(up_to[:, edges])
    is_lost, is_heavy = n_lost >= fewest, weight >= _HEAVY * weights.sum()
    if (is_lost & is_heavy & (there < _LEAST_FOUND * weight)).any():
        return False
    is_little = there < _LEAST_FOUND_OF_ASKING * weight
    are_few = 2 * n_lost > np.diff(edges)
    return not (is_lost & (is_little | are_few))[asking]
