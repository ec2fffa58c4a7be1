"""The library: compare texts in memory with benchmarks, as a scan does with shards.

`decon_core/__init__.py` lists its public names; docs/library.md describes them.
"""
