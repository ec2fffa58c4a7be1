"""What stands for a detector where places are found beside the scan: no score of it is a proof."""

from __future__ import annotations

from functools import cache

from decon_core.config.detector_registry import Kind, Threshold
from decon_core.detectors.detector import Detector

FOR_REVIEW = "near in meaning"  # `kind` of a place that waits for a person or a judge


class Nominator(Detector):
    """Says only that a place may be an item; a person or a judge says what it is."""

    summary = "places found outside the scan"
    threshold = Threshold(setting="", of=())  # no score of it decides
    kinds = (
        Kind(FOR_REVIEW, "its score alone does not prove a leak; a person or a judge decides"),
    )
    finds_every_place = True


@cache
def nominator(name: str) -> Nominator:
    """Return what stands for a detector of this name."""
    kind: type[Nominator] = type("Nominator", (Nominator,), {"name": name})
    return kind()
