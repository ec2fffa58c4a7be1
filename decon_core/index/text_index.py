"""The index of texts that `ratcliff`, `longest_match`, `exact` and `ngram_any` search for.

It holds each distinct text of a scan's benchmarks once, in the policy's form: its tokens, the
records that use it, and the byte windows that documents are screened for (`kernels/prefilter.py`).
Built once for a set of benchmark versions, and memory-mapped by every worker.

A compared text is tokenized twice: as it is, and with a leading space, where its first word is
another token. The second form is one more row of the arrays, after the rows of all texts.

Not every n-gram opens a comparison: it must contain the start of a word or a non-ASCII character,
followed by twelve bytes. This leaves out rows of dots and bare fractions, which occur in many
documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy
from decon_core.index.joined_index import map_or_build, mark_used, search_name
from decon_core.index.ngram_counts import pair_filter, places_of
from decon_core.index.record_texts import (
    ANSWER,
    COLUMNS,
    COMPARED,
    FIELDS,
    NAMES,
    PROMPT,
    PROMPT_COLUMNS,
    QUESTION,
    WHOLE,
    Pool,
    gather,
    texts_of,
)
from decon_core.index.text_weights import encode_texts, weights_of
from decon_core.kernels import prefilter, token_runs
from decon_core.kernels.arrays import (
    Bools,
    Bytes,
    Flags,
    Floats,
    Int32s,
    Integers,
    Numbers,
    Words64,
    distinct,
    read_only,
)
from decon_core.kernels.grams import enter_runs
from decon_core.kernels.instructions import LANES
from decon_core.kernels.word_stream import find_beginnings
from decon_core.storage.store import Store
from decon_core.storage.tables import Array, write_arrays
from decon_core.text.tokenizers import Pieces, Tokenizer, load_tokenizer
from decon_core.text.word_cache import FixedVocabulary, Ragged, edges_of

NOTHING = -1

_SIZES = {"long": prefilter.LONG, "short": prefilter.SHORT}
_FILTER_BITS = 16
_BEGINNING_BITS = 4  # lower limit; probed most often, so it should fit the CPU cache

# Increase when the arrays change; otherwise old files would be read as new ones.
_LAYOUT = "5"


@dataclass(frozen=True, eq=False)
class Verbatim:
    """The texts to search for: one row each, then the rows of their forms with a leading space."""

    texts: prefilter.Texts
    beginnings: Words64  # Bloom filter of the first bytes of all windows
    long: prefilter.Windows
    short: prefilter.Windows
    canonical_pairs: Words64
    canonical_filter: Words64
    is_whole: Flags  # per text: whether it can be found as a whole text
    opens: Flags  # per token: whether the n-gram from there opens a comparison
    is_screened: bool  # False: every document is tokenized
    text_of: Int32s  # per row: the text that it is a form of
    ids: Integers  # token ids of the tokenizer, ascending; token n is ids[n - 1]
    aligned: token_runs.Texts
    canonical: token_runs.Texts  # only questions; tokens numbered as in the union of index parts
    use_offsets: Integers  # per text: range of its uses in the `use_` arrays
    use_part: Int32s
    use_record: Integers
    use_kind: Bytes
    use_weight: Floats  # informativeness: mean idf of its n-grams over ln N
    part_offsets: Integers  # number of records before each benchmark
    field_texts: Int32s  # per record: its question, its answer; or NOTHING

    def uses_of(
        self, texts: Integers, kinds: Sequence[int], documents: Integers
    ) -> tuple[Integers, Integers]:
        """Return the uses of texts of documents as one of these kinds: row of the text, and use.

        They are sorted by document, benchmark, record and kind. Numbers of texts run through all
        benchmarks of a scan, so the order within a scan result must not depend on them.
        """
        first = self.use_offsets[texts]
        n = self.use_offsets[texts + 1] - first
        row = np.repeat(np.arange(texts.size), n)
        use = np.arange(row.size) + np.repeat(first - (np.cumsum(n) - n), n)
        is_wanted = np.isin(np.arange(len(NAMES)), kinds)[self.use_kind[use]]
        row, use = row[is_wanted], use[is_wanted]
        keys = [self.use_kind[use], self.use_record[use], self.use_part[use], documents[row]]
        order = np.lexsort(keys)
        return row[order], use[order]

    @property
    def n_rows(self) -> int:
        """The number of texts and their forms."""
        return int(self.texts.offsets.size - 1)

    def n_tokens(self, texts: Integers) -> Integers:
        return self.aligned.offsets[texts + 1] - self.aligned.offsets[texts]

    @cached_property
    def is_compared(self) -> Bools:
        """Per row: whether `ratcliff` and `longest_match` search for its text at all.

        That needs an n-gram of the text without leading space that opens a comparison. A text that
        is not compared is not visible; one that is compared is found wherever it occurs in full.
        """
        n_opening = np.append(0, np.cumsum(self.opens, dtype=np.int64))
        edges = self.aligned.offsets
        has_opening = n_opening[edges[1:]] > n_opening[edges[:-1]]
        return np.asarray(has_opening[self.text_of])

    def fields(self, part: Integers, record: Integers) -> Integers:
        """Return the texts of questions and answers of records, `NOTHING` for missing ones."""
        rows = self.field_texts.reshape(-1, len(FIELDS))[self.part_offsets[part] + record]
        return np.asarray(rows.T, np.int64)


def open_verbatim(
    store: Store, versions: Sequence[Version], ids: Integers, policy: Policy, *, scan: str
) -> Verbatim:
    """Memory-map the text index of these versions; build it first if it does not exist.

    `ids`: the token ids of the union of their index parts.
    """
    build = partial(build_verbatim, store, versions, ids, policy, scan=scan)
    arrays, about = map_or_build(_path(store, versions, scan), build)
    return _of_arrays(arrays, about)


def build_verbatim(
    store: Store, versions: Sequence[Version], ids: Integers, policy: Policy, *, scan: str
) -> None:
    """Build and save the text index of these versions, unless it exists."""
    path = _path(store, versions, scan)
    if not mark_used(path):
        arrays, about = _built(store, dict.fromkeys(versions), ids, policy)
        write_arrays(path, arrays, about=about)


def verbatim_of_records(
    store: Store, records: Mapping[Version, Integers], policy: Policy
) -> Verbatim:
    """Return the text index of some items, given by the rows of their records, in memory.

    It says which texts can be found. It cannot be searched: all canonical tokens are unknown.
    """
    arrays, about = _built(store, records, np.zeros(0, np.int64), policy)
    return _of_arrays({name: read_only(array) for name, array in arrays.items()}, about)


def _built(
    store: Store, rows_of: Mapping[Version, Integers | None], ids: Integers, policy: Policy
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the text index of these rows of each record table; None: of all."""
    pool, versions, tokenizer = Pool(), tuple(rows_of), load_tokenizer(policy.tokenizer_str)
    prompts = PROMPT_COLUMNS if policy.searches_prompts else ()
    columns = [*COLUMNS, *prompts]
    for part, (version, chosen) in enumerate(rows_of.items()):
        records = load_records(store, version, columns=columns)
        rows = np.arange(records.num_rows) if chosen is None else chosen
        in_rows = zip(rows.tolist(), records.take(rows).to_pylist(), strict=True)
        gather(pool, part, dict(in_rows), policy)
    arrays = _arrays(pool, ids, versions, tokenizer, policy)
    arrays["use_weight"] = weights_of(pool, store, versions, tokenizer, policy)
    return arrays, {"is_screened": "yes" if tokenizer.is_lossless() else "no"}


def _path(store: Store, versions: Sequence[Version], scan: str) -> Path:
    return store.search(scan, f"{search_name(versions)}-verbatim-{_LAYOUT}")


# Arrays -------------------------------------------------------------------------------------------


def _arrays(
    pool: Pool, ids: Integers, versions: Sequence[Version], tokenizer: Tokenizer, policy: Policy
) -> dict[str, Any]:
    uses = pool.table()
    texts, pieces, n_tokens, text_of = _forms(pool, uses, tokenizer, policy)
    is_of = [
        np.isin(np.arange(len(texts)), uses[uses[:, 3] == kind, 0]) for kind in range(len(NAMES))
    ]
    as_bytes = _bytes(texts)
    rows, tokens = _tokens(pieces, n_tokens, as_bytes["offsets"])
    is_whole_wanted = np.any([is_of[kind] for kind in (*WHOLE, PROMPT)], axis=0)
    if policy.compares_tokens:
        is_whole_wanted |= is_of[ANSWER] & (rows.lengths >= policy.shared_ngram_size)
    grams = _gram_ranges(rows, tokens, policy.shared_ngram_size)
    edges = as_bytes["offsets"]
    wholes = _ranges(edges[:-1], edges[1:], is_whole_wanted.astype(np.uint8))
    windows = _windows(as_bytes, grams, wholes)
    questions = [
        text if is_question else ""
        for text, is_question in zip(texts, is_of[QUESTION].tolist(), strict=True)
    ]
    canonical = encode_texts(questions, FixedVocabulary(ids), tokenizer, policy)
    return {
        **as_bytes,
        **tokens,
        **windows,
        "text_of": text_of,
        "opens": np.append(
            grams.is_open, np.zeros(rows.values.size - grams.is_open.size, np.uint8)
        ),
        "is_whole": wholes.is_open,
        **_canonical_screen(canonical, policy.ngram_any_lowest_recorded),
        **_prefixed("aligned", texts_of(rows, policy.shared_ngram_size)),
        **_prefixed("canonical", texts_of(canonical, policy.ngram_any_lowest_recorded)),
        "use_offsets": edges_of(np.bincount(uses[:, 0], minlength=len(texts))),
        "use_part": uses[:, 1].astype(np.int32),
        "use_record": uses[:, 2],
        "use_kind": uses[:, 3].astype(np.uint8),
        **_field_texts(uses, versions),
    }


def _field_texts(uses: Integers, versions: Sequence[Version]) -> dict[str, Array]:
    part_offsets = edges_of([version.n_records for version in versions])
    fields = np.full((int(part_offsets[-1]), len(FIELDS)), NOTHING, np.int32)
    text, part, record, kind = uses[np.isin(uses[:, 3], FIELDS)].T
    fields[part_offsets[part] + record, kind] = text
    return {"part_offsets": part_offsets[:-1], "field_texts": fields.ravel()}


def _prefixed(prefix: str, arrays: Any) -> dict[str, Array]:
    return {f"{prefix}.{name}": value for name, value in arrays._asdict().items()}


def _bytes(texts: Sequence[str]) -> dict[str, Any]:
    contents = [text.encode() for text in texts]
    offsets = edges_of([len(content) for content in contents])
    spare = bytes(prefilter.SPARE - int(offsets[-1]) % 8)  # kernels read 8 bytes, past the end too
    return {"data": np.frombuffer(b"".join([*contents, spare]), np.uint8), "offsets": offsets}


def _forms(
    pool: Pool, uses: Integers, tokenizer: Tokenizer, policy: Policy
) -> tuple[list[str], Pieces, Integers, Int32s]:
    """Return texts, then those compared by tokens with a leading space: the rows of the index.

    And the tokens of all rows, the number of tokens of each, and the text of each. With a leading
    space the first word of a text is another token. Where the space is a separate token, the two
    forms are the same search. A text with fewer tokens than an n-gram is not searched in any form.
    Texts that are only searched for as a whole have no tokens.
    """
    texts = pool.texts
    compared = distinct(uses[np.isin(uses[:, 3], COMPARED), 0])
    bare, n_bare = tokenizer.joined_pieces([texts[text] for text in compared.tolist()])
    has_form = np.array([not texts[text][0].isspace() for text in compared.tolist()], np.bool_)
    has_form &= policy.compares_tokens & (n_bare >= policy.shared_ngram_size)
    forms = [" " + texts[text] for text in compared[has_form].tolist()]
    spaced, n_spaced = tokenizer.joined_pieces(forms)
    bare_ids = compress(_as_bytes(bare.ids, n_bare), has_form.tolist())
    both = zip(bare_ids, _as_bytes(spaced.ids, n_spaced), strict=True)
    one_id = spaced.ids.itemsize
    is_other = np.array([ids not in (form, form[one_id:]) for ids, form in both], np.bool_)
    is_kept = np.repeat(is_other, n_spaced)
    pieces = Pieces(
        np.append(bare.ids, spaced.ids[is_kept]),
        np.append(bare.starts, spaced.starts[is_kept]),
        np.append(bare.stops, spaced.stops[is_kept]),
    )
    n_tokens = np.zeros(len(texts), np.int64)
    n_tokens[compared] = n_bare
    text_of = np.append(np.arange(len(texts)), compared[has_form][is_other])
    texts += compress(forms, is_other.tolist())
    return texts, pieces, np.append(n_tokens, n_spaced[is_other]), text_of.astype(np.int32)


def _as_bytes(ids: Integers, sizes: Integers) -> Iterator[bytes]:
    content, edges = ids.tobytes(), (edges_of(sizes) * ids.itemsize).tolist()
    return (content[start:stop] for start, stop in pairwise(edges))


def _tokens(pieces: Pieces, n_tokens: Integers, offsets: Integers) -> tuple[Ragged, dict[str, Any]]:
    """Number the tokens of all rows; return them with the bytes that each is certain to cover."""
    token_offsets = edges_of(n_tokens)
    base = np.repeat(offsets[:-1], n_tokens)
    starts, stops = pieces.starts + base, pieces.stops + base
    # A tokenizer with character offsets assigns a character that several tokens share to each of
    # them. A token is only certain to cover the bytes that it does not share with its neighbours.
    first, last = starts.copy(), stops.copy()
    first[1:] = np.where(starts[1:] < stops[:-1], np.maximum(starts[1:], stops[:-1]), starts[1:])
    last[:-1] = np.where(stops[:-1] > starts[1:], np.minimum(stops[:-1], starts[1:]), stops[:-1])
    ids = distinct(pieces.ids)
    rows = Ragged(FixedVocabulary(ids).numbers(pieces.ids), token_offsets)
    return rows, {
        "ids": ids,
        "token_offsets": token_offsets,
        "token_starts": first,
        "token_stops": last,
    }


def _gram_ranges(rows: Ragged, tokens: Mapping[str, Any], size: int) -> prefilter.Ranges:
    """Return for every token the range of the n-gram that begins there, if its text has n-grams."""
    n = max(rows.values.size - size + 1, 0)
    is_wanted = np.ones(rows.values.size, np.uint8)
    for step in range(1, size):
        is_wanted[np.maximum(rows.offsets[1:] - step, rows.offsets[:-1])[rows.lengths > 0]] = 0
    return _ranges(tokens["token_starts"][:n], tokens["token_stops"][size - 1 :], is_wanted[:n])


def _ranges(starts: Integers, stops: Integers, is_wanted: Flags) -> prefilter.Ranges:
    return prefilter.Ranges(starts, stops, is_wanted, np.zeros(is_wanted.size, np.uint8))


# Windows ------------------------------------------------------------------------------------------


def _windows(
    texts: Mapping[str, Any], grams: prefilter.Ranges, wholes: prefilter.Ranges
) -> dict[str, Array]:
    """Return windows of both sizes; note which n-grams and whole texts have a window."""
    data, offsets = texts["data"], texts["offsets"]
    places = _beginnings(data, int(offsets[-1]))
    threes, fours = np.zeros(1 << 20, np.uint32), np.zeros(1 << 22, np.uint32)
    prefilter.count_bytes(data, int(offsets[-1]), threes, fours)
    levels = prefilter.rate_beginnings(data, places, threes, fours)
    arrays: dict[str, Array] = {}
    for name, size in _SIZES.items():
        ranks = np.empty(places.size, np.uint64)
        prefilter.rank_windows(data, places, size, levels, ranks)
        chosen = []
        for ranges in (grams, wholes):
            before, after = np.full((2, places.size), prefilter.NEVER, np.uint32)
            prefilter.choose(data, places, ranks, size, ranges, before, after)
            is_used = before != prefilter.NEVER
            used = places[is_used]
            texts_of_used = np.searchsorted(offsets, used, side="right") - 1
            chosen.append(_Uses(used, texts_of_used, before[is_used], after[is_used]))
        numbered = _numbered(data, size, *chosen)
        arrays |= {f"{name}.{array}": value for array, value in numbered.items()}
    first = np.concatenate([arrays[f"{name}.first"] for name in _SIZES]).astype(np.int64)
    beginnings = np.zeros(1 << max((first.size * _BEGINNING_BITS // 64).bit_length(), 1), np.uint64)
    prefilter.enter_beginnings(data, first, beginnings)
    return arrays | {"beginnings": beginnings}


def _beginnings(data: Bytes, n: int) -> Integers:
    """Return where windows may begin. Works in stretches, to limit the memory."""
    data = np.append(data[:n], np.zeros(LANES, np.uint8))
    room, found = np.empty(prefilter.STRETCH + 8, np.int64), [np.empty(0, np.int64)]
    for start in range(0, n, prefilter.STRETCH):
        stop = min(start + prefilter.STRETCH, n)
        n_found = find_beginnings(data, start, stop, room)
        found.append(room[:n_found].copy())
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class _Uses:
    """Positions at which a window represents an n-gram or whole text, in order."""

    places: Integers
    texts: Integers  # the text at each position
    before: Numbers  # least bytes, over all it represents, before the position
    after: Numbers  # and from the position on


def _numbered(data: Bytes, size: int, grams: _Uses, wholes: _Uses) -> dict[str, Array]:
    """Build the arrays of `prefilter.Windows`."""
    places = np.concatenate([grams.places, wholes.places])
    first, numbers = np.empty(places.size, np.int64), np.empty(places.size, np.uint32)
    digests, slots = np.empty(places.size, np.uint64), np.zeros(places.size * 2 + 2, np.uint32)
    n = prefilter.number_windows(data, places, size, digests, slots, first, numbers)
    in_filter = np.zeros(n * _FILTER_BITS // 64 + 1, np.uint64)
    table = np.zeros(3 * n + 1, np.uint64)  # sparse: most lookups fail
    prefilter.enter(digests[:n], in_filter, table)
    arrays: dict[str, Array] = {"filter": in_filter, "slots": table, "first": first[:n]}
    of_kind = np.split(numbers, [grams.places.size])
    for name, uses, number in zip(("gram", "whole"), (grams, wholes), of_kind, strict=True):
        arrays[f"{name}_offsets"], order = places_of(number, n)
        arrays[f"{name}s"] = uses.places[order]
        arrays[f"{name}_texts"] = uses.texts[order].astype(np.uint32)
        if name == "gram":
            arrays["gram_before"] = uses.before[order]
            arrays["gram_after"] = uses.after[order]
    return arrays


def _canonical_screen(rows: Ragged, size: int) -> dict[str, Array]:
    """Build the filters by which `ngram_any` skips documents."""
    n_grams = int(np.maximum(rows.lengths - size + 1, 0).sum())
    pairs = pair_filter(rows.values.size)
    in_filter = np.zeros(n_grams * _FILTER_BITS // 64 + 1, np.uint64)
    enter_runs(rows.values, rows.offsets, size, pairs, in_filter)
    return {"canonical_pairs": pairs, "canonical_filter": in_filter}


# Read back ----------------------------------------------------------------------------------------


def _of_arrays(arrays: Mapping[str, Any], about: Mapping[str, str]) -> Verbatim:
    def group(prefix: str, kind: Any) -> Any:
        return kind(**{name: arrays[f"{prefix}.{name}"] for name in kind._fields})

    groups: dict[str, Any] = {
        "texts": prefilter.Texts(**{name: arrays[name] for name in prefilter.Texts._fields}),
        "long": group("long", prefilter.Windows),
        "short": group("short", prefilter.Windows),
        "is_screened": about["is_screened"] == "yes",
        "aligned": group("aligned", token_runs.Texts),
        "canonical": group("canonical", token_runs.Texts),
    }
    names = [field.name for field in fields(Verbatim) if field.name not in groups]
    return Verbatim(**groups, **{name: arrays[name] for name in names})
