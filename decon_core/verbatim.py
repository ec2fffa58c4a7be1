"""Records to what `ratcliff`, `longest_match`, `exact` and `ngram_any` search for.

Every different text of the benchmarks of a scan once, in the form that the policy asks for: its
bytes with their anchors (see `kernels/screen.py`), its tokens, and the records that use it. Made
once for a set of benchmark versions, and mapped into memory by every worker.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.counts import grams_of
from decon_core.detectors.texts import texts_of
from decon_core.forms import formed
from decon_core.idf import Snapshot, current_snapshot
from decon_core.kernels import runs, screen
from decon_core.policy import Policy
from decon_core.records import Version, load_records
from decon_core.search import search_name
from decon_core.store import Array, Store, map_arrays, write_arrays
from decon_core.tokens import Pieces, Tokenizer, load_tokenizer
from decon_core.words import Encoder, FixedVocabulary, GrowingVocabulary, Ragged

Integers = npt.NDArray[np.int64]

_log = logging.getLogger(__name__)

# What of a record a text is. The last two are only looked for whole.
QUESTION, ANSWER, QUESTION_AND_ANSWER, CONTINUATION = range(4)
NAMES = ("question", "answer", "question and answer", "continuation")
_WHOLE = (QUESTION, QUESTION_AND_ANSWER, CONTINUATION)

_SIZES = {"long": screen.LONG, "short": screen.SHORT}
_FILTER_BITS = 12
_TABLE_MB = 256
_MOST_PAIRS = 1 << 20

# Behind this, a sentence ends and the next one begins.
_SENTENCE_END = re.compile(r"(?:[.!?…]+[\"'”’)\]]*\s+|[。！？]+|\n+)(?=\S)")


@dataclass(frozen=True, eq=False)
class Verbatim:
    """Texts ready to be looked for."""

    versions: tuple[Version, ...]
    texts: screen.Texts
    long: screen.Anchors
    short: screen.Anchors
    is_screened: bool  # or every document is tokenized
    ids: Integers  # the tokenizer's, ascending; token n is ids[n - 1]
    aligned: runs.Texts
    canonical: runs.Texts  # questions alone; tokens as the union of index parts numbers them
    canonical_pairs: screen.Flags
    canonical_filter: screen.Words64
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
    contents = [text.encode() for text in texts]
    n_bytes = sum(map(len, contents))
    spare = bytes(screen.SPARE - n_bytes % 8)  # windows are read by eights, behind the last as well
    data = np.frombuffer(b"".join([*contents, spare]), np.uint8)
    offsets = _edges([len(content) for content in contents])
    uses = np.array(pool.uses, np.int64).reshape(-1, 4)
    uses = uses[np.lexsort((uses[:, 3], uses[:, 2], uses[:, 1], uses[:, 0]))]
    is_of = [
        np.isin(np.arange(len(texts)), uses[uses[:, 3] == kind, 0]) for kind in range(len(NAMES))
    ]
    pieces = _pieces(texts, is_of[QUESTION] | is_of[ANSWER], tokenizer)
    n_tokens = np.array([piece.ids.size for piece in pieces], np.int64)
    token_offsets = _edges(n_tokens)
    base = np.repeat(offsets[:-1], n_tokens)
    starts = np.concatenate([piece.starts for piece in pieces] or [_NONE]) + base
    stops = np.concatenate([piece.stops for piece in pieces] or [_NONE]) + base
    of_tokens = np.concatenate([piece.ids for piece in pieces] or [_NONE])
    own_ids = np.unique(of_tokens)
    rows = Ragged((np.searchsorted(own_ids, of_tokens) + 1).astype(np.uint32), token_offsets)
    is_whole = np.any([is_of[kind] for kind in _WHOLE], axis=0)
    anchors, is_screened = _anchors(
        data,
        offsets,
        *_gram_ranges(starts, stops, token_offsets, policy.shared_ngram_size),
        *(edge[np.flatnonzero(is_whole)] for edge in (offsets[:-1], offsets[1:])),
    )
    canonical, of_grams = _canonical(texts, is_of[QUESTION], ids, tokenizer, policy)
    return {
        "is_screened": is_screened and tokenizer.is_lossless(),
        "data": data,
        "offsets": offsets,
        "token_offsets": token_offsets,
        "token_starts": starts,
        "token_stops": stops,
        "ids": own_ids,
        **anchors,
        **_named("aligned", texts_of(rows, policy.shared_ngram_size)),
        **_named("canonical", texts_of(canonical, policy.ngram_any_floor)),
        **of_grams,
        "use_offsets": _edges(np.bincount(uses[:, 0], minlength=len(texts))),
        "use_part": uses[:, 1].astype(np.int32),
        "use_record": uses[:, 2],
        "use_kind": uses[:, 3].astype(np.uint8),
        "use_weight": _weights(texts, uses, versions, snapshot, tokenizer, policy),
    }


_NONE = np.empty(0, np.int64)
_NO_PIECES = Pieces(_NONE, _NONE, _NONE)


def _pieces(
    texts: Sequence[str], is_wanted: npt.NDArray[np.bool_], tokenizer: Tokenizer
) -> list[Pieces]:
    return [
        tokenizer.pieces(text) if wanted else _NO_PIECES
        for text, wanted in zip(texts, is_wanted.tolist(), strict=True)
    ]


def _edges(lengths: Sequence[int] | Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def _named(prefix: str, arrays: Any) -> dict[str, Array]:
    return {f"{prefix}.{name}": value for name, value in arrays._asdict().items()}


def _gram_ranges(
    starts: Integers, stops: Integers, token_offsets: Integers, size: int
) -> tuple[Integers, Integers]:
    """The bytes that any text with an n-gram's tokens holds, for every n-gram."""
    # A tokenizer that counts in characters gives one that several tokens share to all of them.
    # Only what is between those that a token shares with its neighbours is certain to be there.
    first, last = starts.copy(), stops.copy()
    first[1:] = np.maximum(starts[1:], np.where(starts[1:] < stops[:-1], stops[:-1], 0))
    last[:-1] = np.where(stops[:-1] > starts[1:], starts[1:], stops[:-1])
    edges = np.zeros(starts.size + 1, np.bool_)
    edges[token_offsets] = True  # neighbours in another text share nothing
    first[edges[:-1]] = starts[edges[:-1]]
    last[edges[1:]] = stops[edges[1:]]
    n_left = np.repeat(token_offsets[1:], np.diff(token_offsets)) - np.arange(starts.size)
    grams = np.flatnonzero(n_left >= size)
    return first[grams], last[grams + size - 1]


def _anchors(
    data: npt.NDArray[np.uint8],
    offsets: Integers,
    gram_starts: Integers,
    gram_stops: Integers,
    whole_starts: Integers,
    whole_stops: Integers,
) -> tuple[dict[str, Array], bool]:
    """Anchors of both sizes; and whether every n-gram has one."""
    marks = np.zeros(data.size, np.uint8)
    screen.mark_beginnings(data, offsets, marks)
    arrays: dict[str, Array] = {}
    ranges = [(gram_starts, gram_stops), (whole_starts, whole_stops)]
    for name, size in _SIZES.items():
        chosen = []
        for at, (starts, stops) in enumerate(ranges):
            places = np.empty(starts.size, np.int64)
            screen.choose_anchors(data.view(np.uint64), marks, starts, stops, size, places)
            is_left = places == screen.NONE
            ranges[at] = starts[is_left], stops[is_left]
            chosen.append(np.unique(places[~is_left]))
        numbered = _numbered(data, size, *chosen)
        arrays |= {f"{name}.{array}": value for array, value in numbered.items()}
    return arrays, ranges[0][0].size == 0


def _numbered(
    data: npt.NDArray[np.uint8],
    size: int,
    gram_places: Integers,
    whole_places: Integers,
) -> dict[str, Array]:
    places = np.concatenate([gram_places, whole_places])
    in_filter = np.zeros(places.size * _FILTER_BITS // 64 + 8, np.uint64)
    slots = np.zeros(places.size * 3 // 2 + 2, np.uint64)
    first, numbers = np.empty(places.size, np.int64), np.empty(places.size, np.uint32)
    eights = data.view(np.uint64)
    n = screen.enter_windows(data, eights, places, size, in_filter, slots, first, numbers)
    of_grams, of_wholes = numbers[: gram_places.size], numbers[gram_places.size :]
    return {
        "filter": in_filter,
        "slots": slots,
        "first": first[:n],
        "gram_offsets": _edges(np.bincount(of_grams, minlength=n)),
        "gram_places": gram_places[np.argsort(of_grams, kind="stable")],
        "whole_offsets": _edges(np.bincount(of_wholes, minlength=n)),
        "whole_places": whole_places[np.argsort(of_wholes, kind="stable")],
    }


def _canonical(
    texts: Sequence[str],
    is_question: npt.NDArray[np.bool_],
    ids: Integers,
    tokenizer: Tokenizer,
    policy: Policy,
) -> tuple[Ragged, dict[str, Array]]:
    """The tokens that `ngram_any` compares; and its filters."""
    questions = [
        text if wanted else "" for text, wanted in zip(texts, is_question.tolist(), strict=True)
    ]
    rows = _encode(questions, FixedVocabulary(ids), tokenizer, policy)
    size = policy.ngram_any_floor
    n_grams = int(np.maximum(rows.lengths - size + 1, 0).sum())
    pairs = np.zeros(min(max(8 * rows.values.size, 1), _MOST_PAIRS), np.uint8)
    in_filter = np.zeros(n_grams * _FILTER_BITS // 64 + 1, np.uint64)
    screen.enter_token_grams(rows.values, rows.offsets, size, pairs, in_filter)
    return rows, {"canonical_pairs": pairs, "canonical_filter": in_filter}


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
    long, short = (group(name, screen.Anchors) for name in _SIZES)
    return Verbatim(
        versions=tuple(versions),
        texts=texts,
        long=long,
        short=short,
        is_screened=about["is_screened"] == "yes",
        ids=arrays["ids"],
        aligned=group("aligned", runs.Texts),
        canonical=group("canonical", runs.Texts),
        **{
            name: arrays[name]
            for name in chain(
                ("canonical_pairs", "canonical_filter"),
                ("use_offsets", "use_part", "use_record", "use_kind", "use_weight"),
            )
        },
    )
