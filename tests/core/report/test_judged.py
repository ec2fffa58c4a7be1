"""Judged pairs in the report: who judged what, the probability by score, and its figure."""

from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.alignment.kinds import KINDS
from decon_core.decisions.annotations import Annotation, Annotations
from decon_core.decisions.calibration import (
    ALL,
    LEAST_JUDGED,
    Curve,
    fit_steps,
    planted_step,
    planted_steps,
    wilson,
)
from decon_core.decisions.candidates import Candidate, Evidence
from decon_core.decisions.verdicts import Verdict, Verdicts
from decon_core.report.html.build import write_page
from decon_core.report.html.still import figures, write_figures
from decon_core.report.review.found import open_report
from decon_core.report.review.judged import judged_tables
from decon_core.report.review.show import Paint, page
from decon_core.report.tables import TABLES, table_of
from decon_core.storage.checksums import is_whole
from tests.core.report.pages import data_of
from tests.core.report.report_worlds import RUN
from tests.core.report.reports import write_report

N = 60


def key(number):
    return f"{number:016x}"


def match(number, *, detector="decon", benchmark="quiz", score=None, row=0):
    return {
        "text_id": key(number),
        "fingerprint": key(number // 2),
        "detector": detector,
        "benchmark": benchmark,
        "split": "test",
        "instance_index": number,
        "row": row,
        "score": number / N if score is None else score,
    }


@pytest.fixture
def matches(tmp_path):
    """Sixty texts; some in several documents, some by two detectors or of another benchmark."""
    rows = [match(n) for n in range(N)]
    rows += [match(n, row=1, score=n / N / 2) for n in range(0, N, 3)]
    rows += [match(n, detector="ratcliff", score=0.5) for n in range(5)]
    rows += [match(n + N, benchmark="exam", score=0.9) for n in range(3)]
    paths = []
    for number in range(2):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table_of("matches", rows[number::2]), path)
        paths.append(path)
    return paths


def said(number, *, is_sd=True, **others):
    match_type = "equivalent" if is_sd else "unrelated"
    named = {"pair": key(number), "fingerprint": key(number // 2), "kind": "model", "by": "m"}
    return Annotation(**{**named, "is_sd": is_sd, "match_type": match_type, **others})


def failed(number):
    return said(number, is_sd=None, match_type="", unjudged="HTTP 500")


def person(number, verdict):
    return {key(number): Verdict(pair=key(number), fingerprint=key(number // 2), verdict=verdict)}


def gathered(matches, annotations=(), people=(), candidates=(), *, has_snippets=True):
    verdicts = Verdicts({text_id: one for each in people for text_id, one in each.items()})
    evidence = Evidence(Annotations(tuple(annotations)), tuple(candidates))
    tables = judged_tables(matches, verdicts, evidence, has_snippets=has_snippets)
    assert {name: one.schema for name, one in tables.items()} == {
        name: TABLES[name].schema for name in tables
    }
    return {name: one.to_pylist() for name, one in tables.items()}


def test_without_a_judgement_there_is_nothing(matches):
    assert not any(gathered(matches).values())
    assert not any(gathered([]).values())


def test_every_judgement_is_listed_with_its_score_and_who_made_it(matches):
    annotations = [said(6, reasoning="same"), failed(7), said(999), said(2, is_sd=False)]
    tables = gathered(matches, annotations, [person(2, "leak"), person(8, "unsure")])
    rows = {(row["pair"], row["detector"]): row for row in tables["judged_pairs"]}
    assert len(rows) == 6  # one by two detectors
    model = rows[key(6), "decon"]
    assert (model["score"], model["is_sd"], model["judge"]) == (0.1, True, "model")
    assert (model["judged_by"], model["item"], model["reasoning"]) == ("m", "test 6", "same")
    assert rows[key(7), "decon"]["unjudged"] == "HTTP 500"
    assert rows[key(999), None]["score"] is None
    assert {rows[key(2), one]["judge"] for one in ("decon", "ratcliff")} == {"person"}
    assert rows[key(2), "decon"]["is_sd"] is True
    assert rows[key(8), "decon"]["unjudged"] == "a person is unsure"


def test_the_curve_is_that_of_the_judged_pairs_with_their_highest_scores(matches):
    annotations = [said(n, is_sd=n > 30) for n in range(N)] + [said(N, is_sd=False)]
    tables = gathered(matches, annotations)
    steps = [row for row in tables["calibration"] if row["detector"] == "decon"]
    own = [row for row in steps if row["benchmark"] == "quiz"]
    expected = fit_steps([(n / N, n > 30) for n in range(N)])
    assert [(row["score_from"], row["n_judged"], row["low"]) for row in own] == [
        (one.score_from, one.n_judged, one.low) for one in expected
    ]
    assert sum(row["n_judged"] for row in steps if row["benchmark"] is None) == N + 1
    fits = {(row["detector"], row["benchmark"] or ALL): row for row in tables["calibration_fit"]}
    pooled = fits["decon", ALL]
    assert (pooled["n_pairs"], pooled["n_judged"], pooled["n_sd"]) == (N + 3, N + 1, 29)
    assert pooled["n_by_models"] == N + 1
    assert 0 < pooled["brier"] < pooled["brier_of_share"]
    assert fits["decon", "exam"]["brier"] is None
    assert fits["ratcliff", "quiz"]["n_judged"] == 5


@pytest.mark.parametrize(("n_judged", "is_enough"), [(1, False), (19, False), (20, True)])
def test_fewer_than_twenty_judged_pairs_are_no_probability(matches, tmp_path, n_judged, is_enough):
    """One verdict on one text was the probability of every text with its score or a higher one."""
    tables = gathered(matches, [said(n, is_sd=False) for n in range(n_judged)])
    found = pa.concat_tables(map(pq.read_table, matches)).to_pylist()
    report = write_report(tmp_path / "r.duckdb", runs=[RUN], matches=found, **tables)
    with duckdb.connect(str(report), read_only=True) as connection:
        query = "SELECT count(*) FROM text_probabilities WHERE detector = 'decon'"
        (n,) = connection.execute(query).fetchone()
    assert bool(n) == is_enough
    (pooled,) = (
        row
        for row in tables["calibration_fit"]
        if row["detector"] == "decon" and row["benchmark"] is None
    )
    assert pooled["n_judged"] == n_judged


def test_the_probability_of_every_text_is_that_of_its_curve(matches, tmp_path):
    annotations = [said(n, is_sd=n > 30) for n in range(5, N)] + [said(N, is_sd=False)]
    tables = gathered(matches, annotations)
    found = pa.concat_tables(map(pq.read_table, matches)).to_pylist()
    report = write_report(tmp_path / "r.duckdb", runs=[RUN], matches=found, **tables)
    points = [(n / N, n > 30) for n in range(5, N)]
    own, pooled = (Curve(fit_steps(some)) for some in (points, [*points, (0.9, False)]))
    curves = {"quiz": own, "exam": pooled}
    expected = {}
    for row in (one for one in found if one["detector"] == "decon" and not one["row"]):
        if step := curves[row["benchmark"]].step_at(row["score"]):
            expected[row["text_id"]] = (step.probability, step.low, step.n_judged)
    query = "SELECT text_id, probability, low, n_in_step FROM text_probabilities"
    with duckdb.connect(str(report), read_only=True) as connection:
        rows = connection.execute(f"{query} WHERE detector = 'decon'").fetchall()
    assert {text_id: (*values,) for text_id, *values in rows} == expected
    assert len(expected) == N - 5 + 3


def test_variants_have_a_curve_of_their_own(tmp_path):
    """Of sixty places of the same scores those with other numbers are duplicates half as often."""
    found = [
        match(n, detector="aligned", score=0.8) | {"kind": "variant" if n % 2 else "edited"}
        for n in range(N)
    ]
    pq.write_table(table_of("matches", found), tmp_path / "0.parquet")
    annotations = [said(n, is_sd=n % 2 == 0 or n % 4 == 1) for n in range(N)]
    tables = gathered([tmp_path / "0.parquet"], annotations)
    fit = {(row["detector"], row["benchmark"]): row for row in tables["calibration_fit"]}
    assert {key: (row["n_pairs"], row["n_sd"]) for key, row in fit.items() if key[1]} == {
        ("aligned", "quiz"): (30, 30),
        ("aligned variant", "quiz"): (30, 15),
    }
    assert {row["detector"] for row in tables["judged_pairs"]} == {"aligned"}
    report = write_report(tmp_path / "r.duckdb", runs=[RUN], matches=found, **tables)
    query = "SELECT kind, probability, count(*) FROM text_probabilities GROUP BY ALL ORDER BY kind"
    with duckdb.connect(str(report), read_only=True) as connection:
        assert connection.execute(query).fetchall() == [("variant", 0.5, 30), (None, 1.0, 30)]


def test_the_planted_table_has_every_kind_and_its_shares_never_fall():
    assert {(step["detector"], step["kind"]) for step in planted_steps()} == {
        ("aligned", kind) for kind in KINDS
    }
    for kind in KINDS:
        steps = [step for step in planted_steps() if step["kind"] == kind]
        shares = [step["n_copies"] / step["n_places"] for step in steps]
        assert shares == sorted(shares)
        edges = [edge for step in steps for edge in (step["score_from"], step["score_to"])]
        assert edges == sorted(edges)
        for step, share in zip(steps, shares, strict=True):
            assert step["n_places"] >= LEAST_JUDGED
            low, high = wilson(share, step["n_places"])
            assert low - 1e-4 <= step["low"] <= share <= step["high"] <= high + 1e-4


def aligned(number, kind, score):
    return match(number, detector="aligned", score=score) | {"kind": kind}


def probabilities(tmp_path, found, annotations):
    pq.write_table(table_of("matches", found), tmp_path / "0.parquet")
    tables = gathered([tmp_path / "0.parquet"], annotations)
    report = write_report(tmp_path / "r.duckdb", runs=[RUN], matches=found, **tables)
    query = "SELECT text_id, kind, probability, low, high, n_in_step, basis FROM text_probabilities"
    with duckdb.connect(str(report), read_only=True) as connection:
        return {text_id: (*values,) for text_id, *values in connection.execute(query).fetchall()}


def test_without_judgements_a_text_has_the_share_of_its_kind_and_score_in_planted_benchmarks(
    tmp_path,
):
    edges = [(step["kind"], step["score_from"]) for step in planted_steps()]
    found = [aligned(n, *edge) for n, edge in enumerate([*edges, ("edited", 0.9)])]
    found += [aligned(97, "part", 0.01), aligned(98, None, 1.0), match(99, score=1.0)]
    expected = {}
    for row, (kind, score) in zip(found, [*edges, ("edited", 0.9)], strict=False):
        step = planted_step("aligned", kind, score)
        share = step["n_copies"] / step["n_places"]
        numbers = (share, step["low"], step["high"], step["n_places"])
        expected[row["text_id"]] = (kind, *numbers, "planted benchmarks")
    assert expected[key(0)][4] == planted_steps()[0]["n_places"]
    assert probabilities(tmp_path, found, ()) == expected
    assert planted_step("aligned", "part", 0.01) is planted_step("decon", "verbatim", 1.0) is None


def test_judgements_of_the_user_come_before_planted_benchmarks(tmp_path):
    """Twenty variants are judged: all others keep what planted benchmarks say."""
    found = [aligned(n, "variant", 0.8) for n in range(20)]
    found += [aligned(20, "variant", 0.5), aligned(21, "verbatim", 1.0)]
    judged = probabilities(tmp_path, found, [said(n, is_sd=n < 5) for n in range(20)])
    assert {judged[key(n)][1] for n in range(20)} == {0.25}
    assert {judged[key(n)][-1] for n in range(20)} == {"judged here"}
    assert key(20) not in judged  # below all judged scores nothing is known
    assert judged[key(21)][-1] == "planted benchmarks"
    few = probabilities(tmp_path, found, [said(n, is_sd=n < 5) for n in range(19)])
    assert {row[-1] for row in few.values()} == {"planted benchmarks"}


def test_page_and_review_say_where_a_probability_comes_from(tmp_path):
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[{"text_id": key(0), "detectors": "aligned", "score": 1.0, "question": "q"}],
        matches=[aligned(0, "verbatim", 1.0)],
    )
    write_page(report, tmp_path / "r.html")
    n = planted_steps()[0]["n_places"]
    measured = f"{n:,} places with such a score were copies (measured on planted items)"
    expected = f"aligned: 97 % (97 to 98 %) of {measured}"
    assert data_of(tmp_path / "r.html", "columns")["names"]["probability"]["values"] == [expected]
    with open_report(report) as opened:
        lines = page(opened.matched_text(key(0)), width=99, paint=Paint(has_colour=False))
    assert f"probability: {expected}" in " ".join(" ".join(lines).split())


def test_candidates_of_files_have_a_curve_of_their_own(matches):
    named = {"benchmark": "mbpp", "detector": "neighbours", "fingerprint": key(0)}
    candidates = [
        Candidate(pair=key(n + 500), item=f"{n}", score=n / 10, **named) for n in range(4)
    ]
    candidates += [Candidate(pair=key(504), item="4", **named)] * 2
    candidates.append(replace(candidates[0], score=-0.5))  # the same texts elsewhere
    tables = gathered(matches, [said(n + 500) for n in range(3)] + [said(504)], (), candidates)
    (own, pooled) = [row for row in tables["calibration_fit"] if row["detector"] == "neighbours"]
    assert {one["benchmark"] for one in (own, pooled)} == {None, "mbpp"}
    assert (own["n_pairs"], own["n_judged"], own["n_by_models"]) == (5, 3, 4)
    assert {row["item"] for row in tables["judged_pairs"]} == {"0", "1", "2", "4"}


def test_without_snippets_no_reason_is_kept(matches):
    refused = replace(failed(7), unjudged='HTTP 400 ({"error": "it quotes the text"})')
    annotations = [said(6, reasoning="it quotes the text"), refused]
    tables = gathered(matches, annotations, has_snippets=False)
    assert {row["reasoning"] for row in tables["judged_pairs"]} == {None}
    assert tables["judged_pairs"][1]["unjudged"] == "HTTP 400"
    assert "quotes" not in str(tables)


def test_the_page_has_the_curve_the_counts_and_what_a_model_says(matches, tmp_path):
    annotations = [said(n, is_sd=n > 30, confidence=0.9, reasoning="why") for n in range(N)]
    tables = gathered(matches, annotations)
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[{"text_id": key(40), "detectors": "decon", "score": 0.9}],
        **tables,
    )
    facts = write_page(report, tmp_path / "r.html")
    sections = data_of(tmp_path / "r.html", "overview")["sections"]
    (section,) = [one for one in sections if one["key"] == "calibration"]
    (choice,) = section["choices"]
    # Of ratcliff five pairs are judged: too few.
    assert [one["title"] for one in choice["charts"]] == ["Probability of a duplicate: decon"]
    low, high, line, counts_of_steps = choice["charts"][0]["data"]
    judged = [int(text.split(" of ")[1]) for text in counts_of_steps["text"]]
    assert sum(judged) == N
    assert line["x"] == low["x"] == high["x"]
    assert line["x"] == sorted(line["x"])
    assert line["y"] == sorted(line["y"])
    assert all(a <= b <= c for a, b, c in zip(low["y"], line["y"], high["y"], strict=True))
    counts, steps = section["tables"]
    assert counts["rows"][0][:4] == ["decon", "all benchmarks", N + 3, N]
    assert len(steps["rows"]) == len(tables["calibration"])
    write_figures(figures(facts), tmp_path / "figures")
    file = tmp_path / "figures" / "probability_of_a_duplicate_decon.svg"
    assert all(f">{text}<" in file.read_text() for text in counts_of_steps["text"])
    assert is_whole(file)
    (judgement,) = data_of(tmp_path / "r.html", "columns")["plain"]["judgement"]
    assert judgement == "duplicate · equivalent · confidence 0.90 · m · why"


def test_a_page_with_few_judgements_says_how_many_it_needs_and_what_makes_them(tmp_path):
    pairs = [{"pair": key(n), "score": 0.9, "is_sd": n > 0 or None} for n in range(3)]
    report = write_report(tmp_path / "r.duckdb", runs=[RUN], judged_pairs=pairs)
    write_page(report, tmp_path / "r.html")
    sections = data_of(tmp_path / "r.html", "overview")["empty"]
    (section,) = [one for one in sections if one["key"] == "calibration"]
    assert "at least 20 judged pairs" in section["words"][0]
    assert "2 pairs with a score. To judge more, run decon-assets judge" in section["words"][0]
