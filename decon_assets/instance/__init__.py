"""The Dagster home: its folder, settings, locks and databases."""
