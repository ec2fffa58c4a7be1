"""Cancels remote jobs when this process is interrupted, terminated or ends for another reason."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cancelled_at_end(cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` when the block ends, and at the end of the process if it does not.

    An exception in the loop over finished jobs does not end the iterator that runs them. SIGTERM
    ends the process like `sys.exit`, unless another handler is set, such as that of Dagster.
    """
    atexit.register(cancel)
    is_main = threading.current_thread() is threading.main_thread()
    sets_handler = is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if sets_handler:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        if sets_handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        atexit.unregister(cancel)
        cancel()
