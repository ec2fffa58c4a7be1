"""Rewriting has no assets of its own: other features use it."""
