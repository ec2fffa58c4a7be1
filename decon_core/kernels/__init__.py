"""Compiled loops. They take arrays and numbers, and write to arrays that they are given.

Every kernel has a plain twin elsewhere that says what it must compute, and a test that holds the
two together. No file here imports another one but `jit`: numba's disk cache would not notice an
edit to a kernel that lives in another file than its caller.
"""
