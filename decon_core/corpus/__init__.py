"""Find shards, group them into packs, and read their documents.

A row that does not match its source becomes an `Unreadable` with its position and the reason; a
truncated or damaged shard raises. Rows keep their number and, in line formats, their bytes, so that
an unchanged document is written back byte by byte.

packs.py finds shards and groups them. shards.py opens a shard, hashes what is read, and leaves the
rest to its format (formats/), which splits it into parts; documents.py turns rows into documents.
first_rows.py and shapes.py detect the text fields from the first rows of a file.
"""
