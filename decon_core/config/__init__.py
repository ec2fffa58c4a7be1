"""Reads and validates decon.toml: sources, policy, mixtures, blends, report.

A new key is a field with a docstring of the model of its table, here or in the `settings.py` of a
feature. What follows from it:

- `python -m decon_core.config.json_schema` writes the JSON schema again.
- `decon-assets settings` and the site list it; the table's page of `docs/` describes it.
- A field of `Policy` is part of the fingerprint of scan results, so that everything is scanned
  again unless it is a threshold or among `_DECISION_FIELDS`. One that a detector names among its
  `scan_settings` counts only where that is chosen; `_INDEX_FIELDS` has what changes the index.
- A field of `Mixture` or `Blend` is part of its fingerprint, by `to_json`: all mixtures are built
  again, unless `to_json` leaves the key out where it has no effect.
"""

# The place of decon.toml, for commands that only name it.
CONFIG_VARIABLE = "DECON_CONFIG"  # environment variable with the path, for Dagster's processes
DEFAULT_CONFIG = "decon.toml"
