"""How alike two texts are: metrics, embeddings, judged pairs, calibration."""
