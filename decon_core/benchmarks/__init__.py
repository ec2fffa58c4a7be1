"""Turns benchmark rows into normalized records: recipes, readers, a catalog of public benchmarks.

`recipe` defines which fields to use, `texts` finds prompts and answers in a row, `normalize`
the records of all rows; `normalized` and `folder` read rows that are already records.
"""
