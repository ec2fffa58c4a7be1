"""Runs jobs over shards: in this process, in others of this machine, or by a feature."""
