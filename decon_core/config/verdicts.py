"""The possible verdicts of a review, and their default file."""

LEAK = "leak"
CLEARING = ("template", "common source")  # may mark a match as no leak
VERDICTS = (LEAK, *CLEARING, "unsure")
TAKEN_BACK = "none"
DEFAULT_FILE = "verdicts.jsonl"
