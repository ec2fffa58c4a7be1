"""The verdicts that a person can give, and the file that they are written to by default."""

LEAK = "leak"
CLEARING = ("template", "common source")  # they can take a match out of the leaks
VERDICTS = (LEAK, *CLEARING, "unsure")
TAKEN_BACK = "none"
DEFAULT_FILE = "verdicts.jsonl"
