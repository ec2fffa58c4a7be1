"""A small text grammar: genres of paragraphs, and sentences with choices and slots.

A genre file has `== name` lines; below each, `* 2-3` opens a paragraph of two or three of the lines
that follow, `+ 1` continues the paragraph, `- 3-5` puts each line on a line of its own. In a line,
`{a|b}` is a choice, `<town>` a word from the lexicon, `<town:t>` the same word throughout the
document, `<3-9>` a number, and a backslash with an n a line break.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

_CHOICE = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"<([a-z]+)(?::([a-z]+))?>")
_NUMBER = re.compile(r"<(\d+)-(\d+)>")
_BLOCK = re.compile(r"([*+-]) (\d+)(?:-(\d+))?")
_SENTENCE_START = re.compile(r"(^|[.!?]\s+|\n)([a-z])(?=[a-z]*[ :])")


@dataclass(frozen=True)
class Block:
    """Some lines of a genre, of which a document takes `least` to `most`."""

    join: str
    least: int
    most: int
    lines: tuple[str, ...]


Slots = dict[tuple[str, str], str]


class Grammar:
    """Word lists and genres, and the one way to make text of them."""

    def __init__(self, folder: Path) -> None:
        self._words = _read_lexicon(folder / "lexicon.txt")
        self.genres = read_genres(folder / "genres.txt")
        self.tongues = read_genres(folder / "tongues.txt")
        self.chats = read_genres(folder / "chats.txt")

    def fill(self, line: str, rng: Random, slots: Slots) -> str:
        """One line with all its choices made, innermost first."""
        while found := _CHOICE.search(line):
            choice = rng.choice(found[1].split("|"))
            line = line[: found.start()] + choice + line[found.end() :]
        line = _SLOT.sub(lambda slot: self._word(slot[1], slot[2], rng, slots), line)
        line = _NUMBER.sub(lambda span: str(rng.randint(int(span[1]), int(span[2]))), line)
        return line.replace("\\n", "\n")

    def _word(self, name: str, tag: str | None, rng: Random, slots: Slots) -> str:
        if tag and (name, tag) in slots:
            return slots[name, tag]
        word = self.fill(rng.choice(self._words[name]), rng, slots)
        if tag:
            slots[name, tag] = word
        return word

    def paragraphs(self, genre: tuple[Block, ...], rng: Random, slots: Slots) -> list[str]:
        """A text of this genre, paragraph by paragraph; no line is used twice."""
        paragraphs: list[str] = []
        for block in genre:
            n_lines = min(rng.randint(block.least, block.most), len(block.lines))
            chosen = sorted(rng.sample(range(len(block.lines)), n_lines))
            if block.join != "\n":
                rng.shuffle(chosen)
            lines = [tidy(self.fill(block.lines[at], rng, slots)) for at in chosen]
            if not lines:
                continue
            text = ("\n" if block.join == "\n" else " ").join(lines)
            if block.join == "+" and paragraphs:
                paragraphs[-1] += " " + text
            else:
                paragraphs.append(text)
        return paragraphs


def tidy(text: str) -> str:
    """A capital where a sentence begins, and `an` before a vowel; code is left alone."""
    if "```" in text:
        return text
    text = _SENTENCE_START.sub(lambda start: start[1] + start[2].upper(), text)
    return re.sub(r"\b([Aa]) (?=[aeio]|u(?!ni|se|su))", r"\1n ", text)


def read_genres(path: Path) -> dict[str, tuple[Block, ...]]:
    """The genres of a file, by name."""
    genres: dict[str, tuple[Block, ...]] = {}
    for part in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        blocks: list[Block] = []
        for line in filter(None, body.splitlines()):
            if head := _BLOCK.fullmatch(line):
                join = "\n" if head[1] == "-" else head[1]
                blocks.append(Block(join, int(head[2]), int(head[3] or head[2]), ()))
            else:
                last = blocks[-1]
                blocks[-1] = Block(last.join, last.least, last.most, (*last.lines, line))
        genres[name.strip()] = tuple(blocks)
    return genres


def _read_lexicon(path: Path) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(": ")
            lists[name] = _split_choices(words)
    return lists


def _split_choices(words: str) -> list[str]:
    """Split at the bars that are not inside braces."""
    return re.split(r"\|(?![^{}]*\})", words)
