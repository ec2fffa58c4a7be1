"""`python -m bench.form_probabilities FILE`: how many places reported by `aligned` are copies.

A place reported in the worlds of `bench.forms`, or in natural text without planted items, is a copy
if a form of its question was planted in the document. It is not a copy if only the answer or the
passage was planted, or if the planted item is not indexed. The curve of each kind, computed from
the tuned groups, is written to FILE. The tables show how well the curves of other groups or other
benchmarks predict a group, and how well the curves in FILE predict the untouched groups.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench import forms
from bench.plants import NEIGHBOURS
from decon_core.alignment.kinds import KINDS
from decon_core.decisions.calibration import Curve, Step, fit_of, fit_steps

_NO_COPIES = frozenset({"answer alone", "passage alone", *NEIGHBOURS})
_DECIMALS = 4  # of shares; scores have those of `fit_steps`


class Place(NamedTuple):
    """What was reported at a place of a document."""

    group: str  # of the planted item, in natural text of the reported one; or the untouched of both
    kind: str
    score: float
    is_copy: bool

    @property
    def benchmark(self) -> str:
        return self.group.partition(" ")[0]


class Predicted(NamedTuple):
    """A place, and what is expected of it from other places: by curve, kind and at all."""

    place: Place
    by_curve: float
    by_kind: float
    by_all: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="decon_core/decisions/planted.toml")
    forms.add_arguments(parser)
    given = parser.parse_args(arguments)
    pages = forms.pages_below(given.texts)
    places = [place for world in forms.WORLDS for place in _places(world, pages, given)]
    tuned = [place for place in places if place.group not in forms.UNTOUCHED]
    curves = curves_of(tuned)
    given.file.write_text("\n".join(_toml(curves, tuned)) + "\n", encoding="utf-8")
    print("\n".join(_tables(curves, places)))


def _places(world: str, pages: Sequence[str], given: argparse.Namespace) -> Iterator[Place]:
    items = forms.items_of(world)
    group_of = {(item.question, item.passage): item.group for item in items}
    index = forms.index_of(items, "aligned")
    plants: list[forms.Plant | None] = [*forms.plants_of(items, pages, given)]
    texts = [*(plant.text for plant in plants if plant), *pages]
    plants += [None] * len(pages)
    for plant, findings in zip(plants, index.check_all(texts), strict=True):
        for finding in findings:
            record = index.record(finding)
            found = record["question"], record["passage"] or ""
            is_copy = is_copy_of(plant, *found)
            if is_copy is not None:
                groups = [*([plant.item.group] if plant else []), group_of[found]]
                group = next((one for one in groups if one in forms.UNTOUCHED), groups[0])
                yield Place(group, finding.kind or "", finding.score, is_copy)


def is_copy_of(plant: forms.Plant | None, question: str, passage: str) -> bool | None:
    """Return whether a planted text is a copy of a question about a passage.

    None: it is a copy of the same question about another passage, and so of both or of neither.
    """
    if plant is None or question != plant.item.question:
        return False
    if passage != plant.item.passage:
        return None
    return plant.form not in _NO_COPIES


def curves_of(places: Iterable[Place]) -> dict[str, Curve]:
    by_kind: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for place in places:
        by_kind[place.kind].append((place.score, place.is_copy))
    return {kind: Curve(fit_steps(by_kind[kind])) for kind in KINDS if by_kind[kind]}


def predicted(places: Iterable[Place], others: Sequence[Place]) -> Iterator[Predicted]:
    """Yield what the curves of other places say of these."""
    curves = curves_of(others)
    share = sum(other.is_copy for other in others) / len(others)
    for place in places:
        if curve := curves.get(place.kind):
            step = curve.step_at(place.score) or curve.steps[0]
            yield Predicted(place, step.probability, curve.n_sd / curve.n_judged, share)
        else:
            yield Predicted(place, share, share, share)


def left_out(places: Sequence[Place], part: str) -> list[Predicted]:
    """Predict each group, or each benchmark, from all others."""
    return [
        one
        for name in sorted({getattr(place, part) for place in places})
        for one in predicted(
            [place for place in places if getattr(place, part) == name],
            [place for place in places if getattr(place, part) != name],
        )
    ]


def _toml(curves: Mapping[str, Curve], tuned: Sequence[Place]) -> Iterator[str]:
    groups = ", ".join(sorted({place.group for place in tuned}))
    yield "# How often what `aligned` reported was planted, by kind and score: docs/aligned.md."
    yield f"# Made by `python -m bench.form_probabilities FILE` on {datetime.now(UTC):%Y-%m-%d}."
    yield f"# {len(tuned):,} places of these groups, and no others: {groups}."
    yield "steps = ["
    for kind, curve in curves.items():
        for step in curve.steps:
            row = {"detector": '"aligned"', "kind": f'"{kind}"', **_numbers(step)}
            yield "  { " + ", ".join(f"{name} = {value}" for name, value in row.items()) + " },"
    yield "]"


def _numbers(step: Step) -> dict[str, Any]:
    return {
        "score_from": step.score_from,
        "score_to": step.score_to,
        "n_places": step.n_judged,
        "n_copies": step.n_sd,
        "low": round(step.low, _DECIMALS),
        "high": round(step.high, _DECIMALS),
    }


# Tables -------------------------------------------------------------------------------------------


def _tables(curves: Mapping[str, Curve], places: Sequence[Place]) -> Iterator[str]:
    yield from _curve_table(curves)
    tuned = [place for place in places if place.group not in forms.UNTOUCHED]
    by_group, by_benchmark = left_out(tuned, "group"), left_out(tuned, "benchmark")
    yield from _fits("Predicted from the other tuned groups", by_group, "group")
    yield from _fits("Predicted from the other tuned benchmarks", by_benchmark, "benchmark")
    untouched = [place for place in places if place.group in forms.UNTOUCHED]
    yield from _fits("Untouched groups", [*predicted(untouched, tuned)], "group")


def _curve_table(curves: Mapping[str, Curve]) -> Iterator[str]:
    yield "| kind | score | places | copies | probability | 95 % interval |"
    yield "|---|---|---:|---:|---:|---|"
    for kind, curve in curves.items():
        for step in curve.steps:
            counts = f"{step.n_judged:,} | {step.n_sd:,} | {step.probability:.3f}"
            scores = f"{step.score_from:.3f} to {step.score_to:.3f}"
            yield f"| {kind} | {scores} | {counts} | {step.low:.3f} to {step.high:.3f} |"


def _fits(title: str, all_of: Sequence[Predicted], part: str) -> Iterator[str]:
    """Yield a table by group or benchmark, and by kind."""
    yield f"\n### {title}\n"
    yield "| group | places | copies | Brier score | of the kind's share | of the share | error |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    rows = {"all": [*all_of]}
    for name in sorted({getattr(one.place, part) for one in all_of}):
        rows[name] = [one for one in all_of if getattr(one.place, part) == name]
    for kind in KINDS:
        rows[f"`{kind}`"] = [one for one in all_of if one.place.kind == kind]
    for name, some in rows.items():
        if some:
            fit = fit_of([(one.by_curve, one.by_all, one.place.is_copy) for one in some])
            of_kind = fit_of([(one.by_curve, one.by_kind, one.place.is_copy) for one in some])
            share = sum(one.place.is_copy for one in some) / len(some)
            briers = f"{fit.brier:.4f} | {of_kind.brier_of_share:.4f} | {fit.brier_of_share:.4f}"
            yield f"| {name} | {len(some):,} | {share:.3f} | {briers} | {fit.error:.3f} |"


if __name__ == "__main__":
    main()
