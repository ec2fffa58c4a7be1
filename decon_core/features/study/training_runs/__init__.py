"""Compare the scores of models that were trained on variants of the data.

`scores` reads the results of each training run, `differences` compares them with the baseline.
"""
