"""`decon-assets warm`: compile all kernels before the first scan."""

from __future__ import annotations

import os
import time
from pathlib import Path

from decon_assets.terminal.options import flag, optional
from decon_assets.terminal.output import say, warn
from decon_core.wording import counted

_VARIABLE = "NUMBA_CACHE_DIR"
_NOT_WRITABLE = f"the cache cannot be written: choose a folder with --cache or ${_VARIABLE}"


def warm(
    *,
    cache: Path | None = optional(
        f"folder for the machine code (default: ${_VARIABLE}, otherwise next to the installed "
        "package, otherwise the user's cache folder)",
        "DIR",
    ),
    small: bool = flag(
        "--small", "compile only what a first scan of a small folder needs (a few seconds)"
    ),
) -> int:
    """Compile the search kernels of all detectors and cache them (half a minute on two cores).

    Later commands load the compiled kernels. Without them, a scan of a small folder compiles what
    it needs (about 5 s), and a scan of a large folder compiles everything before it starts. A wheel
    built by `make wheel` already contains the machine code. Otherwise, run this command once when
    you build an image or set up a node:

      RUN NUMBA_CACHE_DIR=/opt/kernels decon-assets warm
      ENV NUMBA_CACHE_DIR=/opt/kernels

    The machine code is valid only for the installed versions of this package, Python and Numba. On
    x86, it runs on every processor with AVX2 (x86-64-v3). On other machines, and after an update,
    the kernels are compiled again. The folder may be read-only for the other commands: they then
    copy the machine code to a folder that they can write to. Let only trusted users write to the
    folder: whoever starts one of these commands runs the code in it.

    Examples:
      decon-assets warm
      decon-assets warm --small
      decon-assets warm --cache /opt/kernels

    Exit codes: 0 done; 1 no folder is writable.
    """
    from decon_core.library.warm import warm as compile_all

    if cache:
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError:
            warn(_NOT_WRITABLE)
            return 1
        os.environ[_VARIABLE] = str(cache.resolve())
    started = time.monotonic()
    done = compile_all(lambda name: say(f"compiling: {name}"), small=small)
    if done is None or (cache and not done.folder.is_relative_to(cache.resolve())):
        warn(_NOT_WRITABLE)
        return 1
    seconds = time.monotonic() - started
    n_new = counted(done.n_new, "kernel")
    say(f"{n_new} compiled in {seconds:.0f} s, {done.n_before:,} already cached")
    say(f"cache: {done.folder}")
    return 0
