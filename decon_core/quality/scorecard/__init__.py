"""What each rule can see: leaks of every kind planted on purpose, and marks for finding them.

The way of a planting: `items` (records as people score them), `edits` and `negatives` (what becomes
of an item), `plan` (which items, and which are held out), `corpora` (texts to plant into), `hosts`
(into documents and shards, with the truth of it), `run` (scanned, from one end to the other),
`marks` (truth against a rule's calls), `page` and `advice` (for people to read).
"""
