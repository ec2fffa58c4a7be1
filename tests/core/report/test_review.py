"""What is shown, in which order; which findings are drawn; what verdicts say of all findings."""

import random
from collections import Counter

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.decisions.calibration import wilson
from decon_core.decisions.verdicts import Verdict, Verdicts
from decon_core.errors import MissingError, StaleError
from decon_core.report.review.found import (
    ReportFinding,
    ReviewFilter,
    merge_verdicts,
    open_report,
    sort_texts,
    texts_of_findings,
    verdict_line,
    without_verdict,
)
from decon_core.report.review.sample import (
    OTHERS,
    STRATA,
    Tally,
    allocate,
    draw,
    estimate,
    in_order_of_draw,
    tally,
)
from decon_core.report.review.show import Paint, page
from tests.core.report.review_reports import finding, key, matched_text, write_report


def saying(said):
    return Verdicts(
        {
            key(number): Verdict(pair=key(number), fingerprint="f" * 16, verdict=verdict)
            for number, verdict in said.items()
        }
    )


@pytest.fixture
def report(tmp_path):
    def make(*rows, **options):
        return open_report(write_report(tmp_path / "report.duckdb", rows, **options))

    return make


def numbers(matched_texts):
    return [int(one.text_id, 16) for one in matched_texts]


# The queue ----------------------------------------------------------------------------------------


def test_the_most_doubtful_come_first_by_the_threshold_of_the_rule_that_found_them(report):
    policy = Policy(detectors=("decon", "ratcliff"))
    rows = [
        matched_text(0, score=1.0),
        matched_text(1, score=0.79),
        matched_text(2, score=0.82),
        matched_text(3, score=0.82, n_documents=5),
        matched_text(4, score=0.505, detectors="ratcliff"),
        matched_text(5, score=0.81, detectors="decon, ratcliff"),
        matched_text(6, score=0.8, kind="template", is_contaminated=False),
        matched_text(7, score=0.1, kind="part", is_contaminated=False, needs_review=True),
    ]
    with report(*rows, policy=policy) as opened:
        assert opened.policy() == policy
        found = opened.matched_texts(ReviewFilter())
    assert numbers(sort_texts(found, "doubt", policy)) == [7, 4, 1, 5, 3, 2, 0, 6]
    assert numbers(sort_texts(found, "score", policy)) == [0, 3, 2, 5, 6, 1, 4, 7]
    assert numbers(sort_texts(found, "documents", policy)) == [3, 0, 2, 5, 6, 1, 4, 7]


def test_a_choice_is_of_benchmarks_of_rules_and_of_sources_wherever_else_a_text_is_shown(report):
    rows = [
        matched_text(0),
        matched_text(1, benchmark="exam"),
        matched_text(2, detectors="exact, ratcliff"),
        matched_text(3, source="books"),
    ]
    findings = [*map(finding, rows), finding(rows[0], source="books", row=77)]
    with report(*rows, findings=findings) as opened:

        def chosen(**wanted):
            return numbers(opened.matched_texts(ReviewFilter(**wanted)))

        assert chosen() == [0, 1, 2, 3]
        assert chosen(benchmarks=("exam",)) == [1]
        assert chosen(detectors=("ratcliff",)) == [2]
        assert chosen(detectors=("exact", "decon"), benchmarks=("quiz",)) == [0, 2, 3]
        assert chosen(sources=("books",)) == [0, 3]
        assert [
            one.row
            for one in opened.findings(ReviewFilter(sources=("books",), detectors=("decon",)))
        ] == [
            3,
            77,
        ]


def in_documents(report, matched_text, n):
    """Matches of a matched text in so many documents."""
    with duckdb.connect(str(report)) as connection:
        connection.execute(
            "INSERT INTO matches (text_id, source, shard_name, row, doc_id, detector, score, "
            "is_contaminated, is_no_answer) SELECT ?, 'web', 'a.jsonl', row, 'page-' || row, "
            "'decon', 0.9, true, false FROM range(?) AS numbers(row)",
            [matched_text, n],
        )


def test_a_text_has_all_of_its_documents_and_is_found_by_the_id_of_any(tmp_path):
    path = write_report(tmp_path / "r.duckdb", [matched_text(0, n_documents=55), matched_text(1)])
    in_documents(path, key(0), 55)
    with open_report(path) as opened:
        assert [str(one) for one in opened.documents(key(0))] == [
            f"web/a.jsonl row {row} (page-{row})" for row in range(55)
        ]
        assert len(opened.documents(key(0), most=10)) == 10
        found = opened.matched_texts(ReviewFilter(documents=("page-37",)))
        assert [one.text_id for one in found] == [key(0)]
        lines = page(opened.matched_text(key(0)), width=80, paint=Paint(has_colour=False))
    told = "\n".join(lines)
    assert "found in 55 documents" in told
    assert "web/a.jsonl row 54 (page-54)" in told
    assert "more: decon-assets report" not in told


def test_a_text_that_items_of_two_benchmarks_share_is_found_by_the_name_of_either(tmp_path):
    path = write_report(tmp_path / "r.duckdb", [matched_text(0), matched_text(1)])
    in_documents(path, key(0), 2)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE matches SET split = 'test', instance_index = 0, "
            "benchmark = CASE row WHEN 0 THEN 'copy' ELSE 'quiz' END"
        )
    with open_report(path) as opened:
        found = opened.matched_texts(ReviewFilter(benchmarks=("copy",)))
        assert [text.text_id for text in found] == [key(0)]
        (candidate,) = opened.candidates(["copy"], [])
        lines = page(opened.matched_text(key(0)), width=80, paint=Paint(has_colour=False))
        assert opened.also_in(key(1)) == ""
    assert candidate["text_id"] == key(0)
    assert "benchmark: quiz test 0; also copy test 0" in "\n".join(lines)


def test_of_very_many_documents_a_page_says_where_the_others_are(tmp_path):
    path = write_report(tmp_path / "r.duckdb", [matched_text(0, n_documents=1_500)])
    in_documents(path, key(0), 1_500)
    with open_report(path) as opened:
        lines = page(opened.matched_text(key(0)), width=150, paint=Paint(has_colour=False))
    told = " ".join(" ".join(lines).split())
    assert "500 more: decon-assets report" in told


def test_a_text_says_how_the_report_counts_it(tmp_path):
    question = {"score": 0.7, "is_no_answer": True}
    path = write_report(
        tmp_path / "r.duckdb",
        [matched_text(0), matched_text(1, **question), matched_text(2, score=0.7)],
    )
    with open_report(path) as opened:
        called = [one.called for one in opened.matched_texts(ReviewFilter())]
    assert called == ["leak", "no answer", "near miss"]


def test_what_has_a_verdict_is_not_asked_again(report):
    with report(*map(matched_text, range(3))) as opened:
        found = opened.matched_texts(ReviewFilter())
    assert numbers(without_verdict(found, saying({1: "unsure"}))) == [0, 2]


def test_findings_are_leaks_by_score_whatever_people_said(report):
    rows = [
        matched_text(0),
        matched_text(1, is_contaminated=False, verdict="template"),
        matched_text(2, score=0.7),
    ]
    with report(*rows) as opened:
        assert sorted(one.row for one in opened.findings(ReviewFilter())) == [0, 1]


def test_a_text_of_several_findings_is_asked_once(report):
    rows = [matched_text(0), matched_text(1)]
    findings = [finding(rows[0]), finding(rows[1]), finding(rows[0], row=9)]
    with report(*rows, findings=findings) as opened:
        drawn = in_order_of_draw(draw(opened.findings(ReviewFilter()), 3, by=()), 0)
        assert sorted(numbers(texts_of_findings(opened.matched_texts(ReviewFilter()), drawn))) == [
            0,
            1,
        ]


def test_a_report_that_is_not_there_or_of_another_form_is_refused(tmp_path, report):
    with pytest.raises(MissingError, match="no such file"), open_report(tmp_path / "none.duckdb"):
        pass
    (tmp_path / "odd.duckdb").write_bytes(b"no database" * 1000)
    with pytest.raises(StaleError, match="not a database"), open_report(tmp_path / "odd.duckdb"):
        pass
    import duckdb

    with duckdb.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute("CREATE TABLE runs (a INT)")
    with (
        pytest.raises(StaleError, match="of another version"),
        open_report(tmp_path / "old.duckdb"),
    ):
        pass
    with report(matched_text(0)) as opened, pytest.raises(MissingError, match="id '5'"):
        opened.matched_text("5")


# Lines --------------------------------------------------------------------------------------------


def test_a_line_says_of_what_it_is_and_where_that_was_seen(report):
    with report(matched_text(7)) as opened:
        (about,) = opened.matched_texts(ReviewFilter())
    assert verdict_line(about, "leak", by="ada") == {
        "pair": key(7),
        "fingerprint": key(1007),
        "verdict": "leak",
        "by": "ada",
        "benchmark": "quiz",
        "split": "test",
        "instance_index": 7,
        "shard": "a.jsonl",
        "row": 7,
    }


@pytest.mark.parametrize(
    ("at", "n_older"),
    [
        ("2020-01-01T00:00:00Z", 1),
        ("2026-11-22T04:59:59.999+00:00", 1),
        ("2026-11-22T07:00:01+02:00", 0),  # a second later, elsewhere
        ("some day", 0),  # nobody knows
        (None, 0),
    ],
)
def test_what_was_said_before_does_not_come_over_what_was_said_after(at, n_older):
    said = Verdict(pair=key(0), fingerprint=key(1), verdict="leak", at="2026-11-22T05:00:00+00:00")
    line = {"pair": key(0), "fingerprint": key(1), "verdict": "template", "at": at}
    taken = merge_verdicts([line], Verdicts({key(0): said}), [key(0)])
    counts = len(taken.older), taken.n_changed, len(taken.lines)
    assert counts == (n_older, 1 - n_older, 1 - n_older)


def test_of_lines_from_elsewhere_only_what_says_something_else_is_taken():
    def line(number, verdict, **others):
        return {"pair": key(number), "fingerprint": "f" * 16, "verdict": verdict, **others}

    lines = [
        line(0, "leak"),  # as it stands
        line(1, "leak"),
        line(1, "template"),  # the last one counts
        line(2, "unsure"),
        line(3, "none"),  # nothing stands
        line(4, "none"),
        line(5, "leak", note="new"),
    ]
    standing = saying({0: "leak", 1: "leak", 4: "leak", 5: "leak"})
    taken = merge_verdicts(lines, standing, [key(number) for number in (0, 1, 3, 4, 5)])
    assert [(one["pair"], one["verdict"]) for one in taken.lines] == [
        (key(1), "template"),
        (key(2), "unsure"),
        (key(4), "none"),
        (key(5), "leak"),
    ]
    counts = taken.n_new, taken.n_changed, taken.n_same, taken.n_unknown
    assert counts == (1, 3, 2, 1)


# Samples ------------------------------------------------------------------------------------------


def a_finding(number, benchmark="quiz", score=0.9, **values):
    place = {"source": "web", "shard_name": "a.jsonl", "row": number}
    item = {"benchmark": benchmark, "config": None, "split": "test", "instance_index": number}
    return ReportFinding(**{**place, **item, "text_id": key(number), "score": score, **values})


FINDINGS = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from([0.5, 0.8, 0.85, 0.95, 1.0])),
    min_size=1,
    max_size=60,
).map(lambda rows: [a_finding(n, name, score) for n, (name, score) in enumerate(rows)])


@given(
    FINDINGS,
    st.integers(1, 80),
    st.sampled_from([(), ("benchmark",), ("score",), ("benchmark", "score")]),
    st.randoms(use_true_random=False),
)
def test_prop_a_sample_has_its_size_and_of_every_stratum_its_share(findings, n, by, chance):
    strata = draw(findings, n, by=by)
    assert sum(one.n_findings for one in strata) == len(findings)
    assert sum(len(one.drawn) for one in strata) == min(n, len(findings))
    for one in strata:
        assert len({*one.drawn}) == len(one.drawn) <= one.n_findings
        if n > 1:
            assert len(one.drawn) >= min(2, one.n_findings)
    shuffled = findings[:]
    chance.shuffle(shuffled)
    assert draw(shuffled, n, by=by) == strata


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1), st.data())
def test_prop_a_larger_sample_takes_nothing_away(sizes, data):
    n = data.draw(st.integers(0, sum(sizes.values()) + 2))
    fewer, more = allocate(sizes, n), allocate(sizes, n + 1)
    assert sum(fewer.values()) == min(n, sum(sizes.values()))
    assert all(fewer[name] <= more[name] <= sizes[name] for name in sizes)


def test_shares_are_by_size_once_every_stratum_has_two():
    sizes = {"a": 600, "b": 300, "c": 100, "d": 3}
    assert allocate(sizes, 99) == {"a": 59, "b": 29, "c": 9, "d": 2}
    assert allocate({"a": 5, "b": 1}, 3) == {"a": 2, "b": 1}
    assert allocate({"a": 5, "b": 1, "c": 4}, 2) == {"a": 1, "b": 0, "c": 1}
    assert allocate({"a": 2, "b": 1}, 99) == {"a": 2, "b": 1}


def test_strata_that_are_too_many_for_a_sample_are_taken_together():
    findings = [a_finding(n, f"b{n % 30:02}") for n in range(40)] + [a_finding(99, "b00")]
    strata = {one.name: one for one in draw(findings, 8, by=("benchmark",))}
    assert [*strata] == [OTHERS, "b00", "b01", "b02"]
    assert strata[OTHERS].n_findings == 41 - 3 - 2 - 2
    assert {name: len(one.drawn) for name, one in strata.items()} == {
        OTHERS: 2,
        "b00": 2,
        "b01": 2,
        "b02": 2,
    }


def test_scores_are_told_apart_by_tenths_and_whole_ones_apart():
    bands = {
        score: STRATA["score"](a_finding(0, score=score)) for score in (0.3, 0.8, 0.8999, 0.9, 1.0)
    }
    assert bands == {
        0.3: "score 0.3 to 0.4",
        0.8: "score 0.8 to 0.9",
        0.8999: "score 0.8 to 0.9",
        0.9: "score 0.9 to 1.0",
        1.0: "score 1",
    }


def test_a_sample_is_the_same_when_other_findings_are_found_in_other_places():
    findings = [a_finding(n) for n in range(100)]
    (before,) = draw(findings, 10, by=())
    (after,) = draw([*findings, *(a_finding(n) for n in range(100, 110))], 10, by=())
    assert len({*before.drawn} & {*after.drawn}) >= 8
    assert draw(findings, 10, by=(), seed=1)[0].drawn != before.drawn
    # Another matched text as the best of a finding, and another score, draw the same.
    changed = [a_finding(n, text_id=key(5), score=0.81) for n in range(100)]
    assert [one.row for one in draw(changed, 10, by=())[0].drawn] == [
        one.row for one in before.drawn
    ]


def test_every_finding_is_drawn_as_often_as_any_other():
    findings = [a_finding(n) for n in range(20)]
    drawn = Counter(
        one.row for seed in range(2000) for one in draw(findings, 5, by=(), seed=seed)[0].drawn
    )
    # 500 of each are expected; the standard deviation is sqrt(2000 * 0.25 * 0.75) = 19.4.
    assert all(abs(drawn[n] - 500) < 5 * 19.4 for n in range(20))


# Precision ----------------------------------------------------------------------------------------


def of(n_findings, n_leaks, n_others, n_unsure=0, n_unseen=0, name="s"):
    return Tally(
        stratum=name,
        n_findings=n_findings,
        n_leaks=n_leaks,
        n_others=n_others,
        n_unsure=n_unsure,
        n_unseen=n_unseen,
    )


def test_wilson_gives_the_numbers_of_the_books():
    # 10 of 10, and 5 of 10, at z = 1.96; the closed forms n / (n + z^2) and 1/2 -+ ...
    squared = 1.959963984540054**2
    assert wilson(1.0, 10) == pytest.approx((10 / (10 + squared), 1.0))
    low, high = wilson(0.5, 10)
    assert (low, high) == pytest.approx((0.2366, 0.7634), abs=5e-5)


def test_a_single_stratum_without_end_is_wilsons_own():
    found = estimate([of(10**12, 8, 2)])
    assert found.share == 0.8
    assert found.n_effective == pytest.approx(10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=5e-5)


def test_strata_count_by_their_findings_as_reckoned_by_hand():
    # W = 0.9, 0.1; p = 0.9 * 3/4 + 0.1 * 1/2 = 0.725
    # v = 0.81 / 4 * 86/89 + 0.01 / 2 * 8/9 = 0.195674... + 0.004444... ; n* = 4.99702
    found = estimate([of(90, 3, 1), of(10, 1, 1)])
    assert found.share == pytest.approx(0.725)
    assert found.n_effective == pytest.approx(1 / (0.2025 * 86 / 89 + 0.005 * 8 / 9))
    assert (found.low, found.high) == pytest.approx(wilson(0.725, found.n_effective))
    assert (found.least, found.most) == (found.share, found.share)


def test_where_all_were_judged_the_interval_is_a_point():
    found = estimate([of(4, 3, 1), of(1, 1, 0)])
    assert (found.share, found.low, found.high, found.n_effective) == (0.8, 0.8, 0.8, None)


def test_what_is_not_known_is_left_out_and_bounded():
    # Half of all in each; of four that were drawn two leaked for sure, three or four at most.
    found = estimate([of(50, 2, 1, n_unsure=1), of(50, 2, 0, n_unsure=1, n_unseen=1)])
    assert found.share == pytest.approx(0.5 * 2 / 3 + 0.5)
    assert (found.least, found.most) == pytest.approx((0.5, 0.875))


def test_a_stratum_in_which_nothing_was_judged_feigns_no_certainty():
    found = estimate([of(4, 4, 0), of(6, 0, 0, n_unseen=2)])
    # The first stands for all ten: v = 1 / 4 * (10 - 4) / (10 - 1)
    assert found.n_effective == pytest.approx(6)
    assert found.share == 1.0
    assert found.low == pytest.approx(wilson(1.0, 6)[0])
    assert (found.least, found.most) == pytest.approx((0.4, 1.0))


def test_an_interval_ends_where_what_was_seen_ends():
    found = estimate([of(10, 8, 1)])
    assert found.low >= 0.8
    assert found.high <= 0.9


def test_before_anything_was_judged_nothing_is_known():
    found = estimate([of(10, 0, 0, n_unseen=3)])
    assert found.share is None
    assert (found.low, found.high, found.least, found.most) == (0.0, 1.0, 0.0, 1.0)


def test_verdicts_count_by_the_text_of_a_finding():
    (stratum,) = draw([a_finding(n) for n in range(5)], 5, by=())
    verdicts = saying({0: "leak", 1: "template", 2: "common source", 3: "unsure", 9: "leak"})
    assert tally(stratum, verdicts) == of(5, 1, 2, n_unsure=1, n_unseen=1, name="all")


@pytest.mark.parametrize(
    ("shares", "sizes", "n"),
    [
        ((0.95,), (2000,), 100),
        ((1.0, 0.9, 0.6), (1200, 500, 40), 100),
        ((0.99, 0.5), (3000, 100), 60),
        ((0.9, 0.7, 0.8, 0.2), (60, 60, 60, 20), 80),
    ],
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(shares, sizes, n):
    chance = random.Random(0)
    worlds = {}
    at = 0
    for stratum, (share, size) in enumerate(zip(shares, sizes, strict=True)):
        leaks = round(share * size)
        for number in range(size):
            worlds[at] = stratum, number < leaks
            at += 1
    truth = sum(is_leak for _, is_leak in worlds.values()) / len(worlds)
    by_stratum = [[n for n, (one, _) in worlds.items() if one == s] for s in range(len(sizes))]
    counts = allocate({str(s): size for s, size in enumerate(sizes)}, n)
    n_held, n_rounds = 0, 1500
    for _ in range(n_rounds):
        tallies = []
        for stratum, members in enumerate(by_stratum):
            drawn = chance.sample(members, counts[str(stratum)])
            n_leaks = sum(worlds[one][1] for one in drawn)
            tallies.append(of(len(members), n_leaks, len(drawn) - n_leaks))
        found = estimate(tallies)
        n_held += found.low - 1e-12 <= truth <= found.high + 1e-12
    # Chance alone moves this by 0.006 (one standard deviation).
    assert n_held / n_rounds >= 0.93
