"""Runs jobs over shards: in this process, in other local processes, or in a feature's engine."""
