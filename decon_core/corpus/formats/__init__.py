"""The formats of shards: one class per format, which reads, rewrites and recognizes its files.

A new format is a subclass of `ShardFormat` (or of `LineFormat`, if its rows are lines) in a file of
its own, which lists its instances in `SHARD_FORMATS`.
"""

from decon_core.corpus.formats.recognize import (
    format_of,
    is_shard,
    known_suffixes,
    unknown_format,
)
from decon_core.corpus.formats.shard_format import Changes, Decide, Ids, Part, ShardFormat

__all__ = [
    "Changes",
    "Decide",
    "Ids",
    "Part",
    "ShardFormat",
    "format_of",
    "is_shard",
    "known_suffixes",
    "unknown_format",
]
