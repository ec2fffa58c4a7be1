"""Matches to leaks: thresholds, common n-grams, verdicts."""
