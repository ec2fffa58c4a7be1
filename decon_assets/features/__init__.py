"""The assets, checks and commands of each feature."""
