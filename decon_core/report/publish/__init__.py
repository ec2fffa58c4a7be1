"""Publish a report: JSON summary, dataset card, limits for CI, and JUnit XML.

summary.py reads the database; limits.py reads only the summary.
"""
