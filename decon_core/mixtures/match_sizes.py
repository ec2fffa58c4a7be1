"""Match documents by size: select as many as wanted from a pool, of similar sizes and total.

The pool may hold 200 documents for each one wanted. Only the sorted sizes are as large as the pool;
all other arrays are as large as the number wanted.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Integers

_MOST_SWAPS = 50


def matching(wanted: Integers, pool: Integers) -> Integers:
    """Select pool elements of about the wanted sizes, with nearly the same sum.

    Returns indexes into the pool, each once; all of them if the pool is not larger than wanted.
    """
    if wanted.size >= pool.size:
        return np.arange(pool.size)
    order = np.argsort(pool, kind="stable")
    sizes = pool[order]
    taken = _nearest(sizes, np.sort(wanted)[::-1])
    _even_out(sizes, taken, int(wanted.sum()))
    return order[np.sort(taken)]


def _nearest(sizes: Integers, wanted: Integers) -> Integers:
    """For each wanted size, in descending order, take the free place with the nearest size.

    Of equal sizes the first place is taken. Taken places form runs, and a size can only meet the
    lowest run: it is not larger than the sizes before, and a place below a run is taken only if all
    places between are taken.
    """
    taken = np.empty(wanted.size, np.int64)
    runs = [(sizes.size, sizes.size)]  # half-open ranges of taken places, the lowest last
    for number, at in enumerate(np.searchsorted(sizes, wanted).tolist()):
        if at < runs[-1][0]:
            runs.append((at, at))
        start, stop = runs.pop()
        if start > 0 and stop < sizes.size:
            is_above = sizes[stop] - wanted[number] <= wanted[number] - sizes[start - 1]
        else:
            is_above = start == 0
        if is_above:
            taken[number], stop = stop, stop + 1
        else:
            taken[number] = start = start - 1
        if runs and runs[-1][0] == stop:
            stop = runs.pop()[1]
        runs.append((start, stop))
    return taken


def _even_out(sizes: Integers, taken: Integers, total: int) -> None:
    """Swap taken places for free ones, in place, until their sizes add up to the total."""
    missing = total - int(sizes[taken].sum())
    for _ in range(_MOST_SWAPS):
        swap = _best_swap(sizes, taken, missing) if missing else None
        if swap is None:
            return
        number, place = swap
        missing -= int(sizes[place] - sizes[taken[number]])
        taken[number] = place


def _best_swap(sizes: Integers, taken: Integers, missing: int) -> tuple[int, int] | None:
    """Return the swap that leaves the smallest difference: index in `taken`, and the free place.

    None if no swap makes the difference smaller.
    """
    at = np.searchsorted(sizes, sizes[taken] + missing)
    places = np.stack(_free_around(taken, at), axis=1)
    is_there = (places >= 0) & (places < sizes.size)
    gains = sizes[np.where(is_there, places, 0)] - sizes[taken][:, np.newaxis]
    rests = np.where(is_there, np.abs(missing - gains), abs(missing))
    best = int(rests.argmin())
    if rests.flat[best] >= abs(missing):
        return None
    return best // 2, int(places.flat[best])


def _free_around(taken: Integers, at: Integers) -> tuple[Integers, Integers]:
    """Return the last free place below each position, and the first free one at or above it."""
    places = np.sort(taken)
    (gaps,) = np.nonzero(np.diff(places) > 1)
    starts = places[np.concatenate([[0], gaps + 1])]
    stops = places[np.concatenate([gaps, [places.size - 1]])] + 1

    def past(place: Integers, beside: Integers) -> Integers:
        run = np.searchsorted(starts, place, side="right") - 1
        return np.where((run >= 0) & (place < stops[run]), beside[run], place)

    return past(at - 1, starts - 1), past(at, stops)
