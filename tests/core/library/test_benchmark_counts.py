"""Counts of a folder scan by benchmark: the same as counted one by one from sets."""

from types import SimpleNamespace

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.library.benchmark_counts import BenchmarkCount, count_matches

SIMILAR = "reworded"  # finds no leaks, only similar text
BENCHMARKS, DETECTORS = ("maths", "physics"), ("decon", "exact", SIMILAR)
KINDS = ("is_contaminated", "is_no_answer", "needs_review")

MATCHES = st.lists(
    st.fixed_dictionaries(
        {
            "benchmark": st.sampled_from(BENCHMARKS),
            "split": st.sampled_from(["test", "train"]),
            "instance_index": st.integers(0, 2),
            "file": st.sampled_from(["a", "b"]),
            "row": st.integers(0, 2),
            "detector": st.sampled_from(DETECTORS),
            **{name: st.booleans() for name in KINDS},
        }
    ),
    max_size=20,
)


ITEMS = [(split, number) for split in ("test", "train") for number in range(3)]
VISIBLE = st.fixed_dictionaries(
    {(name, item, by): st.booleans() for name in BENCHMARKS for item in ITEMS for by in DETECTORS}
)


def item_of(match):
    return match["split"], match["instance_index"]


def document_of(match):
    return match["file"], match["row"]


def counted(matches, visible, benchmark):
    """The counts of one benchmark."""
    leaky = {document_of(one) for one in matches if one["is_contaminated"]}
    own = [one for one in matches if one["benchmark"] == benchmark]

    def findings(kind):
        return {(item_of(one), document_of(one)) for one in own if one[kind]}

    leaks = findings("is_contaminated")
    questions = findings("is_no_answer") - leaks
    candidates = findings("needs_review") - leaks - findings("is_no_answer")
    leaked = {item for item, _ in leaks}
    seen = {
        item
        for (name, item, by), is_seen in visible.items()
        if name == benchmark and is_seen and by != SIMILAR
    }
    found = {}
    for one in own:
        if one["is_contaminated"] or (one["needs_review"] and one["detector"] == SIMILAR):
            found.setdefault(item_of(one), set()).add(one["detector"])
    return BenchmarkCount(
        benchmark,
        n_items=6,
        n_records=7,
        n_checkable_items=len(seen),
        n_leaked_checkable_items=len(seen & leaked),
        n_leaked_items=len(leaked),
        n_leaks=len(leaks),
        n_documents=len({document for _, document in leaks}),
        n_no_answer_items=len({item for item, _ in questions} - leaked),
        n_no_answer_documents=len({document for _, document in questions} - leaky),
        n_review_items=len(
            {item for item, _ in candidates} - leaked - {item for item, _ in questions}
        ),
        n_items_by_detector={name: sum(name in by for by in found.values()) for name in DETECTORS},
        n_items_by_all=sum(len(by) == len(DETECTORS) for by in found.values()),
    )


@given(matches=MATCHES, visible=VISIBLE)
def test_polars_counts_what_sets_count(tmp_path_factory, matches, visible):
    folder = tmp_path_factory.mktemp("found")
    path, visibility = folder / "matches.parquet", folder / "visibility.parquet"
    types = {"split": pl.String, "instance_index": pl.Int64, "row": pl.Int64}
    names = {"benchmark": pl.String, "file": pl.String, "detector": pl.String}
    schema = types | names | dict.fromkeys(KINDS, pl.Boolean)
    pl.DataFrame(matches, schema=schema).write_parquet(path)
    rows = [
        {"benchmark": name, "split": item[0], "instance_index": item[1], "detector": by}
        | {"is_visible": is_seen}
        for (name, item, by), is_seen in visible.items()
    ]
    pl.DataFrame(rows).write_parquet(visibility)
    versions = [SimpleNamespace(benchmark=name, n_items=6, n_records=7) for name in BENCHMARKS]
    found = count_matches(path, visibility, versions, Policy(detectors=DETECTORS))
    assert found == [counted(matches, visible, name) for name in BENCHMARKS]
