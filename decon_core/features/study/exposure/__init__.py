"""Compare training runs on the items that they were exposed to with those that they were not.

`labels` says how each item was exposed: planted in the training run's blend, held back, or leaked.
`effects` compares each training run with the baseline on the same items or segments, by label.
"""
