"""Shards in, documents out. Nothing is guessed, and nothing that cannot be read goes unseen.

A row that is not what the source says it is becomes an `Unreadable` with its place and the reason;
a shard that breaks off or cannot be decompressed raises. Rows keep their number and, in line
formats, their bytes, so that an untouched document can be written back as it was.

shard_file.py opens a shard and hashes what is read of it, lines.py and tables.py make rows of it,
documents.py makes documents of the rows; shards.py does all of this in order. first_rows.py and
shapes.py look at the beginning of a file to tell which of its fields hold text.
"""
