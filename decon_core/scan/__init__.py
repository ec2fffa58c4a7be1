"""The scan: compares the documents of a shard with all indexed benchmarks, writes scan results."""
