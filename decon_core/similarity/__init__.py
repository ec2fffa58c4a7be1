"""How alike two texts are: metrics, embeddings, neighbours, judged pairs, calibration."""
