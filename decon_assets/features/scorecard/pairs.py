"""`decon-assets scorecard --pairs`: metrics of a file of labelled pairs, and how good each is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.terminal.output import say, say_table, warn
from decon_assets.terminal.progress import ShardProgress
from decon_core.errors import InputError, format_problems
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.features.similarity.embedders import Embedder
    from decon_core.features.similarity.pair_card import PairCard

_HEADS = ("metric", "AUC", "low", "high", "recall % at 1 % FP", "low", "high", "above", "no value")


def score_labelled_pairs(
    path: Path,
    *,
    embedders: Sequence[str],
    model: str | None,
    key_env: str | None,
    seed: int,
    out: Path | None,
) -> int:
    """Print the scores of all metrics on a file of pairs; write them to `out` if given."""
    from decon_core.features.similarity.pair_card import PAGE_FILE, score_pairs

    with ShardProgress(sys.stderr) as progress:
        loaded = _embedders(embedders, model, key_env)
        card = score_pairs(path, embedders=loaded, seed=seed, on_step=progress.step)
    _say_card(card)
    if out:
        card.write(out)
        say(f"\npage: {out / PAGE_FILE}")
    if card.problems:
        n = len(card.problems)
        warn(f"{path}: {counted(n, 'row')} left out\n  {format_problems(card.problems)}")
    return 4 if card.problems else 0


def _embedders(names: Sequence[str], model: str | None, key_env: str | None) -> list[Embedder]:
    """Load the embedders; without names those that are installed, and print which are not."""
    from decon_core.features.similarity.embedders import PACKAGED, load_embedder

    if names:
        place = "--embedder"
        return [load_embedder(name, model=model, key_env=key_env, place=place) for name in names]
    loaded = []
    for name in PACKAGED:
        try:
            loaded.append(load_embedder(name))
        except InputError as error:
            warn(f"no column `cosine {name}`: {error.problems[0].remedy}")
    return loaded


def _say_card(card: PairCard) -> None:
    counts = card.counts()
    say(
        f"{counted(counts['n_duplicates'], 'duplicate')} and {counts['n_others']:,} other pairs, "
        f"from {counted(counts['n_originals'], 'original')}\n"
    )
    rows = [
        (
            score.metric,
            *(round(auc, 3) for auc in (score.auc, score.auc_low, score.auc_high)),
            *(round(100 * r, 1) for r in (score.recall, score.recall_low, score.recall_high)),
            score.above,
            score.n_undefined,
        )
        for score in card.scores
    ]
    say_table(_HEADS, rows)
    if card.kinds:
        say("\nAUC of each kind of pair against all pairs with the other label\n")
        kinds = [
            (
                kind["kind"],
                "duplicates" if kind["is_duplicate"] else "others",
                kind["n"],
                *(round(auc, 3) for auc in kind["auc"].values()),
            )
            for kind in card.by_kind()
        ]
        say_table(("kind", "pairs", "n", *card.values), kinds)
