"""Runs jobs over shards: in this process, in others of this machine, or by an engine of a feature."""
