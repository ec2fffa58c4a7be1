"""Findings in words, and as HTML: the text beside the item, with marks on what they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from decon_core.library.findings import Finding, Findings
from decon_core.library.texts import TEXT
from decon_core.report.excerpts import PARTS, Excerpt, Mark, agree_of, make_excerpt
from decon_core.wording import counted, render

if TYPE_CHECKING:
    from decon_core.library.index import Index

_MOST_SHOWN = 10  # findings; a text with a whole benchmark in it has thousands
_CONTEXT = 200  # characters shown before and after a span
_TEMPLATE = "library/findings.html.j2"

Piece = tuple[str, str | None]  # text, and the part of the item that it is of


def summary_of(findings: Findings) -> str:
    """Describe findings in one line."""
    if findings.unreadable:
        return f"text {findings.row} could not be read: {findings.unreadable}"
    unread = f"; not read: {', '.join(findings.unread)}" if findings.unread else ""
    if not len(findings):
        return f"nothing found in text {findings.row}{unread}"
    first = findings[0]
    more = f", and {len(findings) - 1:,} more" if len(findings) > 1 else ""
    return f"text {findings.row}: {line_of(first)}{more}{unread}"


def line_of(finding: Finding) -> str:
    """Describe a finding in one line: `leak (edited): gsm8k test 16, by aligned, score 0.92; …`."""
    about = [finding.kind, "" if finding.slot_kind == "visible" else finding.slot_kind]
    what = f" ({', '.join(filter(None, about))})" if any(about) else ""
    found_by = f"by {finding.detector}, score {finding.score:.3f}"
    head = f"{finding.outcome}{what}: {finding.item}, {found_by}"
    return "; ".join([head, *(place for part in PARTS if (place := _place(finding, part)))])


def _place(finding: Finding, part: str) -> str:
    names = (f"{part}_{name}" for name in ("overlap", "span", "part"))
    overlap, span, path = (getattr(finding, name) for name in names)
    if not span:
        return ""
    share = "" if overlap is None else f"({overlap:.2f}) "
    slot = "" if path in (None, TEXT) else f"in {path} "
    return f"{part} {share}{slot}at characters {span[0]}-{span[1]}"


def html_of(findings: Findings, index: Index) -> str:
    """Return findings as HTML that reads in light and dark notebooks; all texts are escaped."""
    shown = []
    for finding in findings[:_MOST_SHOWN]:
        record = index.record(finding)
        excerpt = _excerpt(findings.text or "", finding, record, index)
        item = [
            (part, [*_pieces(record[part], excerpt.record_marks[part])])
            for part in PARTS
            if record[part]
        ]
        text = [*_pieces(excerpt.text, excerpt.text_marks)]
        is_cut = excerpt.start > 0
        shown.append({"line": line_of(finding), "text": text, "is_cut": is_cut, "item": item})
    n_more = len(findings) - len(shown)
    return render(
        _TEMPLATE,
        summary=summary_of(findings) if not shown else "",
        shown=shown,
        more=f"and {counted(n_more, 'finding')} more" if shown and n_more else "",
    )


def _excerpt(text: str, finding: Finding, record: Mapping[str, Any], index: Index) -> Excerpt:
    spans = {part: span for part in PARTS if (span := getattr(finding, f"{part}_span")) is not None}
    agree = agree_of(finding.detector)
    form = index.policy.form
    excerpt = make_excerpt(text, spans, record, context=_CONTEXT, form=form, agree=agree)
    if excerpt.text_marks:
        return excerpt
    # Words of no length in common, as in a program under other names: mark all that was matched.
    matched = {part: text[slice(*spans.get(part, (0, 0)))] for part in PARTS}
    whole = make_excerpt(text, spans, matched, context=_CONTEXT, form=form)
    return Excerpt(whole.text, whole.start, whole.text_marks, excerpt.record_marks, None)


def _pieces(text: str, marks: Sequence[Mark]) -> Iterator[Piece]:
    """Split a text at its marks, which are sorted and may overlap."""
    at = 0
    for start, stop, part in sorted(marks):
        if stop > at:
            first = max(start, at)
            if first > at:
                yield text[at:first], None
            yield text[first:stop], part
            at = stop
    if at < len(text):
        yield text[at:], None
