"""Is this text contaminated, and what is left when it is gone?"""
