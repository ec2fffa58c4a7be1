"""Runs the pipeline and Dagster's servers from the command line."""
