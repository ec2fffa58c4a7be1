"""Compare the scores of models on leaked and on clean items.

`account` gathers scores by verdict of the items, `page` writes the tables and files.
"""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="gap",
    requires=("results",),
    commands={
        "gap": Command(
            function="gap",
            group="Results",
            about="compare model scores on leaked and on clean items",
            examples=("gap --results samples/       model scores on leaked and on clean items",),
            reads_store=True,
        )
    },
)
