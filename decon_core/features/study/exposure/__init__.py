"""Compare arms on the items that they were exposed to with those that they were not.

`labels` says how each item was exposed: planted in the arm's blend, held back, or leaked.
`effects` compares each arm with the baseline on the same items or segments, by label.
"""
