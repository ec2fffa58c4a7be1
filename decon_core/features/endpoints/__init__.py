"""Clients of model endpoints: chat requests within limits, and JSON in batches."""

from decon_core.feature import Feature

FEATURE = Feature(name="endpoints")
