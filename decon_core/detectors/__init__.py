"""The detectors, one per file: how each finds benchmark text in documents.

A new one is a file here, and its name in `BUILT_IN` (`config/detector_registry.py`). `detector.py`
is the interface; `shared_runs.py` and `visibility.py` are shared.
"""
