"""Kernels of the `code` detector: tokens of programs, and the windows that hold an item's."""
