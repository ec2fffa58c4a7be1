"""Mixtures: filtered variants of the corpus, with a manifest that accounts for every row."""
