"""What was found, decided and removed: from tiles and manifests to one DuckDB file.

tables.py says what stands in it, gather.py reads it out of the store, evidence.py the texts behind
it out of the corpus, database.py writes it down, build.py does all of this in order. Everything
that shows a report reads the database alone.
"""
