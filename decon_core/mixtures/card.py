"""The dataset card (README.md) of a mixture: content, removals, and how to load it.

Its YAML front matter is what Hugging Face's loaders read. It depends only on the manifests of the
packs, not on the date or the machine, so the same mixture always has the same card.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from decon_core.mixtures.composition import HEADS, NO_LABELS, Amount, Labels, composition_rows
from decon_core.mixtures.loading import LoadedFile, configurations_of, of_mixed_types, unloadable
from decon_core.storage.tables import read_parquet
from decon_core.wording import render

CARD = "README.md"

Value = Mapping[str, Any]

_LABELS = re.compile(r"^<!-- labels of the sources: ([0-9a-f]+) -->$", re.MULTILINE)
_PACKS = re.compile(r"^<!-- packs:((?: \S+)*) -->$", re.MULTILINE)
# The hub's size categories, by number of documents.
_SIZES = (
    "n<1K",
    "1K<n<10K",
    "10K<n<100K",
    "100K<n<1M",
    "1M<n<10M",
    "10M<n<100M",
    "100M<n<1B",
    "1B<n<10B",
    "10B<n<100B",
    "100B<n<1T",
    "n>1T",
)


# Counts by detector or benchmark: ("detector", "decon"), ("benchmark", "gsm8k"), and ("", "") for
# all leaks. Documents with questions only and no leak: ("no answer of", "gsm8k"), and
# ("no answer", "") for all.
Counts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Share:
    """The part of a mixture that comes from one pack, as the card needs it."""

    manifest: Value  # without `shards`
    files: tuple[LoadedFile, ...]
    n_documents: Counts  # documents with leaks
    n_tokens: Counts  # removed from them


def count_leaks(removed: Path) -> tuple[Counts, Counts]:
    """Count documents with leaks or questions only, and their tokens, in the list of removals."""
    import pyarrow.compute as pc

    columns = ["shard", "row", "n_tokens", "why", "detector", "benchmark"]
    rows = read_parquet(removed, columns=columns)
    leaks = rows.filter(pc.field("why") == "leak")
    questions = rows.filter(pc.field("why") == "no answer")
    document = ["shard", "row"]
    questions = questions.join(leaks.select(document), document, join_type="left anti")
    n_documents, n_tokens = Counts(), Counts()
    for what, table, by in (
        ("", leaks, ""),
        ("detector", leaks, "detector"),
        ("benchmark", leaks, "benchmark"),
        ("no answer", questions, ""),
        ("no answer of", questions, "benchmark"),
    ):
        once = table.group_by([*document, *filter(None, [by])]).aggregate([("n_tokens", "max")])
        for row in once.to_pylist():
            name = row[by] if by else ""
            n_documents[what, name] += 1
            n_tokens[what, name] += row["n_tokens_max"]
    return n_documents, n_tokens


class Listing(NamedTuple):
    """What a card was rendered from."""

    packs: frozenset[str]  # packs that it counts and lists for loaders
    labels: str  # digest of them; empty if it has none


def listing_of(card: Path) -> Listing:
    """Return what a card was rendered from; nothing if there is no card."""
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    packs, labels = _PACKS.search(text), _LABELS.search(text)
    return Listing(frozenset(packs[1].split() if packs else ()), labels[1] if labels else "")


def digest_of_labels(labels: Labels) -> str:
    page = json.dumps({name: dict(labels[name]) for name in labels}, sort_keys=True)
    return sha256(page.encode()).hexdigest()[:16]


def card_of(
    settings: Value,
    shares: Sequence[Share],
    not_searched: Sequence[str] = (),
    *,
    n_packs: int,
    labels: Labels = NO_LABELS,
) -> str:
    """Render the card of a mixture from its settings, its packs and their unsearched text."""
    manifests = [share.manifest for share in shares]
    totals = counts_in(manifests)
    sources = [
        (name, counts_in(manifest for manifest in manifests if manifest["source"] == name))
        for name in sorted({manifest["source"] for manifest in manifests})
    ]
    amounts = {  # a source without documents has no row
        name: Amount(counts["n_documents_out"], counts["n_tokens_out"])
        for name, counts in sources
        if counts["n_documents_out"]
    }
    files = {(share.manifest["source"], share.manifest["pack"]): share.files for share in shares}
    tables = configurations_of(files)
    removed = sum((Counter(manifest["totals"]["removed"]) for manifest in manifests), Counter())
    licenses, license_name = settings["declared"]["licenses"], "other"
    if licenses and licenses["unknown"] != "keep" and len(licenses["allow"]) == 1:
        # All documents may be used under the same one, unless it is a pattern or an expression.
        (only,) = licenses["allow"]
        license_name = "other" if any(sign in only for sign in "*?[ ") else only.lower()
    return render(
        "mixtures/card.md.j2",
        settings=settings,
        license=license_name,
        size=size_of(totals["n_documents_out"]),
        packs=[manifest["pack"] for manifest in manifests],
        configurations=[table for table in tables if table.loader == tables[0].loader],
        others=[table for table in tables if table.loader != tables[0].loader],
        unloadable=unloadable(files),
        of_mixed_types=of_mixed_types(files),
        n_shares=len(shares),
        not_searched=not_searched,
        n_packs=n_packs,
        n_reviewed=sum(manifest["has_verdicts"] for manifest in manifests),
        sources=[*sources, ("all", totals)],
        totals=totals,
        removed=sorted(removed.items()),
        leaks=_leaks(shares),
        HEADS=HEADS,
        composition=composition_rows(amounts, labels),
        has_labels=bool(labels),
        labels=digest_of_labels(labels),
    )


def counts_in(manifests: Iterable[Value]) -> Counter[str]:
    """Return the sums of the counts in manifests, or in their totals; others are 0."""
    sums = Counter[str]()
    for manifest in manifests:
        counts = manifest.get("totals", manifest)
        sums.update({name: n for name, n in counts.items() if isinstance(n, int)})
    return sums


def _leaks(shares: Iterable[Share]) -> list[tuple[str, int, int]]:
    """Return name, documents and tokens of each detector and benchmark, then of any leak."""
    n_documents, n_tokens = Counts({("", ""): 0}), Counts()
    for share in shares:
        n_documents.update(share.n_documents)
        n_tokens.update(share.n_tokens)
    keys = [*sorted(n_documents.keys() - {("", "")}), ("", "")]
    return [(" ".join(key).strip() or "any leak", n_documents[key], n_tokens[key]) for key in keys]


def size_of(n_documents: int) -> str:
    """Return the hub's size category."""
    return _SIZES[min(max(len(str(n_documents)) - 3, 0), len(_SIZES) - 1)]
