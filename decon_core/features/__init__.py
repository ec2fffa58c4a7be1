"""Optional features, which the core does not need, one folder each. `feature.py` explains them."""

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
