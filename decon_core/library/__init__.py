"""The Python API: search texts in memory, or the shards of a folder, for benchmark items.

`decon_core/__init__.py` lists its public names, and docs/library.md describes them; `scan.py` is
the command `decon-assets scan`. Both index by `stored_index.py`, and decide matches by its reader.
"""
