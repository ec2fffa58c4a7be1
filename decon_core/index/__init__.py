"""The search index of a scan: n-grams and texts of benchmark records, with their weights."""
