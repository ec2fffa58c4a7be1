"""Two reports side by side: what differs, and what nobody can compare."""

import random
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.compare.differences import compare
from decon_core.compare.page import as_html, headline, sections
from decon_core.errors import InputError, MissingError
from tests.core.report.reports import write_report
from tests.uncompiled import fewer

ITEM = {"benchmark": "quiz", "split": "test", "is_indexed": True}
MATCH = {
    "source": "web",
    "shard_name": "a",
    "detector": "decon",
    "benchmark": "quiz",
    "split": "test",
    "instance_index": 0,
    "score": 0.9,
    "is_contaminated": True,
}
NO_ANSWER = {"score": 0.7, "is_contaminated": False, "is_no_answer": True}
REVIEW = {"is_contaminated": False, "needs_review": True}


def item(number, **more):
    return {**ITEM, "instance_index": number, "fingerprints": [f"f{number}"], **more}


def match(row, number=0, **more):
    return {**MATCH, "row": row, "instance_index": number, **more}


def tables(matches, **changed):
    """A quiz of five items, looked for in the shards a and b."""
    given = {
        "runs": [{"policy": '{"contamination_score_threshold": 0.8}', "thresholds": "{}"}],
        "benchmarks": [{"benchmark": "quiz", "version": "v1", "n_items": 5}],
        "items": [item(n) for n in range(5)],
        "shards": [{"source": "web", "shard_name": name, "shard": name} for name in "ab"],
        "matches": matches,
    }
    return given | changed


@pytest.fixture
def compared(tmp_path):
    """Compares reports of these tables."""

    def compare_tables(first, second, most=100):
        paths = [
            write_report(tmp_path / f"{name}.duckdb", **side)
            for name, side in (("first", first), ("second", second))
        ]
        return {"first": "first", "second": "second"} | compare(*paths, most=most)

    return compare_tables


def places(found, kind):
    """Row and item of every leak of a kind."""
    return [(one["row"], one["instance_index"]) for one in found["findings"][kind]]


def statuses(found):
    """Status in both reports of every item whose status differs."""
    return {
        one["instance_index"]: (one["status_of_first"], one["status_of_second"])
        for one in found["items"]
    }


def test_equal_reports_are_the_same(compared):
    side = tables([match(1), match(2, 1)])
    found = compared(side, side)
    assert found["is_same"]
    assert found["n_findings"] == {"same": 2}
    assert found["settings"] == found["statuses"] == found["shards"] == []
    assert headline(found) == "the same: 2 leaks in both"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("no-answer", NO_ANSWER), ("unreviewed", REVIEW)],
    ids=["no answer", "review"],
)
def test_matches_that_are_no_leak_are_counted_apart(compared, kind, fields):
    side = tables([match(1), match(2, 1, **fields)])
    same = compared(side, side)
    assert same["is_same"]
    assert headline(same) == f"the same: 1 leak in both, 1 {kind} finding in both"


def test_a_question_without_its_answer_is_compared_beside_leaks(compared):
    found = compared(
        tables([match(1, 0), match(2, 1, **NO_ANSWER)]),
        tables([match(1, 0, **NO_ANSWER), match(3, 2, **NO_ANSWER)]),
    )
    assert not found["is_same"]
    assert found["n_findings"] == {
        "only in first": 1,
        "no answer, only in first": 1,
        "no answer, only in second": 1,
    }
    (lost,) = found["findings"]["only in first"]
    assert (lost["class_of_first"], lost["class_of_second"]) == ("leak", "no answer")
    assert statuses(found) == {
        0: ("leaked", "no answer"),
        1: ("no answer", "clean"),
        2: ("clean", "no answer"),
    }
    assert all(one["is_comparable"] for one in found["items"])
    (quiz,) = found["benchmarks"]
    assert (quiz["n_no_answer_of_first"], quiz["n_no_answer_of_second"]) == (1, 2)
    assert "No answer, or needs review" in [one.title for one in sections(found, most=5)]


def test_candidates_are_compared_beside_leaks(compared):
    found = compared(
        tables([match(1, 0, **REVIEW), match(2, 1, **REVIEW)]),
        tables([match(1, 0), match(3, 2, **REVIEW)]),
    )
    assert found["n_findings"] == {
        "only in second": 1,
        "review, only in first": 1,
        "review, only in second": 1,
    }
    (gained,) = found["findings"]["only in second"]
    assert (gained["class_of_first"], gained["class_of_second"]) == ("review", "leak")
    assert statuses(found) == {
        0: ("review", "leaked"),
        1: ("review", "clean"),
        2: ("clean", "review"),
    }


def test_a_leak_of_first_side_is_only_there_and_one_of_both_may_have_another_score(compared):
    first = [match(1), match(2), match(3), match(4, score=0.81)]
    second = [match(1), match(3, score=0.95), match(4, score=0.7, is_contaminated=False), match(5)]
    found = compared(tables(first), tables(second))
    assert found["n_findings"] == {"changed": 1, "only in first": 2, "only in second": 1, "same": 1}
    assert places(found, "only in first") == [(2, 0), (4, 0)]
    assert places(found, "only in second") == [(5, 0)]
    assert places(found, "changed") == [(3, 0)]
    gone, below = found["findings"]["only in first"]
    assert (gone["score_of_first"], gone["score_of_second"]) == (0.9, None)
    assert (below["score_of_first"], below["score_of_second"]) == (0.81, 0.7)  # found, and no leak
    assert not found["is_same"]


def test_other_rules_and_other_verdicts_are_a_change(compared):
    first = [match(1), match(2, text_id="p"), match(3)]
    second = [match(1, detector="exact"), match(2, text_id="p", verdict="leak"), match(3)]
    found = compared(tables(first), tables(second))
    assert places(found, "changed") == [(1, 0), (2, 0)]
    assert found["findings"]["changed"][0]["detectors_of_second"] == ["exact"]


def lost(found):
    return {
        one["why_not"]: (one["n_in_first"], one["n_in_second"]) for one in found["not_comparable"]
    }


def test_a_leak_in_a_shard_that_the_other_did_not_scan_is_told_apart(compared):
    first = tables([match(1), match(1, shard_name="b")])
    second = tables([match(1)], shards=[{"source": "web", "shard_name": "a", "shard": "a"}])
    found = compared(first, second)
    assert found["n_findings"] == {"not comparable": 1, "same": 1}
    assert lost(found) == {"the other side did not scan the shard": (1, 0)}
    assert found["n_shards"] == {"in both": 1, "only in first": 1}
    assert not found["is_same"]
    other_way = compared(second, first)
    assert lost(other_way) == {"the other side did not scan the shard": (0, 1)}


def test_a_shard_of_other_content_is_compared_by_nobody(compared):
    other = [{"source": "web", "shard_name": name, "shard": f"{name}2"} for name in "ab"]
    found = compared(tables([match(1)]), tables([match(1), match(2)], shards=other))
    assert found["n_findings"] == {
        "not comparable": 2
    }  # one of them in both, whatever stands there
    assert lost(found) == {"the shard has different content or is read differently": (1, 2)}


def test_a_row_that_the_other_could_not_read_is_told_apart(compared):
    unread = [{"source": "web", "shard_name": "a", "row": 1, "reason": "not JSON"}]
    found = compared(tables([match(1), match(2)]), tables([match(2)], unreadable=unread))
    assert found["n_findings"] == {"not comparable": 1, "same": 1}
    assert lost(found) == {"the other side could not read the row": (1, 0)}


def test_items_and_benchmarks_that_only_one_side_has_are_told_apart(compared):
    more = [{"benchmark": "maths", "version": "m", "n_items": 1}]
    base = tables([])
    first = tables(
        [match(1), match(2, 4), match(3, 3), match(4, benchmark="maths")],
        benchmarks=[*base["benchmarks"], *more],
        items=[*base["items"], item(0, benchmark="maths")],
    )
    second = tables(
        [match(1), match(3, 3)],
        benchmarks=[{"benchmark": "quiz", "version": "v2", "n_items": 4}],
        items=[item(n, fingerprints=["new"] if n == 3 else [f"f{n}"]) for n in range(4)],
    )
    found = compared(first, second)
    assert found["n_findings"] == {"not comparable": 3, "same": 1}
    assert lost(found) == {
        "the item has different texts on the other side": (1, 1),
        "the other side did not search for the benchmark": (1, 0),
        "the other side does not have the item": (1, 0),
    }
    versions = {
        one["benchmark"]: (one["version_of_first"], one["version_of_second"])
        for one in found["benchmarks"]
    }
    assert versions == {"maths": ("m", None), "quiz": ("v1", "v2")}


def test_an_item_is_known_by_its_text_in_another_version_of_its_benchmark(compared):
    """Row 1 was removed, the text of row 2 changed, and two rows are new at the end."""

    def version(name, texts):
        items = [item(n, fingerprints=[f"{text}1", f"{text}2"]) for n, text in enumerate(texts)]
        return {
            "benchmarks": [{"benchmark": "quiz", "version": name, "n_items": len(texts)}],
            "items": [{**one, "n_records": 2} for one in items],
        }

    matches = [match(row, row) for row in range(6)]
    first = tables(matches, **version("v1", "abcdex"))
    matches = [match(0, 0), match(2, 1), match(4, 3), match(8, 2), match(9, 4), match(9, 5)]
    second = tables(matches, **version("v2", "aCdeyx"))
    found = compared(first, second)
    assert found["n_findings"] == {
        "not comparable": 4,
        "only in first": 2,
        "only in second": 2,
        "same": 2,
    }
    assert places(found, "only in first") == [(3, 3), (5, 5)]
    assert places(found, "only in second") == [(8, 3), (9, 5)]
    assert lost(found) == {
        "the item has different texts on the other side": (1, 1),
        "the other side does not have the item": (1, 1),
    }
    assert not found["statuses"]


def test_of_items_with_the_same_text_each_is_known_by_its_index(compared):
    def version(texts):
        items = [item(n, fingerprints=[text], n_records=1) for n, text in enumerate(texts)]
        return {"items": items}

    first = tables([match(1, 1), match(2, 4)], **version("abbcd"))
    second = tables([match(1, 1), match(2, 3)], **version("abbdc"))
    found = compared(first, second)
    assert found["n_findings"] == {"same": 2}
    assert not compared(first, tables([match(1, 2)], **version("abbdc")))["is_same"]


def test_an_inserted_item_does_not_move_items_with_the_same_text(compared):
    def version(texts):
        return {"items": [item(n, fingerprints=[t], n_records=1) for n, t in enumerate(texts)]}

    first = tables([match(1, 1), match(2, 4)], **version("abbcd"))
    found = compared(first, tables([match(1, 2), match(2, 5)], **version("xabbcd")))
    assert found["n_findings"] == {"same": 2}


def test_where_items_were_not_listed_one_that_was_not_found_did_not_leak(compared):
    """As in a report of the reference implementation, which names what it found only."""
    second = tables([match(1)], benchmarks=[{"benchmark": "quiz"}], items=[item(0)])
    found = compared(tables([match(1), match(2, 1)]), second)
    assert found["n_findings"] == {"only in first": 1, "same": 1}
    assert found["statuses"] == [
        {"status_of_first": "leaked", "status_of_second": None, "n": 1, "n_comparable": 1}
    ]
    assert found["benchmarks"][0]["rate_of_second"] is None


def test_without_sources_a_shard_is_the_one_of_its_name(compared):
    bare = [{"source": "corpus", "shard_name": name} for name in "ab"]
    second = tables([match(1, source="corpus"), match(2, source="corpus")], shards=bare)
    found = compared(tables([match(1)]), second)
    assert found["n_shards"] == {"in both": 2}
    assert found["n_findings"] == {"only in second": 1, "same": 1}


def test_a_shard_that_moved_is_known_by_its_content(compared):
    moved = [
        {"source": "", "shard_name": f"web/{name}", "shard": content}
        for name, content in (("b", "a"), ("a", "b"))  # each with the content of the other
    ]
    found = compared(
        tables([match(1), match(2, 1, shard_name="b")]),
        tables([match(1, source="", shard_name="web/b")], shards=moved),
    )
    assert found["n_shards"] == {"in both": 2}
    assert found["n_findings"] == {"only in first": 1, "same": 1}


def test_of_second_shards_of_first_name_nobody_knows_which_it_is(compared):
    twice = [{"source": source, "shard_name": "a"} for source in ("web", "books")]
    bare = [{"source": "corpus", "shard_name": "a"}]
    second = tables([match(1, source="corpus")], shards=bare)
    found = compared(tables([match(1)], shards=twice), second)
    assert found["n_shards"] == {"only in first": 2, "only in second": 1}
    assert lost(found) == {"the other side did not scan the shard": (1, 1)}


def test_an_item_changes_its_status_by_calls_or_by_what_only_one_side_saw(compared):
    only_a = [{"source": "web", "shard_name": "a", "shard": "a"}]
    first = tables([match(1, 0), match(1, 1, shard_name="b")])
    second = tables(
        [match(1, 2)], shards=only_a, items=[item(n, is_indexed=n != 4) for n in range(5)]
    )
    found = compared(first, second)
    changes = {
        one["instance_index"]: (
            one["status_of_first"],
            one["status_of_second"],
            one["is_comparable"],
        )
        for one in found["items"]
    }
    assert changes == {
        0: ("leaked", "clean", True),
        1: ("leaked", "clean", False),
        2: ("clean", "leaked", True),
        4: ("clean", "cannot be checked", True),
    }


def test_rates_stand_side_by_side(compared):
    only_a = [{"source": "web", "shard_name": "a", "shard": "a"}]
    first = tables([match(1, 0), match(1, 1, shard_name="b")])
    (quiz,) = compared(first, tables([match(1, 0)], shards=only_a))["benchmarks"]
    assert (quiz["n_leaked_of_first"], quiz["n_leaked_of_second"]) == (2, 1)
    assert (quiz["rate_of_first"], quiz["rate_of_second"]) == (0.4, 0.2)
    assert quiz["difference"] == pytest.approx(-0.2)
    assert (quiz["n_shared_of_first"], quiz["n_shared_of_second"]) == (1, 1)


def test_settings_that_differ_are_told_and_change_nothing_alone(compared):
    policy = '{"contamination_score_threshold": 0.85, "exact_threshold": 0.5}'
    runs = [{"policy": policy, "thresholds": '{"decon": 0.85}', "term_weights": "i"}]
    found = compared(tables([match(1)]), tables([match(1)], runs=runs))
    assert found["settings"] == [
        {"setting": "policy.contamination_score_threshold", "first": 0.8, "second": 0.85},
        {"setting": "policy.exact_threshold", "first": None, "second": 0.5},
        {"setting": "term_weights", "first": None, "second": "i"},
        {"setting": "threshold of decon", "first": None, "second": 0.85},
    ]
    assert found["is_same"]


def test_of_long_lists_the_first_rows_are_shown_and_the_rest_is_counted(compared):
    found = compared(tables([match(row) for row in range(9)]), tables([]), most=5)
    assert found["n_findings"]["only in first"] == 9
    assert len(found["findings"]["only in first"]) == 5
    (shown,) = (one for one in sections(found, most=3) if one.title == "Leaks only in first")
    assert (len(shown.rows), shown.n_more) == (3, 6)


def test_the_same_file_and_a_file_that_is_not_there_are_refused(tmp_path):
    path = write_report(tmp_path / "r.duckdb", **tables([]))
    with pytest.raises(InputError, match="same file"):
        compare(path, tmp_path / "." / "r.duckdb", most=1)
    with pytest.raises(MissingError):
        compare(path, tmp_path / "nowhere.duckdb", most=1)


# By an obvious reading ----------------------------------------------------------------------------


@settings(max_examples=fewer(2))
@given(seed=st.integers(0, 10**6))
def test_every_leak_is_in_just_one_kind_and_it_is_the_obvious_one(seed, tmp_path_factory):
    rng = random.Random(seed)
    sides = [_some_matches(rng) for _ in range(2)]
    shards = [rng.sample("abc", k=rng.randint(1, 3)) for _ in range(2)]
    kept = [
        {place: score for place, score in side.items() if place[0] in names}
        for side, names in zip(sides, shards, strict=True)
    ]
    folder = tmp_path_factory.mktemp("seeded")
    paths = [
        write_report(
            folder / f"{n}.duckdb",
            **tables(
                [
                    match(row, number, shard_name=shard, score=score, is_contaminated=score >= 0.8)
                    for (shard, row, number), score in kept[n].items()
                ],
                shards=[{"source": "web", "shard_name": name, "shard": name} for name in shards[n]],
            ),
        )
        for n in range(2)
    ]
    counts = dict.fromkeys(("same", "changed", "only in first", "only in second"), 0)
    counts["not comparable"] = 0
    for place in {*kept[0], *kept[1]}:
        one, two = (side.get(place, 0) for side in kept)
        if max(one, two) >= 0.8:
            counts[_kind(one, two, place[0] in shards[0] and place[0] in shards[1])] += 1
    assert compare(*paths, most=3)["n_findings"] == {k: n for k, n in counts.items() if n}


def _some_matches(rng):
    return {
        (rng.choice("abc"), rng.randrange(3), rng.randrange(5)): rng.choice((0.7, 0.8, 0.9))
        for _ in range(rng.randint(0, 25))
    }


def _kind(one, two, is_shared):
    if not is_shared:
        return "not comparable"
    if one < 0.8 or two < 0.8:
        return "only in first" if one >= 0.8 else "only in second"
    return "same" if one == two else "changed"


# The page -----------------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.texts += [f"{name}={value}" for name, value in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.texts.append(data)


def test_hostile_names_are_text_of_the_page_and_nothing_else(compared):
    shards = [{"source": "web", "shard_name": HOSTILE, "shard": "a"}]
    first = tables([match(1, shard_name=HOSTILE)], shards=shards)
    found = compared(first, tables([], shards=shards)) | {"first": HOSTILE}
    page = Tags()
    page.feed(as_html(found, most=100))
    assert not {"script", "img", "a", "link"} & {*page.tags}
    assert page.texts.count(HOSTILE) == 2  # the name of the report, the shard of the leak
    assert "dark" in as_html(found, most=1)


def test_a_page_says_what_the_terminal_says(compared):
    found = compared(tables([match(row) for row in range(9)]), tables([]))
    page = as_html(found, most=4)
    assert "9 leaks only in first" in page
    assert "… and 5 more" in page
