"""Compare shares with thresholds, up to rounding errors."""

from __future__ import annotations

from typing import Any

# Shares closer than this are equal: 0.7 + 0.1 is 0.7999999999999999 in binary floating point but
# must reach a threshold of 0.8. Sums of a few thousand shares err by less than 1e-12, and different
# shares of texts below a million tokens differ by more than 1e-9.
TOLERANCE = 1e-9


def reaches(value: Any, threshold: Any) -> Any:
    """Return whether a share is at least a threshold, or equal to it within `TOLERANCE`."""
    return value >= threshold - TOLERANCE


def exceeds(value: Any, threshold: Any) -> Any:
    """Return whether a share is more than a threshold by more than `TOLERANCE`."""
    return value > threshold + TOLERANCE
