"""The draw of whole shards: by seed and name, nested, each with the same probability."""

from collections import Counter

import pytest

from decon_core.corpus.sample import ShardSample
from decon_core.errors import InputError

NAMES = [f"web/part-{number:05}.parquet" for number in range(40)]


def test_a_draw_depends_on_the_names_alone_and_a_larger_one_contains_it():
    drawn = ShardSample(n_shards=8, seed=3).draw(NAMES)
    assert len(drawn) == 8
    assert ShardSample(n_shards=8, seed=3).draw(NAMES[::-1]) == drawn
    assert ShardSample(n_shards=8, seed=4).draw(NAMES) != drawn
    assert drawn < ShardSample(n_shards=9, seed=3).draw(NAMES)
    without = [name for name in NAMES if name in drawn or name != NAMES[0]]
    assert ShardSample(n_shards=8, seed=3).draw(without) == drawn


def test_every_shard_is_drawn_equally_often():
    counts = Counter(
        name for seed in range(2000) for name in ShardSample(n_shards=8, seed=seed).draw(NAMES)
    )
    assert sum(counts.values()) == 16_000
    assert all(320 <= counts[name] <= 480 for name in NAMES)  # 400, and 4.5 standard deviations


@pytest.mark.parametrize("n", [40, 41])
def test_a_corpus_of_no_more_shards_is_refused_with_what_to_use_instead(n):
    with pytest.raises(InputError, match=r"only 40 shards.*Omit --sample.*use --sample 1%"):
        ShardSample(n_shards=n).draw(NAMES)
