"""The scorecard: plant leaks of every kind, and measure what each detector finds.

The steps: `items` (records as items), `edits` and `negatives` (how an item is changed), `plan`
(which items are planted, which are held out), `corpora` (texts to plant into), `planted_shards`
(write documents, shards and the truth), `run` (all steps, with the scan), `marks` (compare truth
and calls), `page` and `picture` (the report).
"""
