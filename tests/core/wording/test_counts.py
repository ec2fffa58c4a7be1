"""Numbers in sentences."""

import pytest

from decon_core.wording.counts import counted, have, hold, size


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 shards"), (1, "1 shard"), (2, "2 shards"), (1200, "1,200 shards")]
)
def test_the_noun_agrees_with_its_number(n, text):
    assert counted(n, "shard") == text


def test_the_verb_agrees_with_its_number():
    assert [hold(0), hold(1), hold(2)] == ["hold", "holds", "hold"]
    assert [have(0), have(1), have(2)] == ["have", "has", "have"]


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (2_500_000, "2.5 MB"),
        (10**12, "1.0 TB"),
    ],
)
def test_a_size_has_the_largest_unit_that_fits(n_bytes, text):
    assert size(n_bytes) == text
