"""Format a study as tables, figures, Markdown, CSV, JSON and a section of the report page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from decon_core.corpus.packs import FILES as LISTED
from decon_core.features.blends.items import Item
from decon_core.features.haystack.planted import PlantedItem
from decon_core.features.haystack.product import PAGE, RESULT, TABLES, label_of
from decon_core.features.haystack.run import Study
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Point, boxes, curves
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import ALL, Choice, Section, Table
from decon_core.report.html.still import svg
from decon_core.storage.checksums import hash_file
from decon_core.storage.files import atomic_files, read_json, sealed_json
from decon_core.text_tables import as_csv, rounded
from decon_core.wording import counted, percent, plain, render

HEADS = ("scorer", "benchmark", "planted", "median percentile", "lowest", "highest")
CUT_HEADS = ("scorer", "top", "documents kept", "planted kept", "amplification", "95 % interval")
NOTE = (
    "Amplification is the share of planted items that a filter keeps, divided by the share of "
    "documents that it keeps: 1 for a filter that does not favor test items. The 95 % Wilson "
    "interval covers only the random choice of the items."
)

Value = Mapping[str, Any]  # what RESULT has


def tables(result: Value) -> Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Return heads and rows of percentiles and amplification.

    Percentiles are those of all benchmarks, each, and each of its subjects, by scorer. If there is
    one benchmark, the row of all benchmarks is left out. The cuts are for all benchmarks together.
    """
    first = 0 if len(result["benchmarks"]) > 1 else 1
    percentiles = [
        (
            scored["scorer"],
            ": ".join(filter(None, (placing["benchmark"], placing["subject"]))) or "all",
            f"{placing['n']:,}",
            *(f"{placing[f'{name}_percentile']:.1f}" for name in ("median", "lowest", "highest")),
        )
        for scored in result["scorers"]
        for placing in scored["placings"][first:]
    ]
    cuts = [
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
    return {"percentiles": (HEADS, percentiles), "amplification": (CUT_HEADS, cuts)}


def as_markdown(study: Study) -> str:
    """Return the study as one Markdown page beside its figures."""
    n_planted = len(study.planting.planted)
    return render(
        "features/haystack/page.md.j2",
        study=study,
        note=NOTE,
        share=percent(n_planted / (len(study.drawn.haystack) + n_planted)),
        tables={
            name: (heads, [[*map(plain, row)] for row in rows])
            for name, (heads, rows) in tables(as_json(study)).items()
        },
    )


def write(study: Study, folder: Path, *, key: str = "") -> None:
    """Write all files of a study, whole; `key` names its inputs."""
    rows = {"haystack": [*_places(study)], "amplification": [*_amplifications(study)]}
    content = {
        "planted.jsonl": planted_lines(study.planting.planted),
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


def planted_lines(planted: Sequence[PlantedItem]) -> str:
    """Return the planted items as lines of JSON with their text."""
    rows = ({**_item_fields(each.item), "text": each.text} for each in planted)
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
        "n_documents": len(study.drawn.haystack),
        "n_planted": len(study.planting.planted),
        "sources": [asdict(source) for source in study.drawn.counts],
        "benchmarks": [asdict(benchmark) for benchmark in study.planting.counts],
        "unreadable": list(study.drawn.unreadable),
        "scorers": [
            {
                "scorer": scored.name,
                "about": scored.about,
                "n_ranked": scored.ranking.n,
                "n_without_score": scored.n_without_score,
                "placings": scored.placings,
            }
            for scored in study.scored
        ],
        "note": NOTE,
    }


def _places(study: Study) -> Iterator[Mapping[str, Any]]:
    for scored in study.scored:
        ranking = scored.ranking
        arrays = (scored.scores, ranking.ranks, ranking.percentiles)
        columns = [array.tolist() for array in arrays]
        numbers = zip(*columns, strict=True)
        for planted, row in zip(study.planting.planted, numbers, strict=True):
            place = dict(zip(("score", "rank", "percentile"), map(rounded, row), strict=True))
            fields = {"scorer": scored.name, **_item_fields(planted.item), **place}
            yield {**fields, "n_ranked": ranking.n}


def _item_fields(item: Item) -> dict[str, Any]:
    return {
        "benchmark": item.benchmark,
        "subject": item.config,
        "split": item.split,
        "instance_index": item.instance_index,
        "sub_index": item.sub_index,
        "item": item.name,
    }


def _amplifications(study: Study) -> Iterator[Mapping[str, Any]]:
    for scored in study.scored:
        for placing in scored.placings:
            names = {name: placing[name] or "" for name in ("benchmark", "subject")}
            for kept in placing["amplification"]:
                yield {"scorer": scored.name, **names, **kept}


Rows = Sequence[Mapping[str, Any]]

_ENDS = ("amplification", "low", "high")
_BESIDE = 0.04  # distance between scorers, so that intervals do not hide each other


def figures(places: Rows, cuts: Rows) -> dict[str, Chart]:
    """Return the figures by the names of their files, from the rows of the tables of these names.

    `places`: haystack.csv, `cuts`: amplification.csv.
    """
    return {"haystack": _percentiles(places, cuts), "amplification": _kept(places, cuts)}


def _percentiles(places: Rows, cuts: Rows) -> Chart:
    """Draw a box for each scorer and benchmark, and for each of its subjects in the tables."""
    groups: dict[str, list[float]] = {}
    for row in cuts:
        scorer, benchmark, subject = (row[name] for name in ("scorer", "benchmark", "subject"))
        if benchmark:
            name = f"{scorer}, {benchmark}" + (f": {subject}" if subject else "")
            groups[name] = [
                place["percentile"]
                for place in places
                if (place["scorer"], place["benchmark"]) == (scorer, benchmark)
                and (not subject or place["subject"] == subject)
            ]
    title = "Planted items among documents of the corpus, by scorer and benchmark"
    chart = boxes(title, groups, "documents with a lower score, in %")
    return replace(chart, layout={**chart.layout, "shapes": []})  # no line at 0


def _kept(places: Rows, cuts: Rows) -> Chart:
    """Draw the share of all planted items that a filter keeps, beside that of the documents."""
    n_ranked = {row["scorer"]: row["n_ranked"] for row in places}
    shares = sorted({row["cut"] for row in cuts})
    lines = {"documents": [Point(at, 100 * cut) for at, cut in enumerate(shares)]}
    for number, scorer in enumerate(n_ranked, start=1):
        lines[scorer] = [
            Point(
                shares.index(row["cut"]) + _BESIDE * number,
                *(100 * row["n_kept"] / n_ranked[scorer] * row[name] for name in _ENDS),
            )
            for row in cuts
            if row["scorer"] == scorer and not row["benchmark"]
        ]
    axes = "documents kept, in % (not to scale)", "planted items kept, in %"
    ticks = {float(at): f"{100 * cut:g}" for at, cut in enumerate(shares)}
    return curves("Planted items that a filter keeps", lines, axes, ticks=ticks)


_NAMES = dict.fromkeys(("scorer", "benchmark", "subject"), pl.String)


def section_of(folder: Path) -> Section:
    """Return the figures and tables of a haystack as a section."""
    result = read_json(folder / RESULT)
    rows = [
        pl.read_csv(path, infer_schema_length=None, schema_overrides=_NAMES).to_dicts()
        for path in (folder / f"{name}.csv" for name in TABLES)
    ]
    n_planted = counted(result["n_planted"], "benchmark item")
    n_documents = counted(result["n_documents"], "document")
    about = (
        f"{n_planted} planted among {n_documents} of the corpus, ranked by quality scorers: does a "
        "quality filter keep leaked items more often than other documents? "
        "docs/studies/haystack.md explains the numbers."
    )
    words = [
        about,
        NOTE,
        *(
            f"{shown(scored['scorer'])}: {counted(scored['n_without_score'], 'document')} without "
            "a score, not ranked."
            for scored in result["scorers"]
            if scored["n_without_score"]
        ),
    ]
    listed = tables(result)
    shown_tables = [
        _table("haystack", "Percentiles of planted items", *listed["percentiles"]),
        _table("amplification", "What a filter keeps", *listed["amplification"]),
    ]
    choices = [Choice(ALL, [*figures(*rows).values()])]
    return Section("haystack", "Planted items and quality filters", words, choices, shown_tables)


def _table(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    kinds = ["short" if head in ("scorer", "benchmark") else "formatted" for head in heads]
    columns = [{"name": head, "kind": kind} for head, kind in zip(heads, kinds, strict=True)]
    return Table(name, title, columns, [[*map(shown, row)] for row in rows], (), is_folded=True)
