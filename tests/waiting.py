"""Wait for what another process does.

Looks are counted, not seconds: clocks may jump, and a busy machine gives both processes less time.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

N_LOOKS = 3_000


def wait_until(
    is_so: Callable[[], object],
    process: subprocess.Popen[str] | subprocess.Popen[bytes] | None = None,
    *,
    n_looks: int = N_LOOKS,
    pause: float = 0.1,
) -> bool:
    """Look until something is so; return False if it is not, or if the process ended before."""
    for _ in range(n_looks):
        if is_so():
            return True
        if process is not None and process.poll() is not None:
            return bool(is_so())
        time.sleep(pause)
    return False
