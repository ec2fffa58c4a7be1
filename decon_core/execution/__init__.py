"""Runs jobs over shards: in this process, in processes of this machine, on Slurm, or on Ray."""
