"""Checks that results can be trusted: self-tests of scans, damaged files, faults in the store."""
