"""The formats of shards: one class per format, which reads, rewrites and recognizes its files.

A new format is a subclass of `ShardFormat` (or of `LineFormat`, if its rows are lines) in a file of
its own, registered below.
"""

from decon_core.corpus.formats.arrow import Arrow
from decon_core.corpus.formats.delimited import Delimited
from decon_core.corpus.formats.json_documents import Json
from decon_core.corpus.formats.json_lines import JsonLines
from decon_core.corpus.formats.parquet import Parquet
from decon_core.corpus.formats.recognize import (
    FORMATS,
    format_of,
    is_shard,
    known_suffixes,
    unknown_format,
)
from decon_core.corpus.formats.shard_format import Changes, Decide, Ids, Part, ShardFormat
from decon_core.corpus.formats.webdataset import WebDataset

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

_CSV = Delimited(".csv", ",", has_quotes=True)
_TSV = Delimited(".tsv", "\t", has_quotes=False)
for _format in (JsonLines(), Json(), Parquet(), Arrow(), _CSV, _TSV, WebDataset()):
    FORMATS.update(dict.fromkeys(_format.suffixes, _format))
