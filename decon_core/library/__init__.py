"""The Python API: compare texts in memory, or the shards of a folder, with benchmarks.

`decon_core/__init__.py` lists its public names, and docs/library.md describes them; `scan.py` is
the command `decon-assets scan`. Both index by `stored_index.py`, and decide matches by its reader.
"""
