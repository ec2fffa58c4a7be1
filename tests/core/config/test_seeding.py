"""Random numbers by name and position, compared with SplitMix64 in whole numbers of Python."""

from hashlib import sha256

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.seeding import fractions, numbers, numbers_at

NAMES = st.text(max_size=8)
POSITIONS = st.integers(0, 2**62)


def number(name, position):
    mask = 2**64 - 1
    mixed = int(sha256(name.encode()).hexdigest()[:16], 16)
    mixed = mixed + (position + 1) * 0x9E3779B97F4A7C15 & mask
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & mask
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & mask
    return mixed ^ mixed >> 31


@given(NAMES, POSITIONS, st.integers(0, 20))
def test_prop_numbers_are_those_of_splitmix64(name, first, n):
    plain = [number(name, first + at) for at in range(n)]
    assert numbers(name, n, first=first).tolist() == plain
    assert fractions(name, n, first=first).tolist() == [(one >> 11) / 2**53 for one in plain]


@given(NAMES, st.lists(POSITIONS, max_size=20))
def test_prop_positions_may_be_in_any_order_and_stay_as_they_are(name, positions):
    given_positions = np.array(positions, np.int64)
    assert numbers_at(name, given_positions).tolist() == [number(name, at) for at in positions]
    assert given_positions.tolist() == positions
