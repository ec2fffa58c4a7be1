"""Compare the scores of models on leaked and on clean items.

`account` gathers scores by verdict of the items, `page` writes the tables and files.
"""
