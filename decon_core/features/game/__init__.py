"""The contamination game: `model` solves it, `page` shows the solution as tables and figures."""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="game",
    commands={
        "game": Command(
            function="game",
            group="Studies",
            about="solve the contamination game: the best level, and the penalty that deters",
        )
    },
)
