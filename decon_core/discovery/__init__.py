"""What lies in folders that nobody has described yet: shards and benchmarks, by their first rows.

`corpus` groups shards into sources, `benchmarks` finds recipes or writes them, and `settings` says
all of it as a decon.toml. Nothing is claimed of rows that nobody looked at.
"""
