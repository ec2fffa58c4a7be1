"""Publish a report: JSON summary, dataset card, limits for CI, JUnit XML, and drift of leak rates.

summary.py and drift.py read the database; card.py and limits.py read only the summary.
"""
