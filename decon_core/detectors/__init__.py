"""The detectors, one per file: how each finds benchmark text in documents."""
