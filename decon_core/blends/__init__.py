"""Blends: weighted streams of documents from a mixture, optionally with inserted test items."""
