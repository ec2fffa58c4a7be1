"""The page that goes with a blend: what it was drawn from, how often, and which items are in it.

Made from the manifest, with nothing of the day or the machine. In parquet its head is what Hugging
Face's loaders read: every phase is a configuration, and the default is all of them, in their order.
Lines have the fields of their sources, which those loaders do not take for one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decon_core.mixtures.card import benchmarks_line, quoted, size_of, table_of

Value = Mapping[str, Any]

_WARNING = """\
> **This data holds test items of {benchmarks}, put there on purpose: {n:,} texts, {share:.2%} of
> its tokens.** It is for studies of what contamination does. Scores of a model that has seen it
> say nothing on these benchmarks. Files that hold them have `holds-test-items` in their names."""


def card_of_blend(manifest: Value) -> str:
    """The page of a blend."""
    sections = [
        _head(manifest),
        f"# {manifest['blend']}",
        _warning(manifest),
        _what_it_is(manifest),
        "## Phases\n\n" + table_of(DRAWN, drawn_rows(manifest)),
        "## Sources\n\n" + table_of(SOURCES, source_rows(manifest)),
        _items(manifest),
        "## Files\n\n" + _files(manifest),
        "## Benchmarks that the mixture was held against\n\n" + _held_against(manifest),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(manifest: Value) -> str:
    tags = ["benchmark-contamination", *(["holds-test-items"] if _tested(manifest) else [])]
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
    for name, own in names:
        lines += [f"- config_name: {name}", "  data_files:", "  - split: train", "    path:"]
        lines += [f"    - {quoted(file)}" for file in own]
    return lines


def _tested(manifest: Value) -> list[str]:
    """Benchmarks of which items are in it that are not for training."""
    found = {
        benchmark
        for one in manifest["contamination"]
        if one["holds_test_items"]
        for benchmark in one["declared"]["benchmarks"]
    }
    return sorted(found)


def _warning(manifest: Value) -> str:
    if not (benchmarks := _tested(manifest)):
        return ""
    own = [one for one in manifest["contamination"] if one["holds_test_items"]]
    n_tokens = sum(one["n_tokens"] for one in own)
    return _WARNING.format(
        benchmarks=", ".join(f"`{name}`" for name in benchmarks),
        n=sum(one["n_texts"] for one in own),
        share=n_tokens / max(manifest["totals"]["n_tokens"], 1),
    )


def _what_it_is(manifest: Value) -> str:
    totals, declared = manifest["totals"], manifest["mixture"]["declared"]
    return (
        f"A stream of {totals['n_documents']:,} documents and {totals['n_tokens']:,} tokens, drawn "
        f"from the mixture `{manifest['mixture']['name']}` (take: {declared['take']}, cut: "
        f"{declared['cut']}) with the seed {manifest['seed']}. Its parts are to be read in the "
        "order of their numbers. `_texts.parquet` says of every row which document of which shard "
        "it is, or which test item."
    )


# What a blend comes to, as tables: of its manifest, or of an account that is only planned.

DRAWN = ("phase", "source", "documents drawn", "tokens", "of the phase")
SOURCES = ("source", "documents in the mixture", "tokens", "tokens drawn", "passes", "different")
ITEMS = (
    *("benchmarks", "texts by split", "form", "items seen", "unseen", "without answer"),
    *("texts", "tokens", "documents replaced", "their tokens", "where"),
)


def drawn_rows(account: Value) -> list[list[str]]:
    """What every phase has of every source."""
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
    """How much there is of every source, and how often it is gone through."""
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
    """Which items are put in, and what they take the place of."""
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
    return f"## Items of benchmarks\n\n{table}\n\nWhich: `_items.parquet`."


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


def _held_against(manifest: Value) -> str:
    mixture = manifest["mixture"]
    return benchmarks_line({**manifest, **mixture})
