"""`decon-assets game`: solve the contamination game for some parameters."""

from __future__ import annotations

from pathlib import Path

from decon_assets.terminal.options import optional, repeatable
from decon_assets.terminal.output import say, say_table


def game(
    *,
    settings: list[str] = repeatable(
        "a parameter: gain, cost, entry_cost, penalty or steepness", "NAME=NUMBER", name="--set"
    ),
    out: Path | None = optional("write game.json, game.csv and game.svg", "DIR"),
) -> int:
    """Compute how much benchmark data a model developer would train on, if only payoff counted.

    The payoff of the contamination level c, from 0 to 1, over that of no contamination is

      gain * c  -  cost * c  -  penalty * c^steepness  -  entry_cost

    where c^steepness is the probability of detection. What the others do shifts the payoff of every
    level alike, so all developers choose the same level. docs/studies/game.md explains the model.

    It prints the best level and the reason, the probability of its detection, the gain of a
    developer who contaminates alone, how much of it remains when all do, and the smallest penalty
    that deters everybody. The picture in OUT shows the payoff by level, and the best level by
    penalty and gain.

    Parameters: gain 1, cost 0.3, entry_cost 0.05, penalty 1, steepness 2 unless they are set.

    Examples:
      decon-assets game
      decon-assets game --set penalty=3 --set steepness=4 --out game
      decon-assets game --set gain=0.2                  does not pay at any penalty

    Exit codes: 0 done, 2 an input is wrong.
    """
    from decon_core.features.game import page
    from decon_core.features.game.model import game_from, solve

    chosen = game_from(settings)
    solution = solve(chosen)
    say_table(
        ["parameter", "value"], [(name, f"{value:g}") for name, value in vars(chosen).items()]
    )
    say()
    say_table(page.HEADS, [page.line(solution)])
    say(f"\n{page.CASES[solution.case]}")
    if out:
        page.write(chosen, out)
        say(f"\n{out / page.PICTURE}")
    return 0
