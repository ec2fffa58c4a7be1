"""The highest threshold that a match reaches, as a leak or a candidate, against trying all."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.detector_registry import BUILT_IN, kinds
from decon_core.config.policy import Policy
from decon_core.decisions.judging import highest_thresholds, judge
from decon_core.schemas import MATCHES

SETTING = {
    "decon": "contamination_score_threshold",
    "aligned": "aligned_threshold",
    "ratcliff": "ratcliff_threshold",
    "longest_match": "longest_match_threshold",
    "exact": "exact_threshold",
    "ngram_any": "ngram_any_size",
    "reworded": "reworded_threshold",
    "code": "code_threshold",
}
FLOOR = dict.fromkeys(SETTING, 0.01) | {
    "decon": 0.6, "ratcliff": 0.3, "longest_match": 0.4, "reworded": 0.2, "code": 0.3
}  # fmt: skip

shares = st.one_of(st.floats(0, 1), st.integers(0, 100).map(lambda n: n / 100))


@st.composite
def matches(draw):
    nothing = {field.name: None if field.nullable else "" for field in MATCHES}
    nothing |= {field.name: 0 for field in MATCHES if field.type in (pa.int64(), pa.float64())}
    rows = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "detector": st.sampled_from(BUILT_IN),
                    "base_score": shares,
                    "kind": st.sampled_from([*kinds(), None]),
                    "question_overlap": shares,
                    "n_matched": st.integers(8, 40),
                    "question_tokens": st.integers(1, 80),
                    "total_tokens": st.integers(1, 80),
                }
            ),
            max_size=8,
        )
    )
    return pa.Table.from_pylist([{**nothing, **row} for row in rows], schema=MATCHES)


@given(matches(), st.sampled_from([0.6, 0.8, 0.805, 0.9]))
def test_the_score_of_a_match_is_enough_up_to_there_and_not_beyond(found, threshold):
    policy = Policy(detectors=BUILT_IN, contamination_score_threshold=threshold)
    highest = highest_thresholds(found, policy)
    for at, row in enumerate(found.to_pylist()):
        one = found.slice(at, 1)
        tried = [step for step in steps(row["detector"], policy) if is_found(one, step, policy)]
        assert np.isnan(highest[at]) if not tried else highest[at] == max(tried)


def steps(detector, policy):
    if detector == "ngram_any":
        return range(policy.ngram_any_lowest_recorded, 50)
    own = policy.threshold_of(detector)
    return sorted({n / 100 for n in range(1, 101) if n / 100 >= FLOOR[detector]} | {own})


def is_found(match, step, policy):
    detector = match["detector"][0].as_py()
    if detector == "longest_match" and step == 1:
        return False  # more than all there is: no policy may ask for it
    return bool(judge(match, replace(policy, **{SETTING[detector]: step})).is_by_score[0])


def test_of_decon_the_floor_itself_is_a_step():
    policy = Policy(lowest_recorded_score=0.655, contamination_score_threshold=0.8)
    row = {field.name: None if field.nullable else "" for field in MATCHES}
    row |= {field.name: 1 for field in MATCHES if field.type in (pa.int64(), pa.float64())}
    row |= {"detector": "decon", "base_score": 0.658, "question_overlap": 0.9}
    row |= {"question_tokens": 60, "total_tokens": 60}
    found = pa.Table.from_pylist([row], schema=MATCHES)
    assert highest_thresholds(found, policy).tolist() == [0.655]
