"""Format a study as tables, figures, Markdown, CSV and JSON, write its files, and read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from decon_core.corpus.packs import FILES as LISTED
from decon_core.errors import DamagedError
from decon_core.features.haystack.figures import figures
from decon_core.features.haystack.planted import PlantedItem
from decon_core.features.haystack.ranks import Amplification
from decon_core.features.haystack.run import Placing, Study
from decon_core.features.haystack.scorers import label_of
from decon_core.report.html.still import svg
from decon_core.storage.checksums import hash_file
from decon_core.storage.files import atomic_files, read_json, sealed_json
from decon_core.text_tables import as_csv, rounded
from decon_core.wording import percent, plain, render

PAGE, RESULT = "haystack.md", "haystack.json"
TABLES = ("haystack", "amplification")  # each with a figure of the same name
_DRAWN = (f"{name}.{kind}" for name in TABLES for kind in ("csv", "svg"))
FILES = ("planted.jsonl", *_DRAWN, PAGE, RESULT)

HEADS = ("scorer", "benchmark", "planted", "median percentile", "lowest", "highest")
CUT_HEADS = ("scorer", "top", "documents kept", "planted kept", "amplification", "95 % interval")
NOTE = (
    "Amplification is the share of planted items that a filter keeps, divided by the share of "
    "documents that it keeps: 1 for a filter that does not favour test items. The 95 % Wilson "
    "interval covers only the random choice of the items."
)

Value = Mapping[str, Any]  # what RESULT has

_ITEM = ("benchmark", "subject", "split", "instance_index", "sub_index", "item")


def lines(result: Value) -> list[tuple[str, ...]]:
    """Return the rows under HEADS: of each scorer all benchmarks, each, and each of its subjects.

    If there is one benchmark, the row of all benchmarks is left out.
    """
    first = 0 if len(result["benchmarks"]) > 1 else 1
    return [
        (
            scored["scorer"],
            ": ".join(filter(None, (placing["benchmark"], placing["subject"]))) or "all",
            f"{placing['n']:,}",
            *(f"{placing[f'{name}_percentile']:.1f}" for name in ("median", "lowest", "highest")),
        )
        for scored in result["scorers"]
        for placing in scored["placings"][first:]
    ]


def cut_lines(result: Value) -> list[tuple[str, ...]]:
    """Return the rows under CUT_HEADS: of each scorer the cuts, for all benchmarks together."""
    return [
        (
            scored["scorer"],
            f"{100 * kept['cut']:g} %",
            f"{kept['n_kept']:,}",
            f"{kept['planted_kept']:.4g} of {kept['n_planted']:,}",
            f"{kept['amplification']:.2f}",
            f"{kept['low']:.2f} to {kept['high']:.2f}",
        )
        for scored in result["scorers"]
        for kept in scored["placings"][0]["amplification"]
    ]


def as_markdown(study: Study) -> str:
    """Return the study as one Markdown page beside its figures."""
    result = as_json(study)
    return render(
        "features/haystack/page.md.j2",
        study=study,
        note=NOTE,
        share=percent(len(study.planted) / (study.n_documents + len(study.planted))),
        tables={
            "places": (HEADS, _escaped(lines(result))),
            "cuts": (CUT_HEADS, _escaped(cut_lines(result))),
        },
    )


def _escaped(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[plain(cell) for cell in row] for row in rows]


def write(study: Study, folder: Path, *, key: str = "") -> None:
    """Write all files of a study, whole; `key` names its inputs."""
    rows = {"haystack": [*_places(study)], "amplification": [*_amplifications(study)]}
    content = {
        "planted.jsonl": planted_lines(study.planted),
        PAGE: as_markdown(study),
        **{f"{name}.csv": as_csv(table) for name, table in rows.items()},
        **{f"{name}.svg": svg(chart) for name, chart in figures(*rows.values()).items()},
    }
    with atomic_files() as draft_of:
        hashes = {}
        for name, text in content.items():
            draft = draft_of(folder / name)
            draft.write_text(text, encoding="utf-8")
            hashes[name] = hash_file(draft)
        # The result is the last to be written: with it, all of them are there.
        result = as_json(study, key) | {LISTED: hashes}
        draft_of(folder / RESULT).write_bytes(sealed_json(result))


def has_haystack(folder: Path, key: str) -> bool:
    """Return whether a folder has the whole study with this key."""
    return all((folder / name).is_file() for name in FILES) and key_of(folder) == key


def key_of(folder: Path) -> str:
    """Return the key of the study in a folder; empty if there is none."""
    try:
        return str(read_json(folder / RESULT).get("key", ""))
    except (FileNotFoundError, DamagedError, AttributeError):
        return ""


def planted_lines(planted: Sequence[PlantedItem]) -> str:
    """Return the planted items as lines of JSON with their text."""
    rows = ({**_item_fields(item), "text": item.text} for item in planted)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_json(study: Study, key: str = "") -> dict[str, Any]:
    """Return the study without the texts of items, which `planted.jsonl` has."""
    settings = {k: v for k, v in asdict(study.settings).items() if k not in ("scorers", "key_env")}
    return {
        "key": key,
        "settings": {
            **settings,
            # Without the folders of files: the same files elsewhere give the same result.
            "scorers": [f"{name.kind}:{label_of(name)}" for name in study.settings.scorer_names],
        },
        "n_documents": study.n_documents,
        "n_planted": len(study.planted),
        "sources": [asdict(source) for source in study.sources],
        "benchmarks": [asdict(benchmark) for benchmark in study.benchmarks],
        "unreadable": list(study.unreadable),
        "scorers": [
            {
                "scorer": scored.name,
                "about": scored.about,
                "n_ranked": scored.n_ranked,
                "n_without_score": scored.n_without_score,
                "placings": [_placing(placing) for placing in scored.placings],
            }
            for scored in study.scored
        ],
        "note": NOTE,
    }


def _placing(placing: Placing) -> dict[str, Any]:
    return {
        "benchmark": placing.benchmark,
        "subject": placing.subject,
        "n": placing.n,
        "median_percentile": rounded(placing.median),
        "lowest_percentile": rounded(placing.low),
        "highest_percentile": rounded(placing.high),
        "amplification": [*map(_amplification, placing.amplifications)],
    }


def _places(study: Study) -> Iterator[Mapping[str, Any]]:
    for scored in study.scored:
        for place in scored.places:
            numbers = {
                name: rounded(getattr(place, name)) for name in ("score", "rank", "percentile")
            }
            fields = {"scorer": scored.name, **_item_fields(place.item), **numbers}
            yield {**fields, "n_ranked": scored.n_ranked}


def _item_fields(item: PlantedItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in _ITEM}


def _amplifications(study: Study) -> Iterator[Mapping[str, Any]]:
    for scored in study.scored:
        for placing in scored.placings:
            names = {
                "scorer": scored.name,
                "benchmark": placing.benchmark or "",
                "subject": placing.subject or "",
            }
            for amplification in placing.amplifications:
                yield {**names, **_amplification(amplification)}


def _amplification(amplification: Amplification) -> dict[str, Any]:
    return {name: rounded(value) for name, value in asdict(amplification).items()}
