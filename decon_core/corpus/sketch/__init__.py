"""The sketch of a corpus: for blocks of documents, a filter of all their n-grams.

It proves that most blocks contain no match of a benchmark, so that only the others are read.
"""
