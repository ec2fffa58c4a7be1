"""Read and write the reports of AI2's decon, the reference implementation.

Values that the format does not have are null in the database.
"""
