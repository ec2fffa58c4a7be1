"""What was found in one text: the decided matches, as objects, as a table and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from decon_core.config.mixtures import Leaks
from decon_core.corpus.documents import Part
from decon_core.decisions.decide import counts
from decon_core.errors import IncompleteError, Problem
from decon_core.schemas import ENTRIES

if TYPE_CHECKING:
    import polars as pl

    from decon_core.library.index import Index

Span = tuple[int, int]
_PARTS = ("question", "answer", "passage")

# Columns that say of which shard and scan an entry is.
_OF_SHARD = frozenset({"shard", "doc_id", "detector_fingerprint", "holds_to"})
FINDINGS = pa.schema([column for column in ENTRIES if column.name not in _OF_SHARD])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One benchmark item found in a text or row by one detector, with its score.

    A span is half-open, in characters of `Findings.text`; it is None if this part of the item was
    not found. A `_part` is the path of the string in which the span begins, such as
    `messages[2].content`. An overlap is the share of the part that was found; it is None if the
    item has no such part, or if the detector does not search for it.
    """

    benchmark: str
    config: str | None
    split: str
    instance_index: int
    record: int
    """Row in the benchmark's table of records; `Index.record` returns it."""
    slot_kind: str
    """visible, or hidden: in a reference answer, a rubric or similar text that no model sees."""
    detector: str
    kind: str | None
    """How the text relates to the item: verbatim, edited, ...; None: the detector gives no kind."""
    searched_text: str | None
    """For exact and ratcliff: which text of the item was searched for."""
    score: float
    is_leak: bool
    """Whether it is a leak by the policy's thresholds for this detector and benchmark."""
    is_no_answer: bool
    """The question was found without its answer: not a leak, but not clean either."""
    needs_review: bool
    """Only similar text was found: reworded, with different numbers, or only a part of the item."""
    question_overlap: float | None
    answer_overlap: float | None
    passage_overlap: float | None
    question_span: Span | None
    answer_span: Span | None
    passage_span: Span | None
    question_part: str | None
    answer_part: str | None
    passage_part: str | None
    text_id: str
    """Id of the matched text, the same wherever it occurs; verdicts refer to it."""

    @property
    def item(self) -> str:
        """The item as reports name it: `gsm8k test 16`."""
        return f"{self.benchmark} {self.split} {self.instance_index}"

    @property
    def outcome(self) -> str:
        """Class of the finding by the policy: leak, no answer, review, or no leak."""
        outcomes = {
            "leak": self.is_leak,
            "no answer": self.is_no_answer,
            "review": self.needs_review,
        }
        return next((outcome for outcome, is_so in outcomes.items() if is_so), "no leak")


@dataclass(frozen=True, slots=True)
class Findings(Sequence[Finding]):
    """The findings in one text or row; empty if nothing was found.

    Contains every match down to the lowest recorded score of its detector, like a scan.
    `is_leaked` and `is_kept` are decided by the policy.
    """

    row: int
    """Position of the text among the checked texts, from 0."""
    text: str | None
    """The text, with U+FFFD for what UTF-8 cannot encode; None if nothing was found in it.

    For a row: its strings, separated by blank lines, with hidden strings last.
    """
    unreadable: str | None
    """Why the text could not be read; None if it was read."""
    has_invalid_utf8: bool
    """Whether the text had bytes that are not UTF-8, which only Arrow arrays can have."""
    unread: Mapping[str, tuple[int, int]] = field(hash=False)
    """Texts of the row outside the column that was read: number and bytes, by path."""
    _index: Index = field(compare=False, repr=False)
    _found: tuple[Finding, ...] = ()
    _is_removed: bool = False
    _parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)
    _entries: pa.Table | None = field(default=None, compare=False, repr=False)

    @property
    def is_leaked(self) -> bool:
        """Whether a benchmark item leaked into the text, or into hidden text of the row.

        Raises `IncompleteError` for a text that could not be read (with `unreadable="drop"` in the
        policy, returns False instead). Also raises it for a row without a leak that was read only
        in part: the rest may contain anything.
        """
        self._require_readable()
        is_leaked = any(finding.is_leak for finding in self._found)
        if not is_leaked:
            self._require_whole()
        return is_leaked

    @property
    def is_kept(self) -> bool:
        """Whether a clean mixture keeps the text: nothing leaked, and no question without answer.

        Raises `IncompleteError` for a text that could not be read (with `unreadable="drop"` in the
        policy, returns False instead). Also raises it for a row that was read only in part and in
        which nothing was found.
        """
        self._require_readable()
        is_dropped = self.has_invalid_utf8 and self._index.policy.invalid_utf8 == "drop"
        if self.unreadable or is_dropped or self._is_removed:
            return False
        self._require_whole()
        return True

    def slots(self, span: Span) -> list[tuple[str, Span]]:
        """Return the strings of the row that a span of `text` covers, with the span in each.

        For example `[("messages[0].content", (12, 170))]`. The path of a plain string is `text`.
        """
        start, stop = span
        return [
            (part.path, (max(start - part.start, 0), min(stop, part.stop) - part.start))
            for part in self._parts
            if part.start < stop and start < part.stop
        ]

    def to_arrow(self) -> pa.Table:
        """Return a table with the columns of a scan's `matches.parquet`, except those of files."""
        if self._entries is None:
            return FINDINGS.empty_table()
        return self._entries.select(FINDINGS.names)

    def to_polars(self) -> pl.DataFrame:
        """Return the findings as a polars data frame, with the columns of `to_arrow`."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    @overload
    def __getitem__(self, at: int) -> Finding: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, at: int | slice) -> Finding | tuple[Finding, ...]:
        return self._found[at]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __repr__(self) -> str:
        from decon_core.library.highlight import summary_of

        return f"<Findings: {summary_of(self)}>"

    def _repr_html_(self) -> str:
        from decon_core.library.highlight import html_of

        return html_of(self, self._index)

    def _require_readable(self) -> None:
        """Raise `IncompleteError` if the policy does not allow what could not be read."""
        where = f"text {self.row}"
        if self.unreadable and self._index.policy.unreadable == "block":
            remedy = "Leave it out, or set unreadable='drop' in the policy to drop such texts."
            raise IncompleteError(Problem(where, self.unreadable, "a text", remedy))
        if self.has_invalid_utf8 and self._index.policy.invalid_utf8 == "block":
            remedy = "Repair it, or set invalid_utf8='replace' or 'drop' in the policy."
            raise IncompleteError(Problem(where, "bytes that are not UTF-8", "UTF-8", remedy))

    def _require_whole(self) -> None:
        """Raise `IncompleteError` if text of the row was not read, as a column was named."""
        if self.unread:
            listed = ", ".join(f"`{path}` ({n:,} bytes)" for path, (_, n) in self.unread.items())
            remedy = f"Read it as well (`column`), or leave it unread with ignore={[*self.unread]}"
            where = f"text {self.row}"
            raise IncompleteError(Problem(where, f"not all text was read: {listed}", remedy=remedy))


def findings_in(entries: pa.Table) -> list[tuple[Finding, bool]]:
    """Return decided matches as objects, and whether a clean mixture removes a text for each."""
    findings = []
    for entry in entries.select(_COLUMNS).to_pylist():
        values = {name: entry[name] for name in _SAME_NAMES}
        for part in _PARTS:
            span = entry[f"{part}_char_start"], entry[f"{part}_char_stop"]
            values[f"{part}_span"] = None if span[0] is None else span
        finding = Finding(**values, is_leak=entry["is_contaminated"])
        findings.append((finding, counts(entry, _REMOVED_BY_DEFAULT)))
    return findings


_SAME_NAMES = [name for name in Finding.__slots__ if name in ENTRIES.names]
_COLUMNS = [
    *_SAME_NAMES,
    "is_contaminated",
    "verdict",
    "is_judged_duplicate",
    *(f"{part}_char_{edge}" for part in _PARTS for edge in ("start", "stop")),
]
_REMOVED_BY_DEFAULT = Leaks()
