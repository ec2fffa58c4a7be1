"""BLEU and chrF of translations.

`metrics` counts what a segment adds to the score of a test set, by sacrebleu, `segments` has the
counts of an arm, `bootstrap` compares two arms on the same segments.
"""
