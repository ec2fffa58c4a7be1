"""The dataset card (README.md) of a blend: sources, passes, inserted items and files.

It depends only on the manifest. For Parquet its YAML front matter is what Hugging Face's loaders
read: every phase is a configuration, and the default is all phases in order. JSON lines have the
fields of their sources, which those loaders do not accept as one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decon_core.mixtures.card import benchmarks_line, quoted, size_of, table_of

Value = Mapping[str, Any]

_WARNING = """\
> **This data holds test items of {benchmarks}, inserted on purpose: {n:,} texts, {share:.2%} of
> its tokens.** It is for studies of the effect of contamination. Scores of a model trained on it
> are not valid on these benchmarks. Such files have `holds-test-items` in their names."""


def card_of_blend(manifest: Value) -> str:
    """Render the card of a blend."""
    sections = [
        _head(manifest),
        f"# {manifest['blend']}",
        _warning(manifest),
        _what_it_is(manifest),
        "## Phases\n\n" + table_of(DRAWN, drawn_rows(manifest)),
        "## Sources\n\n" + table_of(SOURCES, source_rows(manifest)),
        _items(manifest),
        "## Files\n\n" + _files(manifest),
        "## Benchmarks that the mixture was checked against\n\n" + _benchmarks(manifest),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(manifest: Value) -> str:
    has_test_items = bool(_test_benchmarks(manifest))
    tags = ["benchmark-contamination", *(["holds-test-items"] if has_test_items else [])]
    lines = [
        *("---", 'license: "other"', f"pretty_name: {quoted(manifest['blend'])}", "tags:"),
        *(f"- {quoted(tag)}" for tag in tags),
        *("size_categories:", f"- {quoted(size_of(manifest['totals']['n_documents']))}"),
    ]
    if manifest["declared"]["write"] == "parquet":
        lines += _configs(manifest)
    return "\n".join([*lines, "---"])


def _configs(manifest: Value) -> list[str]:
    lines = ["configs:"]
    files = [(part["phase"], part["file"]) for part in manifest["parts"]]
    names = [("default", [file for _, file in files])]
    names += [
        (f"phase-{phase}", [file for number, file in files if number == phase])
        for phase in dict.fromkeys(phase for phase, _ in files)
    ]
    for name, paths in names:
        lines += [f"- config_name: {name}", "  data_files:", "  - split: train", "    path:"]
        lines += [f"    - {quoted(path)}" for path in paths]
    return lines


def _test_benchmarks(manifest: Value) -> list[str]:
    """Return the benchmarks of which the blend holds test items."""
    benchmarks = {
        benchmark
        for one in manifest["contamination"]
        if one["holds_test_items"]
        for benchmark in one["declared"]["benchmarks"]
    }
    return sorted(benchmarks)


def _warning(manifest: Value) -> str:
    if not (benchmarks := _test_benchmarks(manifest)):
        return ""
    with_test_items = [one for one in manifest["contamination"] if one["holds_test_items"]]
    n_tokens = sum(one["n_tokens"] for one in with_test_items)
    return _WARNING.format(
        benchmarks=", ".join(f"`{name}`" for name in benchmarks),
        n=sum(one["n_texts"] for one in with_test_items),
        share=n_tokens / max(manifest["totals"]["n_tokens"], 1),
    )


def _what_it_is(manifest: Value) -> str:
    totals, declared = manifest["totals"], manifest["mixture"]["declared"]
    return (
        f"A stream of {totals['n_documents']:,} documents and {totals['n_tokens']:,} tokens, drawn "
        f"from the mixture `{manifest['mixture']['name']}` (take: {declared['take']}, cut: "
        f"{declared['cut']}) with the seed {manifest['seed']}. Read its parts in the order of "
        "their numbers. `_texts.parquet` lists for every row the document and shard, or the test "
        "item, that it comes from."
    )


# Tables of the counts of a blend, from its manifest or from a plan.

DRAWN = ("phase", "source", "documents drawn", "tokens", "of the phase")
SOURCES = ("source", "documents in the mixture", "tokens", "tokens drawn", "passes", "different")
ITEMS = (
    *("benchmarks", "texts by split", "form", "items seen", "unseen", "without answer"),
    *("texts", "tokens", "documents replaced", "their tokens", "where"),
)


def drawn_rows(account: Value) -> list[list[str]]:
    """Return a row for each phase and source."""
    return [
        [
            f"{phase['phase']}",
            f"{source['source']}",
            f"{source['n_drawn']:,}",
            f"{source['n_drawn_tokens']:,}",
            f"{source['share_of_tokens']:.2%}",
        ]
        for phase in account["phases"]
        for source in phase["sources"]
    ]


def source_rows(account: Value) -> list[list[str]]:
    """Return a row for each source: its size, and the passes drawn from it."""
    return [
        [
            f"{source['source']}",
            f"{source['n_documents']:,}",
            f"{source['n_tokens']:,}",
            f"{source['n_drawn_tokens']:,}",
            f"{source['passes']:g}",
            f"{source['n_different']:,}",
        ]
        for source in account["sources"]
    ]


def item_rows(account: Value) -> list[list[str]]:
    """Return a row for each contamination: inserted items, and the documents they replace."""
    return [
        [
            ", ".join(one["declared"]["benchmarks"]),
            ", ".join(f"{split}: {n:,}" for split, n in one["texts_by_split"].items()),
            one["declared"]["form"],
            f"{one['n_items_seen']:,}",
            f"{one['n_items_unseen']:,}",
            f"{one['n_items_without_answer']:,}",
            f"{one['n_texts']:,}",
            f"{one['n_tokens']:,}",
            f"{one['n_replaced']:,}",
            f"{one['n_replaced_tokens']:,}",
            f"{one['first_at']:.1%} to {one['last_at']:.1%}",
        ]
        for one in account["contamination"]
    ]


def _items(manifest: Value) -> str:
    if not manifest["contamination"]:
        return ""
    table = table_of(ITEMS, item_rows(manifest))
    return f"## Items of benchmarks\n\n{table}\n\n`_items.parquet` lists the items."


def _files(manifest: Value) -> str:
    rows = [
        [
            f"`{part['file']}`",
            f"{part['n_documents']:,}",
            f"{part['n_tokens']:,}",
            f"{part['n_test_texts']:,}",
        ]
        for part in manifest["parts"]
    ]
    return table_of(("file", "documents", "tokens", "items of benchmarks"), rows)


def _benchmarks(manifest: Value) -> str:
    mixture = manifest["mixture"]
    return benchmarks_line({**manifest, **mixture})
