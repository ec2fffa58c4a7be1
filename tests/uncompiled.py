"""Smaller tests for kernels that run as plain Python, a hundred times as slow (`make test`)."""

import os

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"


def fewer(n: int) -> int:
    """That many with compiled kernels, else a tenth."""
    return n if IS_COMPILED else max(n // 10, 1)
