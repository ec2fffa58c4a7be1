"""Publish a report: JSON summary, dataset card, limits for CI, JUnit XML, and figures.

summary.py reads the database; card.py and limits.py read only the summary.
"""
