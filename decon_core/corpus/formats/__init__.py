"""The formats of shards: one class per format, which reads, rewrites and recognizes its files.

`shard_format.py` says how to add a format. Files with formats have a tuple `SHARD_FORMATS`; the
others here are shared by them, and `sessions.py` is a shape of JSON lines.
"""

from decon_core.corpus.formats.recognize import format_of, is_shard, known_suffixes, unknown_format
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
