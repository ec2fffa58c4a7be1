"""Documents that hold no benchmark item: web pages, conversations, and what is said about them."""

from __future__ import annotations

import html
import re
from random import Random
from typing import Any

from sample_world.grammar import Grammar, Slots

Message = dict[str, str]

# How often a genre comes up on the web, in a hundred or so documents.
_WEIGHTS = {
    "forum_repair": 11,
    "recipe": 11,
    "travel": 10,
    "howto": 9,
    "news": 11,
    "review": 8,
    "code_note": 10,
    "local_history": 7,
    "nature_diary": 6,
    "minutes": 5,
    "profile": 6,
    "advert": 5,
    "story": 6,
    "explainer": 7,
    "sport": 4,
    "letter": 4,
}
_LANGUAGES = {"de_tag": "de"}

_LICENSES = {
    "CC-BY-4.0": 22,
    "CC-BY-SA-4.0": 20,
    "CC0-1.0": 14,
    "unknown": 18,
    "CC-BY-NC-4.0": 6,
    "MIT": 5,
    "Apache-2.0": 4,
    "ODC-By-1.0": 3,
    None: 8,
}
_CHAT_LICENSES = {"CC-BY-4.0": 40, "ODC-By-1.0": 25, "CC0-1.0": 15, "unknown": 10, None: 10}

_EMOJI = ("🙂", "😅", "🎉", "🌧️", "🐝", "🍎", "🚲", "👍", "🫖", "🦉")
_N_WORDS = (120, 350)
_N_WORDS_LONG = (1300, 1700)


def _weighted(weights: dict[Any, int], rng: Random) -> Any:
    return rng.choices(list(weights), weights=list(weights.values()))[0]


def n_words(paragraphs: list[str]) -> int:
    return sum(len(paragraph.split()) for paragraph in paragraphs)


class Writer:
    """Writes documents; the same generator state gives the same document."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def page(self, rng: Random) -> tuple[list[str], str]:
        """The paragraphs of a web page, and its language."""
        if rng.random() < 0.025:
            return self._foreign_page(rng)
        if rng.random() < 0.015:
            return self._digest(rng), "en"
        name = _weighted(_WEIGHTS, rng)
        paragraphs = self._text(name, rng, {})
        is_short = rng.random() < 0.06
        enough = 0 if is_short or name == "advert" else rng.randint(*_N_WORDS)
        while n_words(paragraphs) < enough:
            paragraphs += ["---", *self._text(name, rng, {})]
        if rng.random() < 0.04:
            paragraphs[-1] += " " + "".join(rng.sample(_EMOJI, rng.randint(1, 3)))
        return paragraphs, "en"

    def host(self, rng: Random) -> list[str]:
        """Paragraphs of ordinary length that something can be planted between."""
        name = rng.choice(["letter", "nature_diary", "travel", "explainer", "profile", "review"])
        paragraphs = self._text(name, rng, {})
        while len(paragraphs) < 4:
            paragraphs += self._text(name, rng, {})
        return paragraphs

    def _text(self, name: str, rng: Random, slots: Slots) -> list[str]:
        return self._grammar.paragraphs(self._grammar.genres[name], rng, slots)

    def _digest(self, rng: Random) -> list[str]:
        """A long page: a newsletter of many pieces."""
        slots: Slots = {}
        title = self._grammar.fill("# {The <town:t> Messenger|Letters from <town:t>}", rng, slots)
        paragraphs = [title]
        enough = rng.randint(*_N_WORDS_LONG)
        while n_words(paragraphs) < enough:
            paragraphs += ["***", *self._text(_weighted(_WEIGHTS, rng), rng, {})]
        return paragraphs

    def _foreign_page(self, rng: Random) -> tuple[list[str], str]:
        name = rng.choice(list(self._grammar.tongues))
        paragraphs = []
        for _ in range(rng.randint(2, 4)):
            paragraphs += self._grammar.paragraphs(self._grammar.tongues[name], rng, {})
        return paragraphs, _LANGUAGES.get(name, name)

    def chat(self, rng: Random) -> list[Message]:
        """A conversation: a request, its answer, and perhaps more questions about it."""
        messages = self._exchange(rng)
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
            messages += self._follow_up(rng)
        if rng.random() < 0.3:
            user, assistant = (
                self._grammar.fill(line, rng, {})
                for line in (rng.choice(self._thanks[:2]), self._thanks[2])
            )
            messages += _turns(user, assistant)
        return messages

    @property
    def _thanks(self) -> tuple[str, ...]:
        return self._grammar.chats["thanks"][0].lines

    def _exchange(self, rng: Random) -> list[Message]:
        genre = rng.choice([name for name in self._grammar.chats if name in _WEIGHTS])
        slots: Slots = {}
        ask = self._grammar.chats[genre]
        user = " ".join(self._grammar.paragraphs(ask, rng, slots))
        return _turns(user, "\n\n".join(self._text(genre, rng, slots)))

    def _follow_up(self, rng: Random) -> list[Message]:
        user, assistant = (
            " ".join(self._grammar.paragraphs(self._grammar.chats[part], rng, {}))
            for part in ("followup_user", "followup_assistant")
        )
        return _turns(user, assistant)


def _turns(user: str, assistant: str) -> list[Message]:
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


def page_text(paragraphs: list[str], rng: Random) -> str:
    """Paragraphs as one text: mostly plain or Markdown, now and then HTML."""
    if rng.random() > 0.05:
        return "\n\n".join(paragraphs)
    body = "\n".join(_html(paragraph) for paragraph in paragraphs)
    return f'<article lang="en">\n{body}\n</article>'


def _html(paragraph: str) -> str:
    if paragraph in ("---", "***"):
        return "<hr/>"
    text = html.escape(paragraph, quote=False)
    if text.startswith("#"):
        return f"<h2>{text.lstrip('# ')}</h2>"
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    return "<p>" + text.replace("\n", "<br/>\n") + "</p>"


def metadata(paragraphs: list[str], language: str, rng: Random) -> dict[str, str]:
    """License (absent in some rows), address and language of a web page."""
    license_name = _weighted(_LICENSES, rng)
    words = re.findall(r"[a-z]{4,}", paragraphs[0].lower())[:4] or ["page"]
    host = rng.choice(["blog", "forum", "www", "notes", "town", "old"])
    site = rng.choice(["shelfmark", "lowtide", "hearth", "paperboat", "tinlantern", "greywater"])
    url = f"https://{host}.{site}.example/{'-'.join(words)}-{rng.randint(100, 9999)}"
    found = {"license": license_name, "url": url, "lang": language}
    return {key: value for key, value in found.items() if value is not None}


def chat_license(rng: Random) -> str | None:
    return _weighted(_CHAT_LICENSES, rng)
