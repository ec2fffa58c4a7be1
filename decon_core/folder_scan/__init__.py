"""Scan a folder for benchmarks in one call, without Dagster: `decon-assets scan`."""
