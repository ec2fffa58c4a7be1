"""Compiled loops. They take arrays and numbers, and write to arrays passed by the caller.

Every kernel has a simple reference implementation elsewhere, and a test that compares the two. The
files here import none of each other but `jit`: numba's disk cache does not notice an edit to a
kernel in another file than its caller.
"""
