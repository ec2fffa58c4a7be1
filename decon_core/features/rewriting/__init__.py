"""Items in another order or with other names, made without a model: for blends and scorecard."""

from decon_core.feature import Feature

FEATURE = Feature(name="rewriting")
