"""The formats of shards: one class per format, which reads, rewrites and recognizes its files.

A new format is a subclass of `ShardFormat` (or of `LineFormat`, if its rows are lines) in a file of
its own, which lists its instances in `SHARD_FORMATS`.
"""

from importlib import import_module
from pkgutil import iter_modules

from decon_core.corpus.formats.recognize import (
    FORMATS,
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

for _name in sorted(module.name for module in iter_modules(__path__)):
    for _format in getattr(import_module(f"{__name__}.{_name}"), "SHARD_FORMATS", ()):
        FORMATS.update(dict.fromkeys(_format.suffixes, _format))
