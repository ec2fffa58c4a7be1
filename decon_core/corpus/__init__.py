"""Find shards, group them into packs, and read their documents.

A row that does not match its source becomes an `Unreadable` with its position and the reason; a
truncated or damaged shard raises. Rows keep their number and, in line formats, their bytes, so that
an unchanged document is written back byte by byte.

shard_file.py opens a shard and hashes what is read, lines.py and tables.py split it into rows,
documents.py turns rows into documents, and shards.py combines them; batches.py is the fast version
for scans. first_rows.py and shapes.py detect the text fields from the first rows of a file.
"""
