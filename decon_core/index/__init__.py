"""What a scan looks for: n-grams and texts of benchmark records, weighted by frozen idf."""
