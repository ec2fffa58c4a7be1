"""Rewriting has no assets: other features use it."""
