"""Checks that results can be trusted: self-tests, damaged files, visibility of items."""
