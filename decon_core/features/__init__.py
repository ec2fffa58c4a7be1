"""Features, in the order in which help and pages list them."""

FEATURES = ("neighbours", "results", "gap", "study", "game", "haystack", "scorecard")
