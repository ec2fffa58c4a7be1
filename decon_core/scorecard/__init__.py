"""What each rule can see: leaks of every kind planted on purpose, and marks for finding them.

The way of a planting: `items` (records as people score them), `edits` and `negatives` (what becomes
of an item), `plan` (which items, and which are held out), `hosts` (into documents and shards, with
the truth of it), `marks` (truth against a rule's calls), `page` (for people to read).
"""
