"""Read and write the reports of AI2's decon, the reference implementation.

read.py reads its reports into a report database, lines.py checks their lines, marks.py parses the
marks in their texts; write.py writes such reports from a store, decon_jsonl.py one file of them.
Values that the format does not have are null in the database.
"""
