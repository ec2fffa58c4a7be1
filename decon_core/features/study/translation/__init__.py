"""BLEU and chrF of translations.

`metrics` counts what a segment adds to the score of a test set, by sacrebleu, `segments` has the
counts of a training run, `bootstrap` compares two training runs on the same segments.
"""
