"""Assets, one file per stage. An asset loads inputs, calls the core and reports metadata.

A new asset is a function under `stage` in a file here (`stage.py`), or in the file of a feature in
`features/`. It is not listed anywhere else.

The assets are in `inputs.py`, `benchmarks.py`, `scanning.py` and `products.py`; the other files are
shared by them.
"""
