"""Compares two reports: leaks that only one report has, and text that only one report covers.

sides.py makes a report database of each input (or of one scan under two policies), differences.py
with differences.sql compares two databases, page.py formats the tables.
"""
