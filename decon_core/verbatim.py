"""Records to what `ratcliff`, `longest_match`, `exact` and `ngram_any` search for.

Every different text of the benchmarks of a scan once, in the form that the policy asks for: its
tokens, the records that use it, and what a document is screened for by (see `kernels/screen.py`).
Made once for a set of benchmark versions, and mapped into memory by every worker.

Not every n-gram opens a comparison: there must be the beginning of a word in it, or a character
beyond ASCII, and twelve bytes from there on. What does not open one is a row of dots or a bare
fraction, such as many documents have.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.counts import grams_of
from decon_core.forms import formed
from decon_core.idf import Snapshot, current_snapshot
from decon_core.kernels import runs, screen
from decon_core.policy import Policy
from decon_core.records import Version, load_records
from decon_core.search import search_name
from decon_core.store import Array, Store, map_arrays, write_arrays
from decon_core.texts import texts_of
from decon_core.tokens import Pieces, Tokenizer, load_tokenizer
from decon_core.words import Encoder, FixedVocabulary, GrowingVocabulary, Ragged

Integers = npt.NDArray[np.int64]

_log = logging.getLogger(__name__)

# What of a record a text is. The last two are only looked for whole.
QUESTION, ANSWER, QUESTION_AND_ANSWER, CONTINUATION = range(4)
NAMES = ("question", "answer", "question and answer", "continuation")
_WHOLE = (QUESTION, QUESTION_AND_ANSWER, CONTINUATION)

_SIZES = {"long": screen.LONG, "short": screen.SHORT}
_FILTER_BITS = 16
_BEGINNING_BITS = 7  # it is looked into most often, and should fit the processor's cache
_TABLE_MB = 256
_PAIR_BITS = 4
_MOST_PAIR_WORDS = 17  # log2: a megabyte

# Behind this, a sentence ends and the next one begins.
_SENTENCE_END = re.compile(r"(?:[.!?…]+[\"'”’)\]]*\s+|[。！？]+|\n+)(?=\S)")


@dataclass(frozen=True, eq=False)
class Verbatim:
    """Texts ready to be looked for."""

    versions: tuple[Version, ...]
    texts: screen.Texts
    beginnings: screen.Words64  # a filter of the first bytes of all windows
    long: screen.Windows
    short: screen.Windows
    canonical_pairs: screen.Words64
    canonical_filter: screen.Words64
    is_whole: npt.NDArray[np.uint8]  # of each text: whether it can be looked for as a whole
    opens: npt.NDArray[np.uint8]  # of each token: whether the n-gram that begins there does
    is_screened: bool  # or every document is tokenized
    ids: Integers  # the tokenizer's, ascending; token n is ids[n - 1]
    aligned: runs.Texts
    canonical: runs.Texts  # questions alone; tokens as the union of index parts numbers them
    use_offsets: Integers  # of each text: who uses it
    use_part: npt.NDArray[np.int32]
    use_record: Integers
    use_kind: npt.NDArray[np.uint8]
    use_weight: npt.NDArray[np.float64]  # how telling it is: mean idf of its n-grams over ln N

    @property
    def n_texts(self) -> int:
        return int(self.texts.offsets.size - 1)


def open_verbatim(
    store: Store, versions: Sequence[Version], ids: Integers, policy: Policy, *, scan: str
) -> Verbatim:
    """What these versions are searched for by, mapped into memory; made first if it is not there.

    `ids` are those of the union of their index parts.
    """
    path = store.search(scan, f"{search_name(versions)}-verbatim")
    for _ in range(2):  # another process may clear away what was there a moment ago
        with suppress(FileNotFoundError):
            arrays, about = map_arrays(path)
            return _of_arrays(arrays, about, versions)
        build_verbatim(store, versions, ids, policy, scan=scan)
    arrays, about = map_arrays(path)
    return _of_arrays(arrays, about, versions)


def build_verbatim(
    store: Store, versions: Sequence[Version], ids: Integers, policy: Policy, *, scan: str
) -> None:
    """Gather the texts of these versions, unless that was done before."""
    path = store.search(scan, f"{search_name(versions)}-verbatim")
    if path.is_file():
        with suppress(FileNotFoundError):
            path.touch()
        return
    tokenizer = load_tokenizer(policy.tokenizer_str)
    snapshot = current_snapshot(store, policy)
    pool = _Pool()
    for part, version in enumerate(versions):
        _gather(pool, part, _records(store, version), policy)
    arrays = _arrays(pool, ids, versions, snapshot, tokenizer, policy)
    is_screened = arrays.pop("is_screened")
    write_arrays(path, arrays, about={"is_screened": "yes" if is_screened else "no"})


def _records(store: Store, version: Version) -> list[dict[str, Any]]:
    columns = ["question", "answer", "is_correct"]
    rows: list[dict[str, Any]] = load_records(store, version, columns=columns).to_pylist()
    return rows


# Texts --------------------------------------------------------------------------------------------


class _Pool:
    """Different texts, and who uses each as what."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.uses: list[tuple[int, int, int, int]] = []  # text, part, record, kind

    def add(self, text: str, part: int, record: int, kind: int) -> None:
        if text:
            number = self.numbers.setdefault(text, len(self.numbers))
            self.uses.append((number, part, record, kind))


def _gather(pool: _Pool, part: int, records: Sequence[Mapping[str, Any]], policy: Policy) -> None:
    for row, record in enumerate(records):
        question, answer = record["question"], record["answer"]
        pool.add(formed(question, policy), part, row, QUESTION)
        if not answer:
            continue
        pool.add(formed(answer, policy), part, row, ANSWER)
        if record["is_correct"] is False:
            continue
        pool.add(formed(followed(question, answer), policy), part, row, QUESTION_AND_ANSWER)
        last = last_sentence(question)
        if last:
            pool.add(formed(followed(last, answer), policy), part, row, CONTINUATION)


def followed(question: str, answer: str) -> str:
    """A question with its answer behind it, as a text would have the two."""
    has_space = question[-1:].isspace() or answer[:1].isspace()
    return question + ("" if has_space or not question else " ") + answer


def last_sentence(question: str) -> str | None:
    """What a continuation goes on from; None for a question of one sentence."""
    ends = [end.end() for end in _SENTENCE_END.finditer(question)]
    return question[ends[-1] :] if ends else None


# Arrays -------------------------------------------------------------------------------------------


def _arrays(
    pool: _Pool,
    ids: Integers,
    versions: Sequence[Version],
    snapshot: Snapshot,
    tokenizer: Tokenizer,
    policy: Policy,
) -> dict[str, Any]:
    texts = list(pool.numbers)
    uses = np.array(pool.uses, np.int64).reshape(-1, 4)
    uses = uses[np.lexsort((uses[:, 3], uses[:, 2], uses[:, 1], uses[:, 0]))]
    is_of = [
        np.isin(np.arange(len(texts)), uses[uses[:, 3] == kind, 0]) for kind in range(len(NAMES))
    ]
    as_bytes = _bytes(texts)
    offsets = as_bytes["offsets"]
    pieces = _pieces(texts, is_of[QUESTION] | is_of[ANSWER], tokenizer)
    tokens = _tokens(pieces, offsets)
    rows = Ragged(tokens.pop("tokens").astype(np.uint32), tokens["token_offsets"])
    grams = _gram_ranges(rows, tokens, policy.shared_ngram_size)
    whole = np.flatnonzero(np.any([is_of[kind] for kind in _WHOLE], axis=0))
    wholes = _Ranges(whole, whole, offsets[whole], offsets[whole + 1])
    windows, is_gram_open, is_whole_open = _windows(as_bytes, grams, wholes)
    opens = np.zeros(rows.values.size, np.uint8)
    opens[grams.numbers] = is_gram_open
    is_whole = np.zeros(len(texts), np.uint8)
    is_whole[whole] = is_whole_open
    questions = [
        text if wanted else "" for text, wanted in zip(texts, is_of[QUESTION].tolist(), strict=True)
    ]
    canonical = _encode(questions, FixedVocabulary(ids), tokenizer, policy)
    return {
        "is_screened": tokenizer.is_lossless(),
        **as_bytes,
        **tokens,
        **windows,
        "opens": opens,
        "is_whole": is_whole,
        **_canonical_screen(canonical, policy.ngram_any_floor),
        **_named("aligned", texts_of(rows, policy.shared_ngram_size)),
        **_named("canonical", texts_of(canonical, policy.ngram_any_floor)),
        "use_offsets": _edges(np.bincount(uses[:, 0], minlength=len(texts))),
        "use_part": uses[:, 1].astype(np.int32),
        "use_record": uses[:, 2],
        "use_kind": uses[:, 3].astype(np.uint8),
        "use_weight": _weights(texts, uses, versions, snapshot, tokenizer, policy),
    }


_NONE = np.empty(0, np.int64)
_NO_PIECES = Pieces(_NONE, _NONE, _NONE)


def _edges(lengths: Sequence[int] | Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def _named(prefix: str, arrays: Any) -> dict[str, Array]:
    return {f"{prefix}.{name}": value for name, value in arrays._asdict().items()}


def _bytes(texts: Sequence[str]) -> dict[str, Any]:
    contents = [text.encode() for text in texts]
    offsets = _edges([len(content) for content in contents])
    spare = bytes(screen.SPARE - int(offsets[-1]) % 8)  # read by eights, behind the last as well
    return {
        "data": np.frombuffer(b"".join([*contents, spare]), np.uint8),
        "offsets": offsets,
    }


def _pieces(
    texts: Sequence[str], is_wanted: npt.NDArray[np.bool_], tokenizer: Tokenizer
) -> list[Pieces]:
    return [
        tokenizer.pieces(text) if wanted else _NO_PIECES
        for text, wanted in zip(texts, is_wanted.tolist(), strict=True)
    ]


def _tokens(pieces: Sequence[Pieces], offsets: Integers) -> dict[str, Any]:
    """Tokens of all texts, numbered, and the bytes that a text with the same tokens must have."""
    n_tokens = np.array([piece.ids.size for piece in pieces], np.int64)
    token_offsets = _edges(n_tokens)
    base = np.repeat(offsets[:-1], n_tokens)
    starts = np.concatenate([piece.starts for piece in pieces] or [_NONE]) + base
    stops = np.concatenate([piece.stops for piece in pieces] or [_NONE]) + base
    of_tokens = np.concatenate([piece.ids for piece in pieces] or [_NONE])
    ids = np.unique(of_tokens)
    # A tokenizer that counts in characters gives one that several tokens share to all of them.
    # Only what is between those that a token shares with its neighbours is certain to be there.
    first, last = starts.copy(), stops.copy()
    first[1:] = np.where(starts[1:] < stops[:-1], np.maximum(starts[1:], stops[:-1]), starts[1:])
    last[:-1] = np.where(stops[:-1] > starts[1:], np.minimum(stops[:-1], starts[1:]), stops[:-1])
    return {
        "tokens": np.searchsorted(ids, of_tokens) + 1,
        "ids": ids,
        "token_offsets": token_offsets,
        "token_starts": first,
        "token_stops": last,
    }


@dataclass(frozen=True, eq=False)
class _Ranges:
    """Stretches of bytes that are looked for, in order."""

    numbers: Integers  # of n-grams: their first token; of whole texts: their number
    texts: Integers  # that they lie in
    starts: Integers
    stops: Integers

    def only(self, is_kept: npt.NDArray[np.bool_]) -> _Ranges:
        return _Ranges(*(getattr(self, field.name)[is_kept] for field in fields(self)))


def _gram_ranges(rows: Ragged, tokens: Mapping[str, Any], size: int) -> _Ranges:
    n_left = np.repeat(rows.offsets[1:], rows.lengths) - np.arange(rows.values.size)
    first = np.flatnonzero(n_left >= size)
    texts = np.repeat(np.arange(len(rows)), rows.lengths)[first]
    starts, stops = tokens["token_starts"][first], tokens["token_stops"][first + size - 1]
    return _Ranges(first, texts, starts, stops)


# Windows ------------------------------------------------------------------------------------------


def _windows(
    texts: Mapping[str, Any], grams: _Ranges, wholes: _Ranges
) -> tuple[dict[str, Array], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Windows of both sizes; which n-grams open a comparison, and which texts are found whole."""
    data, n = texts["data"], int(texts["offsets"][-1])
    eights = data.view(np.uint64)
    marks = np.zeros(n, np.uint8)
    screen.mark_beginnings(eights, n, marks)
    arrays: dict[str, Array] = {}
    are_open = [np.zeros(ranges.numbers.size, np.bool_) for ranges in (grams, wholes)]
    for name, size in _SIZES.items():
        ranks = _ranks(data, marks, size)
        chosen = []
        for ranges, is_open in zip((grams, wholes), are_open, strict=True):
            wanted, left = np.flatnonzero(~is_open), ranges.only(~is_open)
            places = np.empty(wanted.size, np.int64)
            screen.choose(marks, ranks, left.starts, left.stops, size, places)
            has_one = places != screen.NONE
            is_open[wanted[has_one]] = True
            chosen.append(_Uses.of(places[has_one], left.only(has_one)))
        entered = _numbered(data, eights, size, *chosen)
        arrays |= {f"{name}.{array}": value for array, value in entered.items()}
    first = np.concatenate([arrays[f"{name}.first"] for name in _SIZES]).astype(np.int64)
    digests = np.empty(first.size, np.uint64)
    screen.digest_windows(eights, first, screen.SHORT, digests)
    beginnings = np.zeros(first.size * _BEGINNING_BITS // 64 + 1, np.uint64)
    screen.enter_filter(digests, beginnings)
    return arrays | {"beginnings": beginnings}, are_open[0], are_open[1]


def _ranks(
    data: npt.NDArray[np.uint8], marks: npt.NDArray[np.uint8], size: int
) -> npt.NDArray[np.uint64]:
    """Windows by how rare they are: the less often one is met, the less is compared."""
    places = np.flatnonzero(marks)
    threes, fours = np.zeros(1 << 20, np.uint32), np.zeros(1 << 22, np.uint32)
    screen.count_bytes(data, marks.size, threes, fours)
    rates, digests = np.empty(places.size), np.empty(places.size, np.uint64)
    screen.rate_windows(data, places, size, threes, fours, rates)
    screen.digest_windows(data.view(np.uint64), places, size, digests)
    # Of windows about as rare always the same one: fewer are kept.
    level = ((rates - rates.min(initial=0.0)) * 0.5).astype(np.uint64)
    ranks = np.empty(marks.size, np.uint64)
    ranks[places] = (level << np.uint64(40)) | (digests >> np.uint64(24))
    return ranks


@dataclass(frozen=True, eq=False)
class _Uses:
    """Places at which a window stands for something, in order."""

    places: Integers
    texts: Integers  # that they lie in
    before: Integers  # bytes that all have before the place for which it stands there, at least
    after: Integers  # and from it on

    @staticmethod
    def of(places: Integers, ranges: _Ranges) -> _Uses:
        order = np.argsort(places, kind="stable")
        different, first = np.unique(places[order], return_index=True)
        if not first.size:
            return _Uses(_NONE, _NONE, _NONE, _NONE)
        return _Uses(
            different,
            ranges.texts[order][first],
            np.minimum.reduceat((places - ranges.starts)[order], first),
            np.minimum.reduceat((ranges.stops - places)[order], first),
        )


def _numbered(
    data: npt.NDArray[np.uint8],
    eights: npt.NDArray[np.uint64],
    size: int,
    grams: _Uses,
    wholes: _Uses,
) -> dict[str, Array]:
    """The arrays of `screen.Windows`."""
    places = np.concatenate([grams.places, wholes.places])
    first, numbers = np.empty(places.size, np.int64), np.empty(places.size, np.uint32)
    digests, slots = np.empty(places.size, np.uint64), np.zeros(places.size * 2 + 2, np.uint32)
    n = screen.number_windows(data, eights, places, size, digests, slots, first, numbers)
    in_filter = np.zeros(n * _FILTER_BITS // 64 + 1, np.uint64)
    table = np.zeros(3 * n + 1, np.uint64)  # most that are looked up are not there
    screen.enter_filter(digests[:n], in_filter)
    screen.enter(digests[:n], table)
    arrays: dict[str, Array] = {"filter": in_filter, "slots": table, "first": first[:n]}
    of_kind = np.split(numbers, [grams.places.size])
    for name, uses, number in zip(("gram", "whole"), (grams, wholes), of_kind, strict=True):
        order = np.argsort(number, kind="stable")
        arrays[f"{name}_offsets"] = _edges(np.bincount(number, minlength=n))
        arrays[f"{name}s"] = uses.places[order]
        arrays[f"{name}_texts"] = uses.texts[order].astype(np.uint32)
        if name == "gram":
            arrays["gram_before"] = uses.before[order].astype(np.uint32)
            arrays["gram_after"] = uses.after[order].astype(np.uint32)
    return arrays


def _canonical_screen(rows: Ragged, size: int) -> dict[str, Array]:
    """What `ngram_any` lets documents go by."""
    n_grams = int(np.maximum(rows.lengths - size + 1, 0).sum())
    pairs = np.zeros(1 << _log2_of_pairs(rows.values.size), np.uint64)
    in_filter = np.zeros(n_grams * _FILTER_BITS // 64 + 1, np.uint64)
    screen.enter_runs(rows.values, rows.offsets, size, pairs, in_filter)
    return {"canonical_pairs": pairs, "canonical_filter": in_filter}


def _log2_of_pairs(n: int) -> int:
    return min(max((n * _PAIR_BITS // 64).bit_length(), 1), _MOST_PAIR_WORDS)


def _encode(
    texts: Sequence[str],
    vocabulary: FixedVocabulary | GrowingVocabulary,
    tokenizer: Tokenizer,
    policy: Policy,
) -> Ragged:
    encoder = Encoder(
        tokenizer, vocabulary, punctuation=policy.punctuation_chars, table_mb=_TABLE_MB
    )
    contents = [text.encode() for text in texts]
    edges = _edges([len(content) for content in contents])
    data = np.frombuffer(b"".join(contents), np.uint8)
    return encoder.encode(data, edges[:-1], edges[1:])


def _weights(
    texts: Sequence[str],
    uses: Integers,
    versions: Sequence[Version],
    snapshot: Snapshot,
    tokenizer: Tokenizer,
    policy: Policy,
) -> npt.NDArray[np.float64]:
    """How telling each text is where it is used: 1 when no other record has any of its n-grams.

    A benchmark that the snapshot was not counted over is counted on top, as its index part is, so
    a weight does not depend on what else is scanned.
    """
    vocabulary = GrowingVocabulary()
    rows = _encode(texts, vocabulary, tokenizer, policy)
    ids = vocabulary.ids
    order = np.argsort(ids)
    rank = np.zeros(ids.size + 1, np.uint32)
    rank[order + 1] = np.arange(1, ids.size + 1)
    grams = grams_of(Ragged(rank[rows.values], rows.offsets), policy.ngram_size)
    counted = snapshot.counts.gram_frequency("question", grams.tokens, ids[order])
    weights = np.zeros(len(uses))
    for part, version in enumerate(versions):
        is_own = uses[:, 1] == part
        df, n_records = counted, snapshot.counts.n_records
        if not snapshot.has(version):
            questions = uses[is_own & (uses[:, 3] == QUESTION)]
            df = counted + _holders(grams.rows, questions[:, 0], len(grams))
            n_records += len(questions)
        weight = np.log(n_records / np.clip(df, 1, n_records)) / max(math.log(n_records), 1e-9)
        of_gram = weight[grams.rows.values]
        sums = np.add.reduceat(np.append(of_gram, 0.0), grams.rows.offsets[:-1])
        lengths = grams.rows.lengths
        of_text = np.where(lengths > 0, sums / np.maximum(lengths, 1), 0.0)
        weights[is_own] = of_text[uses[is_own, 0]]
    return weights


def _holders(rows: Ragged, texts: Integers, n: int) -> Integers:
    """In how many of these texts, some of them more than once, each n-gram stands."""
    times = np.bincount(texts, minlength=len(rows))
    return np.bincount(rows.values, weights=np.repeat(times, rows.lengths), minlength=n).astype(
        np.int64
    )


# Read back ----------------------------------------------------------------------------------------


def _of_arrays(
    arrays: Mapping[str, Any], about: Mapping[str, str], versions: Sequence[Version]
) -> Verbatim:
    def group(prefix: str, kind: Any) -> Any:
        return kind(**{name: arrays[f"{prefix}.{name}"] for name in kind._fields})

    texts = screen.Texts(**{name: arrays[name] for name in screen.Texts._fields})
    return Verbatim(
        versions=tuple(versions),
        texts=texts,
        long=group("long", screen.Windows),
        short=group("short", screen.Windows),
        is_screened=about["is_screened"] == "yes",
        ids=arrays["ids"],
        aligned=group("aligned", runs.Texts),
        canonical=group("canonical", runs.Texts),
        **{
            name: arrays[name]
            for name in (
                *("use_offsets", "use_part", "use_record", "use_kind", "use_weight"),
                *("beginnings", "is_whole", "opens", "canonical_pairs", "canonical_filter"),
            )
        },
    )
