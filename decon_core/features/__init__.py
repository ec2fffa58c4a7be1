"""Features, in the order in which help and pages list them."""

FEATURES = ("results", "gap", "study", "game", "haystack", "scorecard")
