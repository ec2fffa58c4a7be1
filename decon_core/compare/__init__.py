"""Two reports side by side: what only one of them calls a leak, and what only one could have seen.

sides.py brings what people have into the form of a report's database, policies.py judges one scan
by two policies, differences.py with differences.sql compares two databases, page.py shows it.
"""
