"""Scores of models, which the features `gap` and `study` read: no asset, check or command."""
