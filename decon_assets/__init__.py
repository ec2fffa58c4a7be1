"""The pipeline as Dagster assets: which inputs, when, and is the answer still valid?"""

import warnings

from dagster import BetaWarning

# Backfill policies and the mappings of the grid are what this pipeline is built on, and Dagster is
# locked to one version: a dozen warnings before every command would help nobody.
warnings.filterwarnings("ignore", category=BetaWarning)
