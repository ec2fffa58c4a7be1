"""Compares two reports: leaks in only one of them, and text that only one of them covers.

sides.py makes a report database of each input (or of one scan under two policies), differences.py
with differences.sql compares two databases, page.py formats the tables.
"""
