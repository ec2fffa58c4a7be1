"""Features, in the order in which help and pages list them."""

FEATURES = ("game", "haystack")
