"""The metrics of a file of labelled pairs: computed, scored, and as table, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.errors import Problem
from decon_core.features.similarity.labelled_pairs import (
    KindScore,
    LabelledPairs,
    MetricScore,
    read_labelled_pairs,
    score_kinds,
    score_metrics,
)
from decon_core.features.similarity.metrics import Floats, pair_metrics
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import boxes
from decon_core.report.html.still import svg
from decon_core.storage.files import write_plain_json, write_text
from decon_core.text_tables import as_csv
from decon_core.wording import render

if TYPE_CHECKING:
    from decon_core.features.similarity.embedders import Embedder

PAGE_FILE, SCORES_FILE, VALUES_FILE = "pairs.md", "pairs.json", "pairs.csv"
PICTURE_FILE = "pairs.svg"
_FORMAT = 1  # format of the JSON file; increased when a key gets another meaning

Row = dict[str, Any]


@dataclass(frozen=True)
class PairCard:
    """The metrics of labelled pairs, and how well each tells duplicates from other pairs."""

    name: str
    pairs: LabelledPairs
    values: Mapping[str, Floats]
    scores: tuple[MetricScore, ...]
    kinds: tuple[KindScore, ...]
    problems: tuple[Problem, ...]  # rows that hold no pair
    embedders: Mapping[str, str]  # fingerprints by name
    seed: int

    def counts(self) -> dict[str, int]:
        n_duplicates = int(self.pairs.are_duplicates.sum())
        return {
            "n_pairs": len(self.pairs),
            "n_duplicates": n_duplicates,
            "n_others": len(self.pairs) - n_duplicates,
            "n_originals": len({*self.pairs.originals}),
            "n_unreadable": len(self.problems),
        }

    def by_kind(self) -> list[Row]:
        """Return a row for each kind, with the AUC of each metric."""
        rows: dict[tuple[bool, str], Row] = {}
        for score in self.kinds:
            new = {"kind": score.kind, "is_duplicate": score.is_duplicate, "n": score.n, "auc": {}}
            row = rows.setdefault((score.is_duplicate, score.kind), new)
            row["auc"][score.metric] = score.auc
        return list(rows.values())

    def as_json(self) -> Row:
        """Return everything but the texts and the values of single pairs."""
        return {
            "format": _FORMAT,
            "file": self.name,
            **self.counts(),
            "metrics": [_without_infinity(asdict(score)) for score in self.scores],
            "kinds": [asdict(kind) for kind in self.kinds],
            "unreadable": [asdict(problem) for problem in self.problems],
            "embedders": dict(self.embedders),
            "seed": self.seed,
        }

    def tables(self) -> str:
        return render("features/similarity/pair_tables.md.j2", card=self, metrics=[*self.values])

    def figure(self) -> Chart:
        """Draw the values of each metric, of duplicates and of the other pairs."""
        groups = {
            f"{name}: {label}": column[is_own & ~np.isnan(column)].tolist()
            for name, column in self.values.items()
            for label, is_own in (
                ("duplicates", self.pairs.are_duplicates),
                ("other pairs", ~self.pairs.are_duplicates),
            )
        }
        drawn = {name: values for name, values in groups.items() if values}
        return boxes("Values of each metric", drawn, "value")

    def write(self, folder: Path) -> None:
        """Write scores, page, figure, and the values of each pair in the order of the file."""
        write_plain_json(folder / SCORES_FILE, self.as_json())
        template = "features/similarity/pair_card.md.j2"
        texts = {
            PAGE_FILE: render(template, card=self, picture=PICTURE_FILE, **self.counts()),
            PICTURE_FILE: svg(self.figure()),
            VALUES_FILE: as_csv([*self._rows()]),
        }
        for name, text in texts.items():
            write_text(folder / name, text)

    def _rows(self) -> Iterator[Row]:
        labels = self.pairs.are_duplicates.tolist()
        columns = [column.tolist() for column in self.values.values()]
        rows = zip(labels, self.pairs.kinds, *columns, strict=True)
        for number, (label, kind, *values) in enumerate(rows, start=1):
            cells = ("" if isnan(value) else value for value in values)
            pair = {"pair": number, "label": str(label).lower(), "kind": kind}
            yield pair | dict(zip(self.values, cells, strict=True))


def score_pairs(
    path: Path,
    *,
    embedders: Sequence[Embedder] = (),
    seed: int = 0,
    on_step: Callable[[str], None] = lambda _: None,
) -> PairCard:
    """Read a file of labelled pairs, and score all metrics on it."""
    pairs, problems = read_labelled_pairs(path)
    values = pair_metrics(pairs.originals, pairs.others, embedders=embedders, on_step=on_step)
    return PairCard(
        name=path.name,
        pairs=pairs,
        values=values,
        scores=tuple(score_metrics(pairs, values, seed=seed)),
        kinds=tuple(score_kinds(pairs, values)),
        problems=tuple(problems),
        embedders={embedder.name: embedder.fingerprint for embedder in embedders},
        seed=seed,
    )


def _without_infinity(row: Row) -> Row:
    """JSON has no infinity: a threshold below every value is null."""
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in row.items()
    }
