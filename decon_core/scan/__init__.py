"""The scan: compares every document of a shard with every indexed benchmark and writes tiles."""
