"""Compiled loops. They take arrays and numbers, and write to arrays passed by the caller.

Every kernel has a simple reference implementation elsewhere, and a test that compares the two. What
several of them need is in `arrays`, `hashing`, `instructions` and `utf8`.
"""
