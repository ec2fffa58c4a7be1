"""Aligns the words of an item with a place of a document, and says what was copied or changed."""
