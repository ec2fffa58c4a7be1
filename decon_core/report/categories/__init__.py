"""Group items by category, and give leak rates by category.

In order of use: `groupings` (files that map values of a column to categories, the options of a
command, and the category of an item), `rates` (leak rates by category, with averages).
"""
