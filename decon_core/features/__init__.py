"""Features, one folder each: what the core can do without. `feature.py` explains them."""

# In the order in which help and pages list them.
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
)
