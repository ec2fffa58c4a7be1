"""Shards in, tiles out: every document is compared with every indexed benchmark."""
