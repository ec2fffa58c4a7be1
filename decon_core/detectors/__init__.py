"""The detectors, which find benchmark text in documents. Each detector is one file or folder.

A new one is a file here, and its name in `BUILT_IN` (`config/detector_registry.py`). `detector.py`
is the interface; `shared_runs.py` and `visibility.py` are shared.
"""
