"""Group items by category, and give leak rates by category.

In order of use: `mapping` (files that map values of a column to categories), `groupings` (the
options of a command, and the category of an item), `rates` (leak rates by category, with averages).
"""
