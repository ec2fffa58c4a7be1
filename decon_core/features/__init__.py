"""Optional features, one folder each. The core does not need them; see `feature.py`."""

# Help and pages list features in this order.
FEATURES = (
    "clusters",
    "endpoints",
    "rewriting",
    "judge",
    "similarity",
    "blends",
    "neighbours",
    "results",
    "gap",
    "study",
    "game",
    "haystack",
    "scorecard",
    "decon_reports",
    "importers",
)
