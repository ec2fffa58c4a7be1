"""How alike two texts are: metrics, embeddings, and a card of metrics on labelled pairs."""

from decon_core.feature import Feature

FEATURE = Feature(name="similarity", requires=("endpoints",))
