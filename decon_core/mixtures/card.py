"""The page that goes with a mixture in parquet: what is in it, what is not, and which files it has.

Its head is what Hugging Face's loaders read. It is made from the manifests of the packs that are
there, with nothing of the day or the machine, so that the same mixture has the same page.
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
DATA = "data"  # the folder of a pack with nothing but its documents

Value = Mapping[str, Any]

_PATTERN = DATA + "/**/*.parquet"
_LISTED = re.compile(r'^ *- "([^"/]+)/' + re.escape(_PATTERN) + '"$', re.MULTILINE)
# The hub's names for numbers of documents: below a thousand, ten thousand, and so on.
_SIZES = (
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
    *("1B<n<10B", "10B<n<100B", "100B<n<1T", "n>1T"),
)
_TAKES = {
    "clean": "all documents but those that hold a benchmark's items",
    "everything": "all documents, those that hold benchmark items among them",
    "leaks": "the documents that hold benchmark items, and no others",
    "control": "all documents but as many, of the same lengths, as another mixture leaves out; "
    "those that hold benchmark items are among them",
}
_CUTS = {
    "documents": _TAKES["clean"],
    "turns": "all documents, with the turns of conversations cut out that hold benchmark items; "
    "where that cannot be, the document is left out",
    "spans": "all documents, with what was found of benchmark items cut out; where that cannot be, "
    "the document is left out",
}

_QUESTION_ONLY = {
    "remove": "A question that stands in a document without its answer is no leak; it was treated "
    "like one.",
    "keep": "A question that stands in a document without its answer is no leak, and was kept.",
}


@dataclass(frozen=True)
class Leaked:
    """Documents with leaks, and the tokens that went with these, by what they leaked from.

    Keys: ("detector", "decon"), ("benchmark", "gsm8k"), ("", "") for all of them. Those of which
    only questions were found, and no leak: ("question only of", "gsm8k"), ("question only", "").
    """

    n_documents: Mapping[tuple[str, str], int]
    n_tokens: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Share:
    """What a page says of a pack."""

    manifest: Value  # without its shards
    has_files: bool
    leaked: Leaked


def leaked_of(removed: Path) -> Leaked:
    """What a list of removals says of leaks, and of questions without their answers."""
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
    return Leaked(n_documents, n_tokens)


def listed(card: Path) -> set[str]:
    """The packs whose files a page leads a loader to."""
    return (
        {*_LISTED.findall(card.read_text(encoding="utf-8", errors="replace"))}
        if card.is_file()
        else set()
    )


def card_of(settings: Value, shares: Sequence[Share], *, n_packs: int) -> str:
    """The page of a mixture: its settings, as manifests tell them, and the packs that have them."""
    declared = settings["declared"]
    sections = [
        _head(settings, shares),
        f"# {settings['mixture']}",
        _what_it_is(declared),
        f"{len(shares):,} of {counted(n_packs, 'pack')} of the corpus are here.",
        _licenses(declared["licenses"]),
        _columns(),
        "## Counts\n\n" + _counts(shares),
        "## Benchmarks\n\n" + benchmarks_line(settings),
        _verdicts(shares),
    ]
    if declared["take"] == "clean":
        sections.append("## What leaked\n\n" + _rates(shares))
    return "\n\n".join(section for section in sections if section) + "\n"


# The head -----------------------------------------------------------------------------------------


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
    return json.dumps(text, ensure_ascii=False)  # a text of JSON is one of YAML


def _license(licenses: Value | None) -> str:
    """The only one that a document may be under; else nobody has one name for them."""
    if not licenses or licenses["unknown"] == "keep" or len(licenses["allow"]) != 1:
        return "other"
    (name,) = licenses["allow"]
    is_pattern = any(sign in name for sign in "*?[")
    return "other" if is_pattern else str(name).lower()


def size_of(n_documents: int) -> str:
    return _SIZES[min(max(len(str(n_documents)) - 3, 0), len(_SIZES) - 1)]


# The text -----------------------------------------------------------------------------------------


def _what_it_is(declared: Value) -> str:
    sources = ", ".join(f"`{name}`" for name in declared["sources"]) or "all sources"
    is_clean = declared["take"] == "clean"
    takes = _CUTS[declared["cut"]] if is_clean else _TAKES[declared["take"]]
    text = f"A variant of a corpus, of {sources}: {takes}."
    if declared["take"] == "control":
        text += f" That mixture is `{declared['control_of']}`; the seed is {declared['seed']}."
    if is_clean and declared["cut"] == "spans" and declared["mask"]:
        text += f" In the place of a span stands `{declared['mask']}`."
    return text


def _licenses(licenses: Value | None) -> str:
    if not licenses:
        return "No document was left out for its license: they have those that their sources have."
    fields = ", ".join(f"`{field}`" for field in licenses["fields"])
    rules = [
        f"{word}: {', '.join(f'`{name}`' for name in licenses[key])}"
        for key, word in (("allow", "allowed"), ("deny", "refused"))
        if licenses[key]
    ]
    unknown = {"drop": "left out", "keep": "kept"}[licenses["unknown"]]
    return (
        f"Documents were taken by the license in {fields}; {'; '.join(rules)}. "
        f"Those that name none are {unknown}."
    )


def _columns() -> str:
    return (
        "A row is a document: `id`, `text`, `source`; `messages`, where it is a conversation of "
        "roles and texts; and in `metadata` all other fields that it had, as a JSON object."
    )


def _counts(shares: Sequence[Share]) -> str:
    rows = []
    for source in sorted({share.manifest["source"] for share in shares}):
        own = [share for share in shares if share.manifest["source"] == source]
        rows.append((source, *_before_and_after(own)))
    table = table_of(
        ("source", "documents", "of them here", "tokens", "of them here"),
        [*rows, ("all", *_before_and_after(shares))],
    )
    reasons: Counter[str] = Counter()
    for share in shares:
        reasons.update(share.manifest["totals"]["removed"])
    told = "; ".join(f"{why}: {n:,}" for why, n in sorted(reasons.items())) or "none"
    n_cut = _sum(shares, "n_cut")
    n_unreadable = _sum(shares, "n_unreadable_left_out")
    n_replaced = _sum(shares, "n_invalid_utf8_replaced")
    return (
        f"{table}\n\nDocuments that are not here, by the first reason: {told}. Here in part: "
        f"{n_cut:,}. Rows that could not be read, and are not counted above: {n_unreadable:,}. "
        f"Rows with bytes that were not UTF-8, written with U+FFFD in their place: {n_replaced:,}."
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
        return "This mixture was held against none."
    policy, leaks = settings["policy"], settings["declared"]["leaks"]
    rules = leaks["detectors"] or policy["detectors"]
    thresholds = [(rule, f"{settings['thresholds'][rule]}") for rule in rules]
    chosen = [
        f"only splits {', '.join(f'`{name}`' for name in leaks['splits'])}" * bool(leaks["splits"]),
        f"only scores from {leaks['least_score']} on" * (leaks["least_score"] is not None),
    ]
    also = "".join(f", {choice}" for choice in chosen if choice)
    made_with = (
        f"Snapshot of n-gram frequencies: `{settings['idf_snapshot']}`; "
        f"settings of the scan: `{settings['scan']}`."
    )
    sections = [
        "The corpus was scanned for the items of these, in these versions:",
        table_of(("benchmark", "version"), sorted(settings["benchmarks"].items())),
        f"What counts as a leak, by rule, and from which threshold on{also}:",
        table_of(("rule", "threshold"), thresholds),
        _own_thresholds(settings),
        _QUESTION_ONLY[leaks["question_only"]],
        made_with,
    ]
    return "\n\n".join(section for section in sections if section)


def _own_thresholds(settings: Value) -> str:
    """The thresholds of single benchmarks, where they have some of their own."""
    own = settings["policy"].get("benchmark", {})
    rows = [
        (name, f"`{setting}` {value:g}")
        for name in sorted(settings["benchmarks"].keys() & own.keys())
        for setting, value in sorted(own[name].items())
    ]
    return f"Of single benchmarks:\n\n{table_of(('benchmark', 'threshold'), rows)}" if rows else ""


def _verdicts(shares: Sequence[Share]) -> str:
    n_packs = sum(share.manifest["has_verdicts"] for share in shares)
    if not n_packs:
        return ""
    return (
        f"In {n_packs:,} of the packs, people looked at some of what was found. What they said "
        "of it came before its score."
    )


def _rates(shares: Sequence[Share]) -> str:
    n_documents: Counter[tuple[str, str]] = Counter()
    n_tokens: Counter[tuple[str, str]] = Counter()
    for share in shares:
        n_documents.update(share.leaked.n_documents)
        n_tokens.update(share.leaked.n_tokens)
    of = _sum(shares, "n_documents_in"), _sum(shares, "n_tokens_in")

    def row(key: tuple[str, str], name: str) -> list[str]:
        n = n_documents[key], n_tokens[key]
        return [
            name.strip(),
            *(told for one, all_ in zip(n, of, strict=True) for told in _rate(one, all_)),
        ]

    rows = [row(key, " ".join(key)) for key in sorted(n_documents) if key != ("", "")]
    head = ("found by or of", "documents", "of all", "tokens that went", "of all")
    return table_of(head, [*rows, row(("", ""), "any leak")])


def _rate(n: int, of: int) -> Iterator[str]:
    yield f"{n:,}"
    yield f"{n / of:.4%}" if of else "–"


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
