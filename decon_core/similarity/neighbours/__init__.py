"""Paragraphs of a sample of the corpus that are nearest to benchmark items by their embeddings."""
