"""The plain twins of the detectors: slow, obvious, and without code of the product."""
