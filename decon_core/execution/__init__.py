"""Runs jobs over shards: in this process, in other local processes, or on a cluster."""
