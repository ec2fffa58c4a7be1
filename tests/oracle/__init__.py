"""Slow and simple reference implementations of the detectors, without product code."""
