"""The pipeline as Dagster assets: assets, checks, partitions, jobs, the sensor, the CLI."""

import warnings

# Backfill policies and multi-partition mappings are in beta, and Dagster is locked to one version:
# a dozen such warnings per command have no use. They are filtered by text: importing their class
# takes a second, and not every command needs Dagster.
warnings.filterwarnings("ignore", message=r"(?s).* is currently in beta")
