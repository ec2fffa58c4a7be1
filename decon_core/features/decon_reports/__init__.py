"""Read and write the reports of AI2's decon, the reference implementation.

Values that the format does not have are null in the database.
"""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="decon_reports",
    commands={
        "reference": Command(
            function="reference_group",
            group="Without Dagster",
            about="read reports of AI2's decon",
        )
    },
    shard_report="decon_core.features.decon_reports.decon_jsonl:write_report",
)
