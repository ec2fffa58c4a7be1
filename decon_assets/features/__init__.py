"""For each feature its assets, checks and commands."""
