"""Runs started from the command line: registration, processes, locks, Dagster's history."""
