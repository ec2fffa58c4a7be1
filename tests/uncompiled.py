"""Numbers of examples: fewer for kernels that run as plain Python, a hundred times as slow."""

import os

from tests.long_runs import IS_LONG

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"


def fewer(n: int) -> int:
    """That many with compiled kernels, else a tenth; five times as many in a long run."""
    n = 5 * n if IS_LONG else n
    return n if IS_COMPILED else max(n // 10, 1)
