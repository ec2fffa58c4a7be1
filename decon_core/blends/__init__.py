"""Streams of documents out of mixtures: drawn by weights, contaminated on purpose, in parts."""
