"""Aligns the words of an item with a part of a document, and reports what was changed."""
