"""Finds shards, groups them into packs, and reads their documents.

A row that does not match its source becomes an `Unreadable` with its position and the reason; a
truncated or damaged shard raises. An unchanged document is written back byte by byte.
"""
