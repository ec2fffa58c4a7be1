"""`decon-assets game`: solve the contamination game for some parameters."""

from __future__ import annotations

from pathlib import Path

from decon_assets.terminal.options import optional, repeatable
from decon_assets.terminal.output import say, say_table


def game(
    *,
    settings: list[str] = repeatable(
        "set a parameter: gain, cost, entry_cost, penalty or steepness", "NAME=NUMBER", name="--set"
    ),
    out: Path | None = optional("write game.json, game.csv and two figures to this folder", "DIR"),
) -> int:
    """Compute how much benchmark data a developer would train on if only the payoff mattered.

    Compared with no contamination, the payoff of a contamination level c between 0 and 1 is

      gain * c  -  cost * c  -  penalty * c^steepness  -  entry_cost

    where c^steepness is the probability of detection. The choices of other developers shift the
    payoff of every level equally, so all developers choose the same level. docs/studies/game.md
    explains the model.

    The command prints the best level and why it is the best, the probability of detection at that
    level, the gain of a developer who contaminates alone, the payoff that remains if all developers
    contaminate, and the smallest penalty that deters all of them. With --out, figures show the
    payoff by level (game.svg), and the best level by penalty and gain (game_by_penalty.svg).

    Default parameters: gain 1, cost 0.3, entry_cost 0.05, penalty 1, steepness 2.

    Examples:
      decon-assets game
      decon-assets game --set penalty=3 --set steepness=4 --out game
      decon-assets game --set gain=0.2        contamination does not pay at any penalty

    Exit codes: 0 done; 2 invalid input.
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
