"""Publish a report: JSON summary, dataset card, limits for CI, and JUnit XML.

summary.py reads the database; card.py and limits.py read only the summary.
"""
