"""Finds shards and benchmarks in folders and writes a decon.toml for them: `decon-assets init`.

`corpus` groups shards into sources, `benchmarks` finds or writes recipes, `settings` writes the
decon.toml. Everything is derived from the first rows of each file.
"""
