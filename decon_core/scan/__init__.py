"""Compares the documents of a shard with all indexed benchmarks, and writes scan results."""
