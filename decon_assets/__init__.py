"""The pipeline as Dagster assets: which inputs, when, and is the answer still valid?"""

import warnings

# Backfill policies and the mappings of the grid are what this pipeline is built on, and Dagster is
# locked to one version: a dozen warnings before every command would help nobody. By their text:
# to import their class takes a second, and not every command needs Dagster.
warnings.filterwarnings("ignore", message=r"(?s).* is currently in beta")
