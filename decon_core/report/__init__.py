"""The report: matches, findings and removals as one DuckDB file.

tables.py declares the tables, gather.py fills them from the store, matched_texts.py and excerpts.py
add texts of the corpus, database.py writes the file, and build.py runs these steps. The HTML page,
the card, the summary and the review read only the database.
"""
