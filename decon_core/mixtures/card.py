"""The dataset card (README.md) of a mixture in Parquet: content, removals and files.

Its YAML front matter is what Hugging Face's loaders read. It depends only on the manifests of the
packs, not on the date or the machine, so the same mixture always has the same card.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from decon_core.storage.store import read_parquet
from decon_core.wording import counted

CARD = "README.md"
DATA = "data"  # folder in a pack that holds only documents

Value = Mapping[str, Any]

_PATTERN = DATA + "/**/*.parquet"
_LISTED = re.compile(r'^ *- "([^"/]+)/' + re.escape(_PATTERN) + '"$', re.MULTILINE)
# The hub's size categories, by number of documents.
_SIZES = (
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
    *("1B<n<10B", "10B<n<100B", "100B<n<1T", "n>1T"),
)
_TAKES = {
    "clean": "all documents except those that hold benchmark items",
    "everything": "all documents, including those that hold benchmark items",
    "leaks": "the documents that hold benchmark items, and no others",
    "control": "all documents except as many, of the same lengths, as another mixture leaves out; "
    "documents that hold benchmark items are included",
}
_CUTS = {
    "documents": _TAKES["clean"],
    "turns": "all documents, without the conversation turns that hold benchmark items; where a "
    "turn cannot be removed, the document is left out",
    "spans": "all documents, without the spans that match benchmark items; where a span cannot be "
    "removed, the document is left out",
}

_QUESTION_ONLY = {
    "remove": "A document with a question but not its answer does not count as a leak, but was "
    "treated like one.",
    "keep": "A document with a question but not its answer does not count as a leak, and was kept.",
}


@dataclass(frozen=True)
class LeakCounts:
    """Documents with leaks and the tokens removed from them, by detector and benchmark.

    Keys: ("detector", "decon"), ("benchmark", "gsm8k"), and ("", "") for all leaks. Documents with
    questions only and no leak: ("question only of", "gsm8k"), and ("question only", "") for all.
    """

    n_documents: Mapping[tuple[str, str], int]
    n_tokens: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Share:
    """The part of a mixture that comes from one pack, as the card needs it."""

    manifest: Value  # without `shards`
    has_files: bool
    leaks: LeakCounts


def count_leaks(removed: Path) -> LeakCounts:
    """Count leaks and questions without their answers in a pack's `_removed.parquet`."""
    columns = ["shard", "row", "n_tokens", "why", "detector", "benchmark"]
    rows = read_parquet(removed, columns=columns)
    leaks = rows.filter(pc.field("why") == "leak")
    with_leak = leaks.select(["shard", "row"])
    questions = rows.filter(pc.field("why") == "question only")
    questions = questions.join(with_leak, ["shard", "row"], join_type="left anti")
    n_documents: Counter[tuple[str, str]] = Counter()
    n_tokens: Counter[tuple[str, str]] = Counter()
    for what, table, by in (
        ("", leaks, ""),
        ("detector", leaks, "detector"),
        ("benchmark", leaks, "benchmark"),
        ("question only", questions, ""),
        ("question only of", questions, "benchmark"),
    ):
        keys = ["shard", "row", *([by] if by else [])]
        once = table.group_by(keys).aggregate([("n_tokens", "max")])
        names = once[by].to_pylist() if by else [""] * once.num_rows
        for name, n in zip(names, once["n_tokens_max"].to_pylist(), strict=True):
            n_documents[what, name] += 1
            n_tokens[what, name] += n
    return LeakCounts(n_documents, n_tokens)


def listed_packs(card: Path) -> set[str]:
    """Return the packs whose files a card lists for loaders; none if there is no card."""
    return (
        {*_LISTED.findall(card.read_text(encoding="utf-8", errors="replace"))}
        if card.is_file()
        else set()
    )


def card_of(settings: Value, shares: Sequence[Share], *, n_packs: int) -> str:
    """Render the card of a mixture from its settings and its packs."""
    declared = settings["declared"]
    sections = [
        _head(settings, shares),
        f"# {settings['mixture']}",
        _what_it_is(declared),
        f"This mixture holds {len(shares):,} of {counted(n_packs, 'pack')} of the corpus.",
        _licenses(declared["licenses"]),
        _columns(),
        "## Counts\n\n" + _counts(shares),
        "## Benchmarks\n\n" + benchmarks_line(settings),
        _verdicts(shares),
    ]
    if declared["take"] == "clean":
        sections.append("## What leaked\n\n" + _rates(shares))
    return "\n\n".join(section for section in sections if section) + "\n"


# Front matter -------------------------------------------------------------------------------------


def _head(settings: Value, shares: Sequence[Share]) -> str:
    declared = settings["declared"]
    packs = [share.manifest["pack"] for share in shares if share.has_files]
    lines = [
        "---",
        f"license: {quoted(_license(declared['licenses']))}",
        f"pretty_name: {quoted(settings['mixture'])}",
        "tags:",
        *(f"- {quoted(tag)}" for tag in ("benchmark-contamination", declared["take"])),
        "size_categories:",
        f"- {quoted(size_of(_sum(shares, 'n_documents_out')))}",
    ]
    if packs:
        lines += ["configs:", "- config_name: default", "  data_files:", "  - split: train"]
        lines += ["    path:", *(f"    - {quoted(f'{pack}/{_PATTERN}')}" for pack in packs)]
    return "\n".join([*lines, "---"])


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is also a YAML string


def _license(licenses: Value | None) -> str:
    """Return the license if all documents have the same one, else "other"."""
    if not licenses or licenses["unknown"] == "keep" or len(licenses["allow"]) != 1:
        return "other"
    (name,) = licenses["allow"]
    is_pattern = any(sign in name for sign in "*?[")
    return "other" if is_pattern else str(name).lower()


def size_of(n_documents: int) -> str:
    return _SIZES[min(max(len(str(n_documents)) - 3, 0), len(_SIZES) - 1)]


# Text ---------------------------------------------------------------------------------------------


def _what_it_is(declared: Value) -> str:
    sources = ", ".join(f"`{name}`" for name in declared["sources"]) or "all sources"
    is_clean = declared["take"] == "clean"
    takes = _CUTS[declared["cut"]] if is_clean else _TAKES[declared["take"]]
    text = f"A variant of a corpus, from {sources}: {takes}."
    if declared["take"] == "control":
        text += f" The other mixture is `{declared['control_of']}`; the seed is {declared['seed']}."
    if is_clean and declared["cut"] == "spans" and declared["mask"]:
        text += f" Each removed span is replaced by `{declared['mask']}`."
    return text


def _licenses(licenses: Value | None) -> str:
    if not licenses:
        return "No document was left out because of its license; the licenses of the sources apply."
    fields = ", ".join(f"`{field}`" for field in licenses["fields"])
    lists = [
        f"{word}: {', '.join(f'`{name}`' for name in licenses[key])}"
        for key, word in (("allow", "allowed"), ("deny", "refused"))
        if licenses[key]
    ]
    unknown = {"drop": "left out", "keep": "kept"}[licenses["unknown"]]
    return (
        f"Documents were selected by the license in {fields}; {'; '.join(lists)}. "
        f"Documents without a license are {unknown}."
    )


def _columns() -> str:
    return (
        "Each row is a document: `id`, `text`, `source`; `messages`, if it is a conversation of "
        "roles and texts; and `metadata`, all other fields of the document as a JSON object."
    )


def _counts(shares: Sequence[Share]) -> str:
    rows = []
    for source in sorted({share.manifest["source"] for share in shares}):
        of_source = [share for share in shares if share.manifest["source"] == source]
        rows.append((source, *_before_and_after(of_source)))
    table = table_of(
        ("source", "documents", "kept", "tokens", "kept"),
        [*rows, ("all", *_before_and_after(shares))],
    )
    reasons: Counter[str] = Counter()
    for share in shares:
        reasons.update(share.manifest["totals"]["removed"])
    removed = "; ".join(f"{why}: {n:,}" for why, n in sorted(reasons.items())) or "none"
    n_cut = _sum(shares, "n_cut")
    n_unreadable = _sum(shares, "n_unreadable_left_out")
    n_replaced = _sum(shares, "n_invalid_utf8_replaced")
    return (
        f"{table}\n\nRemoved documents, by the first reason: {removed}. Partly removed: "
        f"{n_cut:,}. Rows that could not be read (not counted above): {n_unreadable:,}. "
        f"Rows in which U+FFFD replaces bytes that are not UTF-8: {n_replaced:,}."
    )


def _before_and_after(shares: Sequence[Share]) -> list[str]:
    return [
        f"{_sum(shares, f'n_{unit}_{way}'):,}"
        for unit in ("documents", "tokens")
        for way in ("in", "out")
    ]


def _sum(shares: Iterable[Share], name: str) -> int:
    return sum(share.manifest["totals"].get(name, 0) for share in shares)


def benchmarks_line(settings: Value) -> str:
    if not settings["benchmarks"]:
        return "This mixture was not checked against any benchmark."
    policy, leaks = settings["policy"], settings["declared"]["leaks"]
    detectors = leaks["detectors"] or policy["detectors"]
    thresholds = [(name, f"{settings['thresholds'][name]}") for name in detectors]
    limits = [
        f"only splits {', '.join(f'`{name}`' for name in leaks['splits'])}" * bool(leaks["splits"]),
        f"only scores of at least {leaks['least_score']}" * (leaks["least_score"] is not None),
    ]
    also = "".join(f", {limit}" for limit in limits if limit)
    made_with = (
        f"idf snapshot: `{settings['idf_snapshot']}`; scan fingerprint: `{settings['scan']}`."
    )
    sections = [
        "The corpus was scanned for the items of these benchmarks:",
        table_of(("benchmark", "version"), sorted(settings["benchmarks"].items())),
        f"Detectors, and the thresholds that decide what counts as a leak{also}:",
        table_of(("detector", "threshold"), thresholds),
        _benchmark_thresholds(settings),
        _QUESTION_ONLY[leaks["question_only"]],
        made_with,
    ]
    return "\n\n".join(section for section in sections if section)


def _benchmark_thresholds(settings: Value) -> str:
    """Return a table of thresholds that are set for single benchmarks; empty if none are."""
    by_benchmark = settings["policy"].get("benchmark", {})
    rows = [
        (name, f"`{setting}` {value:g}")
        for name in sorted(settings["benchmarks"].keys() & by_benchmark.keys())
        for setting, value in sorted(by_benchmark[name].items())
    ]
    if not rows:
        return ""
    return f"For single benchmarks:\n\n{table_of(('benchmark', 'threshold'), rows)}"


def _verdicts(shares: Sequence[Share]) -> str:
    n_packs = sum(share.manifest["has_verdicts"] for share in shares)
    if not n_packs:
        return ""
    return (
        f"In {n_packs:,} of the packs, people reviewed some of the matches. Their verdicts take "
        "precedence over scores."
    )


def _rates(shares: Sequence[Share]) -> str:
    n_documents: Counter[tuple[str, str]] = Counter()
    n_tokens: Counter[tuple[str, str]] = Counter()
    for share in shares:
        n_documents.update(share.leaks.n_documents)
        n_tokens.update(share.leaks.n_tokens)
    totals = _sum(shares, "n_documents_in"), _sum(shares, "n_tokens_in")

    def row(key: tuple[str, str], name: str) -> list[str]:
        n = n_documents[key], n_tokens[key]
        return [
            name.strip(),
            *(cell for one, total in zip(n, totals, strict=True) for cell in _rate(one, total)),
        ]

    rows = [row(key, " ".join(key)) for key in sorted(n_documents) if key != ("", "")]
    head = ("detector or benchmark", "documents", "of all", "tokens removed", "of all")
    return table_of(head, [*rows, row(("", ""), "any leak")])


def _rate(n: int, of: int) -> Iterator[str]:
    yield f"{n:,}"
    yield f"{n / of:.4%}" if of else "–"


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
