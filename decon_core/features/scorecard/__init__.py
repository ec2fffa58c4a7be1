"""The scorecard: plant leaks of every kind, and measure what each detector finds.

The steps: `items` (records as items), `edits` and `negatives` (how an item is changed), `plan`
(which items are planted, which are held out), `corpora` (texts to plant into), `planted_shards`
(write documents, shards and the truth), `run` (all steps, with the scan), `marks` (compare truth
and findings), `page` (the report).
"""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="scorecard",
    requires=("rewriting", "similarity"),
    jobs=("scorecard_job",),
    folders={"scorecard": "summary.json"},
    commands={
        "scorecard": Command(
            function="command:scorecard_command",
            group="Without Dagster",
            about="measure how many planted leaks each detector finds",
            examples=("scorecard --out card         recall of each detector on planted leaks",),
        )
    },
)
