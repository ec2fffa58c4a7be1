"""Aligns the words of an item with a place in a document, and reports what was changed."""
