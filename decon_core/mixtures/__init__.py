"""Corpus and calls to mixtures: every declared variant of the data, with its account."""
