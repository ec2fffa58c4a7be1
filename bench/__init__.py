"""Rates and memory, measured: stages of our own, whole scans, and other tools on the same files."""
