"""Decides which matches are leaks: thresholds, common n-grams, verdicts."""
