"""Rules that say what a document shares with a benchmark; each its own file."""
