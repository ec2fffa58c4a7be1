"""Canonical text, tokenizers and the word cache, with offsets back to the original text."""
