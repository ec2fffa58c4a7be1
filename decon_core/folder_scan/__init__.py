"""Scan a folder of shards for benchmarks in one call, without Dagster: `decon-assets scan`."""
