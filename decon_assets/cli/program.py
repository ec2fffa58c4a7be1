"""The program `decon-assets`: the command line, in a process that does nothing else."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path

# Python looks for unreachable objects each time there are so many more. A first run spends 6 % of
# its time on that with Python's default, 700, and finds hardly any. A run with nothing to do has
# more objects after the imports, and spent 6 % of its time on that with 200,000.
MORE_OBJECTS = 1_000_000


def program() -> int:
    """Run the command line; return its exit code, with which the process then ends at once.

    Python would first free every object one by one: 0.7 s after a run of the sample world. The
    system frees the memory of a process as a whole.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed the stream
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open to the end
    codes: list[int] = []
    # Functions for the end are called in reverse order: this one after those of all libraries that
    # are imported from here on. Those of what Python imports before (`sitecustomize`) are left out.
    atexit.register(_end_at_once, codes)
    gc.set_threshold(MORE_OBJECTS, *gc.get_threshold()[1:])
    # Imported late: libraries may register functions for the end when they are imported.
    from decon_assets.cli.main import main

    codes.append(main())
    return codes[0]


def _end_at_once(codes: list[int]) -> None:
    """End the process with the code of the command; without one, let Python report the error."""
    if not codes:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # a full disk or a closed stream: Python reports it at its end
        return
    os._exit(codes[0])
