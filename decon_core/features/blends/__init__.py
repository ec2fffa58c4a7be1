"""Blends: weighted streams of documents from a mixture, optionally with inserted test items.

`settings` reads [[blend]], `plan` orders documents and items, `write` and `build` make the files,
`verify` scans them, `compare` finds where two part. `rewriting` and `rewordings` have items in
other words.
"""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="blends",
    requires=("endpoints", "rewriting", "similarity"),
    tables={
        "blend": "decon_core.features.blends.settings:Blends",
        "rewording": "decon_core.features.blends.rewordings:Rewording",
    },
    products={"blend": "decon_core.features.blends.product:missing_blends"},
    files="decon_core.features.blends.rewordings:rewording_files",
    columns={"blend": "decon_core.features.blends.schemas:BLENDED"},
    partitions={"blend": "decon_core.features.blends.product:blend_names"},
    folders={"blends": "manifests/*/manifest.json"},
    commands={
        "blend": Command(
            function="command:blend_group",
            group="Corpora",
            about="list, plan, verify or compare weighted streams of documents",
            examples=(
                "blend plan garlic            how many passes over each source a blend needs",
            ),
            reads_store=True,
        )
    },
    report="decon_core.features.blends.product:report_addition",
    report_tables={"blend_items": "decon_core.features.blends.schemas:BLEND_ITEMS"},
    page="decon_core.features.blends.product:blends_on_page",
    why={"blends": "decon_core.features.blends.product:in_blends"},
)
