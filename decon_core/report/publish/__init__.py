"""What a report says to others: to programs, readers of a dataset card, a build that may fail.

summary.py reads the database; card.py, limits.py and junit.py read the summary alone.
"""
