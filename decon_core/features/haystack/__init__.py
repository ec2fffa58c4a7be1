"""Test items planted among documents: how high quality scorers rank them."""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="haystack",
    requires=("blends", "endpoints", "similarity"),
    tables={"haystack": "decon_core.features.haystack.settings:Haystack"},
    products={"haystack": "decon_core.features.haystack.product:is_missing"},
    folders={"haystack": "haystack.json"},
    commands={
        "haystack": Command(
            function="command:haystack_command",
            group="Studies",
            about="rank test items among documents with quality scorers",
            examples=(
                "haystack --out study         where quality filters rank planted test items",
            ),
            reads_store=True,
        )
    },
    page="decon_core.features.haystack.product:haystack_on_page",
)
