"""The words of a benchmark, for replacing words and generating text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from random import Random

from decon_core.features.scorecard.items import Item
from decon_core.text import segments

# More do not change the result, and there may be a hundred benchmarks.
_MOST_ITEMS = 1500
_MOST_WORDS = 200_000

# A word in at least this share of the questions is part of the template, not of the content.
_TEMPLATE_SHARE = 0.05
_TEMPLATE_LEAST = 3

_PHRASE_WORDS = 4  # fewer than a question n-gram has tokens
_LONGEST_COPY = 8  # words; the n-grams of `ngram_any` are no shorter
_TRIES = 20
_FEWEST_NAMES = 5

# Names that are given to items of benchmarks without names.
_NAMES = [
    "Aiko", "Bertram", "Chidi", "Dolores", "Emeka", "Farah",
    "Gustav", "Hanneke", "Iqbal", "Jovana", "Kwame", "Leocadia",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words and names of one benchmark, and its texts as words."""

    ranked: tuple[str, ...]  # lower case, most frequent first
    names: tuple[str, ...]
    template: frozenset[str]  # words that many questions share
    texts: tuple[tuple[str, ...], ...]  # words of the questions and passages, in original case

    @cached_property
    def ranks(self) -> dict[str, int]:
        return {word: rank for rank, word in enumerate(self.ranked)}

    @cached_property
    def all_names(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        places = defaultdict(list)
        for number, text in enumerate(self.texts):
            for at, word in enumerate(text[:-1]):
                places[word.casefold()].append((number, at))
        return dict(places)

    @cached_property
    def _starts(self) -> tuple[str, ...]:
        return tuple(self._places)

    @cached_property
    def _everything(self) -> str:
        return f" {' '.join(chain.from_iterable(self.texts)).casefold()} "

    def another(self, word: str, rng: Random) -> str | None:
        """Return another word of about the same frequency; None if there is none."""
        rank = self.ranks.get(word.casefold(), len(self.ranked) // 2)
        reach = max(20, rank // 2)
        near = range(max(0, rank - reach), min(len(self.ranked), rank + reach + 1))
        for _ in range(_TRIES if near else 0):
            other = self.ranked[rng.choice(near)]
            if other != word.casefold():
                if word.isupper() and len(word) > 1:
                    return other.upper()
                return other[:1].upper() + other[1:] if word[:1].isupper() else other
        return None

    def another_name(self, name: str, rng: Random) -> str:
        others = [other for other in self.names if other.casefold() != name.casefold()]
        fallback = [other for other in _NAMES if other.casefold() != name.casefold()]
        other = rng.choice(others if len(others) >= _FEWEST_NAMES else fallback)
        return other.upper() if name.isupper() and len(name) > 1 else other

    def made_up(self, n_words: int, rng: Random) -> str | None:
        """Chain phrases of at most four words, each following the last word of the one before."""
        if len(self._places) < n_words // 4 or len(self.texts) < _FEWEST_NAMES:
            return None
        for _ in range(_TRIES):
            made = self._chain(n_words, rng)
            if not self.has_copy_of(made):
                return segments.joined(
                    word.lower() if is_name_like(word) and word not in self.all_names else word
                    for word in made
                )
        return None

    def _chain(self, n_words: int, rng: Random) -> list[str]:
        number, at = rng.choice(self._places[rng.choice(self._starts)])
        made: list[str] = []
        while len(made) < n_words:
            text = self.texts[number]
            made += text[at : at + rng.randint(2, _PHRASE_WORDS)]
            number, at = self._onward(made[-1], number, rng)
        return made[:n_words]

    def _onward(self, word: str, number: int, rng: Random) -> tuple[int, int]:
        """Return the position after the same word in another text, or any position."""
        places = self._places.get(word.casefold(), [])
        for _ in range(_TRIES if places else 0):
            elsewhere, at = rng.choice(places)
            if elsewhere != number:
                return elsewhere, at + 1
        return rng.choice(self._places[rng.choice(self._starts)])

    def has_copy_of(self, made: Sequence[str]) -> bool:
        """Return whether a run of these words occurs verbatim in the benchmark."""
        lower = [word.casefold() for word in made]
        n = min(_LONGEST_COPY, len(lower))
        starts = list(range(len(lower) - n + 1))
        # Searching for a run is slow; each contains a shorter one that starts at a fourth word.
        if n == _LONGEST_COPY:
            short = n - _PHRASE_WORDS + 1
            parts = range(0, len(lower) - short + 1, _PHRASE_WORDS)
            copied = [at for at in parts if self._has(lower[at : at + short])]
            near = {at - back for at in copied for back in range(_PHRASE_WORDS)}
            starts = [at for at in starts if at in near]
        return n > _PHRASE_WORDS and any(self._has(lower[at : at + n]) for at in starts)

    def _has(self, run: Sequence[str]) -> bool:
        return f" {' '.join(run)} " in self._everything


def lexicon_of(items: Sequence[Item], rng: Random) -> Lexicon:
    """Build the lexicon of a benchmark, from a sample of its items if it is large."""
    chosen = list(items) if len(items) <= _MOST_ITEMS else rng.sample(list(items), _MOST_ITEMS)
    counts: Counter[str] = Counter()
    inner: Counter[str] = Counter()  # capitalised inside a sentence
    in_questions: Counter[str] = Counter()
    texts: list[tuple[str, ...]] = []
    seen: set[str] = set()
    n_words = 0
    for item in chosen:
        # The words of a passage count once for each item that has it.
        for text in filter(None, (item.question, item.passage)):
            words = segments.owners(text, segments.plain_words(text))
            spans = [(text[start:stop], start) for start, stop in words]
            counts.update(word.casefold() for word, _ in spans)
            inner.update(
                word
                for word, at in spans
                if is_name_like(word) and not segments.begins_sentence(text, at)
            )
            if n_words < _MOST_WORDS and text not in seen:
                # Only once; otherwise chains could continue in another copy of the same passage.
                seen.add(text)
                texts.append(tuple(segments.words(text)))
                n_words += len(texts[-1])
        in_questions.update(set(segments.canonical_words(item.question)))
    least = max(_TEMPLATE_LEAST, _TEMPLATE_SHARE * len(chosen))
    return Lexicon(
        ranked=tuple(_by_count(counts)),
        names=tuple(word for word in _by_count(inner) if 2 * inner[word] > counts[word.casefold()]),
        template=frozenset(word for word, n in in_questions.items() if n >= least),
        texts=tuple(text for text in texts if len(text) > 1),
    )


def is_name_like(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and word[1:].islower()


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda word: (-counts[word], word))


def filler(lexicon: Lexicon, n_words: int, rng: Random) -> str | None:
    """Return sentences of generated text; None if the lexicon is too small."""
    lengths: list[int] = []
    while sum(lengths) < n_words:
        lengths.append(rng.randint(7, 18))
    made = [lexicon.made_up(length, rng) for length in lengths]
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in made if text) or None


def like(lexicon: Lexicon, text: str, rng: Random) -> str | None:
    """Return generated text with as many sentences as `text`, of similar length and endings."""
    made = []
    for sentence in segments.sentences(text):
        new = lexicon.made_up(max(1, len(segments.words(sentence))), rng)
        if new is None:
            return None
        end = sentence[len(sentence.rstrip(".!?。！？…")) :]
        made.append(new[:1].upper() + new[1:] + end)
    return " ".join(made) or None


def longest_kept(before: Iterable[str], after: Iterable[str]) -> int:
    """Return the length of the longest run of equal words at equal positions."""
    longest = run = 0
    for old, new in zip(before, after, strict=False):
        run = run + 1 if old == new else 0
        longest = max(longest, run)
    return longest
