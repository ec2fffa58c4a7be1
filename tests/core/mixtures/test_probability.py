"""A detector whose score alone may not act: verdicts do, or a calibrated probability."""

import json
from dataclasses import replace

import duckdb
import pytest

from decon_core.config import detector_registry as registry
from decon_core.config.detector_registry import Kind
from decon_core.config.mixtures import DEFAULT, Leaks, Mixture, read_mixtures
from decon_core.config.policy import Policy
from decon_core.decisions.annotations import Annotation, Annotations
from decon_core.decisions.calibration import Point, calibrate, planted_steps
from decon_core.decisions.candidates import Evidence
from decon_core.decisions.decide import counts, probability_of
from decon_core.decisions.judged import calibrated
from decon_core.decisions.verdicts import Verdict, Verdicts
from decon_core.errors import MissingError
from decon_core.mixtures.build import build_shares
from decon_core.mixtures.clean_evals import build_clean_benchmarks
from decon_core.mixtures.verify import verify
from decon_core.report.review.found import ReviewFilter, open_report
from tests.core.detectors.first_sentence import FirstSentence
from tests.core.places import CLEAN, Place, build_mixture, removed_in, report_of

N = 80
PROBABLE = Mixture(name="probable", leaks=Leaks(min_probability=0.9, min_judged=40))


class Unproven(FirstSentence):
    """What begins like a question may be about anything."""

    kinds = (Kind("first sentence"),)
    threshold = replace(FirstSentence.threshold, of=("first sentence",))


@pytest.fixture
def unproven(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register(Unproven)


@pytest.fixture
def place(unproven, bench, make_words):
    """Document n begins as item n does; the share of the item that this is rises with n."""
    bench.policy = Policy.from_mapping(
        {
            "detectors": ["first_sentence"],
            "tokenizer_str": "words",
            "first_sentence_threshold": 0.1,
            "first_sentence_floor": 0.05,
            "review": ["first sentence"],
        }
    )
    items = [
        (f"{make_words(('first', n), n + 12)}. {make_words(('rest', n), N - n + 5)}", None, None)
        for n in range(N)
    ]
    place = Place(bench, bench.prepare({"b": items}))
    texts = [
        f"{question.partition('.')[0]}. {make_words(question, 20)}" for question, _, _ in items
    ]
    place.put({"s.jsonl": texts[: N // 2], "t.jsonl": texts[N // 2 :]})
    return place.scan()


def texts_of(place):
    """The matched text in each document, by its number."""
    reader, (pack,) = place.builder().reader, place.packs
    found = {}
    for number, shard in enumerate(pack.shards):
        for row in reader.entries(shard, place.versions, source="web").to_pylist():
            found[row["row"] + number * N // 2] = row["text_id"], row["fingerprint"], row["score"]
    assert sorted(found) == [*range(N)]
    return found


def evidence(place, is_sd, *, least=0):
    """A model's annotation of each matched text from the document `least` on."""
    lines = tuple(
        Annotation(pair=text_id, fingerprint=item, kind="model", by="m", is_sd=is_sd(n))
        for n, (text_id, item, _) in texts_of(place).items()
        if n >= least
    )
    return Evidence(Annotations(lines))


def builder_of(place, *mixtures, **changes):
    return replace(place.builder(*mixtures), **changes)


def numbers_left(place, builder, mixture=PROBABLE):
    folder = build_mixture(builder, mixture, place.packs[0]).folder
    rows = [
        json.loads(line)["id"]
        for name in ("s.jsonl", "t.jsonl")
        for line in (folder / name).read_bytes().splitlines()
    ]
    return {int(one.partition("-")[2]) + N // 2 * one.startswith("t") for one in rows}


def test_a_score_alone_removes_nothing_and_the_manifest_says_how_much_that_leaves(place):
    builder = place.builder()
    assert numbers_left(place, builder, CLEAN) == {*range(N)}
    manifest = build_mixture(builder, CLEAN, place.packs[0]).manifest
    assert manifest["totals"]["found"] == {"review": N}


def test_a_mixture_may_leave_out_all_candidates_before_anybody_has_judged_them(place):
    cautious = Mixture(name="cautious", leaks=Leaks(review="remove"))
    builder = place.builder(cautious)
    assert numbers_left(place, builder, cautious) == set()
    manifest = build_mixture(builder, cautious, place.packs[0]).manifest
    assert manifest["totals"]["found"] == {"review": N}
    rows = removed_in(place.bench.store.mixture("cautious", "web-0000"))
    assert {*rows["why"].to_pylist()} == {"review"}
    assert not verify(builder, cautious, workers=1).problems


def test_a_verdict_removes_whatever_the_score(place):
    matched_texts = texts_of(place)
    place.verdicts = Verdicts(
        {
            matched_texts[n][0]: Verdict(
                pair=matched_texts[n][0], fingerprint=matched_texts[n][1], verdict=verdict
            )
            for n, verdict in ((3, "leak"), (70, "leak"), (71, "template"))
        }
    )
    builder = place.builder()
    assert {*range(N)} - numbers_left(place, builder, CLEAN) == {3, 70}
    assert build_mixture(builder, CLEAN, place.packs[0]).manifest["totals"]["found"] == {
        "leak": 2,
        "review": N - 3,
    }


def test_what_is_probable_enough_by_judged_pairs_is_removed(place):
    judged = evidence(place, lambda n: n >= 50)
    builder = builder_of(place, PROBABLE, evidence=judged)
    curve = calibrated(builder.reader, place.packs, judged.annotations).load()
    gone = {*range(N)} - numbers_left(place, builder)
    expected = {
        n
        for n, (_, _, score) in texts_of(place).items()
        if curve.probability("first_sentence", "b", score, least=40) >= 0.9
    }
    assert gone == expected
    assert {*range(60, N)} <= gone <= {*range(40, N)}
    assert not verify(builder, PROBABLE, workers=1).problems
    manifest = build_mixture(builder, PROBABLE, place.packs[0]).manifest
    assert place.bench.store.calibration(manifest["calibration"]).is_file()
    rows = removed_in(place.bench.store.mixture("probable", "web-0000"))
    details = {*rows["detail"].to_pylist()}
    assert all("; probability " in one and " from judged pairs" in one for one in details)


def judging(place, is_sd, judged_is="leak"):
    """Verdicts of nobody, with a model's judgements of the first ten documents."""
    annotations = evidence(place, is_sd).annotations
    lines = tuple(one for one in annotations.lines[:10])
    return Verdicts().with_judgements(Annotations(lines), judged_is)


def test_a_judgement_decides_where_no_score_is_a_proof(place):
    judged = judging(place, lambda n: n in (2, 5))
    builder = builder_of(place, verdicts=judged)
    assert {*range(N)} - numbers_left(place, builder, CLEAN) == {2, 5}
    manifest = build_mixture(builder, CLEAN, place.packs[0]).manifest
    assert manifest["totals"]["found"] == {"leak": 2, "review": N - 10}
    rows = removed_in(place.bench.store.mixture(CLEAN.name, "web-0000"))
    assert all("a judge called it a duplicate" in one for one in rows["detail"].to_pylist())


def test_a_judged_duplicate_may_wait_for_review(place):
    judged = judging(place, lambda n: n in (2, 5), "review")
    builder = builder_of(place, verdicts=judged)
    assert numbers_left(place, builder, CLEAN) == {*range(N)}
    manifest = build_mixture(builder, CLEAN, place.packs[0]).manifest
    assert manifest["totals"]["found"] == {"review": N}


def test_a_person_decides_against_a_judgement(place):
    judged = evidence(place, lambda n: True).annotations
    text_id, item, _ = texts_of(place)[2]
    said = Verdicts({text_id: Verdict(pair=text_id, fingerprint=item, verdict="template")})
    builder = builder_of(place, verdicts=said.with_judgements(judged, "leak"))
    assert numbers_left(place, builder, CLEAN) == {2}


def test_a_judgement_rebuilds_a_mixture_only_where_it_may_decide(place):
    (pack,) = place.packs
    build_mixture(place.builder(CLEAN), CLEAN, pack)
    elsewhere = Annotation(pair="f" * 16, fingerprint="f" * 16, kind="model", by="m", is_sd=True)
    other = Verdicts().with_judgements(Annotations((elsewhere,)), "leak")
    assert builder_of(place, CLEAN, verdicts=other).is_current(CLEAN, pack)
    said = judging(place, lambda n: True)
    assert not builder_of(place, CLEAN, verdicts=said).is_current(CLEAN, pack)


def test_below_all_judged_scores_nothing_is_known_and_nothing_removed(place):
    judged = evidence(place, lambda n: True, least=40)
    gone = {*range(N)} - numbers_left(place, builder_of(place, PROBABLE, evidence=judged))
    assert gone == {*range(40, N)}


def test_a_variant_is_as_probable_as_the_judged_variants():
    def points(detector, share):
        matched_texts = ((f"{detector} {n}", n < 60 * share) for n in range(60))
        return [
            Point(detector, "quiz", text_id, text_id, 0.8, is_sd)
            for text_id, is_sd in matched_texts
        ]

    calibration = calibrate([*points("aligned", 1.0), *points("aligned variant", 0.5)])
    leaks = Leaks(min_probability=0.9)
    probability = {
        kind: probability_of(
            {"detector": "aligned", "kind": kind, "benchmark": "quiz", "score": 0.9},
            leaks,
            calibration,
        )
        for kind in ("edited", "variant", "part")
    }
    assert probability == {"edited": 1.0, "variant": 0.5, "part": None}


def test_planted_benchmarks_make_no_candidate_probable():
    """Also none of a kind that nobody judged, beside one that is judged."""
    judged = [Point("aligned", "quiz", f"{n}", f"{n}", 0.1, True) for n in range(N)]
    leaks = Leaks(min_probability=0.01)
    candidates = [step for step in planted_steps() if step["kind"] in ("variant", "part")]
    assert candidates
    for step in candidates:
        entry = {
            "detector": "aligned",
            "kind": step["kind"],
            "score": step["score_from"],
            "benchmark": "quiz",
            "split": "test",
            "verdict": None,
            "needs_review": True,
            "is_contaminated": False,
            "is_no_answer": False,
            "is_judged_duplicate": False,
        }
        for calibration in (calibrate([]), calibrate(judged)):
            assert probability_of(entry, leaks, calibration) is None
            assert not counts(entry, leaks, calibration)
        assert counts({**entry, "kind": "edited"}, leaks, calibrate(judged))


def test_too_few_judged_pairs_are_refused_with_the_remedy(place):
    judged = evidence(place, lambda n: True, least=N - 39)
    with pytest.raises(MissingError) as error:
        build_mixture(builder_of(place, PROBABLE, evidence=judged), PROBABLE, place.packs[0])
    (problem,) = error.value.problems
    assert problem.where == "mixture 'probable': leaks.min_probability"
    assert problem.found == "39 judged pairs of first_sentence"
    assert problem.expected == "at least 40 (min_judged)"
    assert "`decon-assets judge`" in problem.remedy
    with pytest.raises(MissingError):
        build_mixture(builder_of(place, PROBABLE), PROBABLE, place.packs[0])


def test_another_judgement_rebuilds_what_selects_by_probability_and_nothing_else(place):
    before = evidence(place, lambda n: n >= 50)
    (pack,) = place.packs
    builder = builder_of(place, CLEAN, PROBABLE, evidence=before)
    for mixture in (CLEAN, PROBABLE):
        build_mixture(builder, mixture, pack)
    later = builder_of(place, CLEAN, PROBABLE, evidence=evidence(place, lambda n: n >= 30))
    assert later.is_current(CLEAN, pack)
    assert not later.is_current(PROBABLE, pack)
    assert builder_of(place, CLEAN, PROBABLE, evidence=before).is_current(PROBABLE, pack)


def test_workers_and_a_control_use_the_same_probabilities(place):
    control = Mixture(name="control", take="control", control_of="probable")
    judged = evidence(place, lambda n: n >= 50)
    (pack,) = place.packs
    builder = builder_of(place, PROBABLE, control, evidence=judged)
    shares = [*build_shares(builder, [(PROBABLE, pack), (control, pack)], workers=2)]
    built = {one.name: future.result() for one, _, future in shares}
    assert built["probable"].manifest["fingerprint"] == builder.fingerprint(PROBABLE, pack)
    totals = {name: one.manifest["totals"] for name, one in built.items()}
    assert totals["control"]["n_documents_out"] == totals["probable"]["n_documents_out"] < N
    alone = builder_of(place, PROBABLE, control, evidence=judged)
    assert build_mixture(alone, PROBABLE, pack).was_there
    assert build_mixture(alone, control, pack).was_there


def test_spans_are_cut_where_they_are_probable(place):
    cut = replace(PROBABLE, name="cut", cut="spans")
    builder = builder_of(place, cut, evidence=evidence(place, lambda n: n >= 50))
    totals = build_mixture(builder, cut, place.packs[0]).manifest["totals"]
    assert totals["n_cut"] >= 20
    assert totals["n_documents_out"] == N


def test_a_clean_benchmark_keeps_candidates_and_lists_them(place):
    matched_texts = texts_of(place)
    text_id, item, _ = matched_texts[7]
    place.verdicts = Verdicts({text_id: Verdict(pair=text_id, fingerprint=item, verdict="leak")})
    (built,) = build_clean_benchmarks(place.builder(), place.versions)
    assert [one["instance_index"] for one in built.manifest["removed"]] == [7]
    listed = [one["instance_index"] for one in built.manifest["review"]]
    assert listed == [n for n in range(N) if n != 7]


def test_the_report_counts_candidates_neither_as_leaks_nor_as_clean(place):
    matched_texts = texts_of(place)
    said = ((*matched_texts[3][:2], "leak"), (*matched_texts[71][:2], "template"))
    verdicts = Verdicts(
        {
            text_id: Verdict(pair=text_id, fingerprint=item, verdict=one)
            for text_id, item, one in said
        }
    )
    builder = place.builder()
    n = report_of(
        builder.store, place.packs, place.versions, builder.policy, verdicts=verdicts
    ).counts
    assert (n["leaked_items"], n["review_items"]) == (1, N - 2)
    with duckdb.connect(str(builder.store.report), read_only=True) as connection:
        found = connection.sql("SELECT instance_index, status FROM item_status").fetchall()
        documents = "SELECT count() FROM documents WHERE needs_review AND n_review_items = 1"
        assert connection.sql(documents).fetchall() == [(N - 2,)]
        by_detector = "SELECT n_leaked, n_review FROM by_detector"
        assert connection.sql(by_detector).fetchall() == [(1, N - 2)]
    # What a reviewer cleared cannot be found by a detector whose score is proof: it is not clean.
    classes = {3: "leaked", 71: "cannot be checked"}
    assert dict(found) == {n: classes.get(n, "review") for n in range(N)}
    with open_report(builder.store.report) as opened:
        called = [one.called for one in opened.matched_texts(ReviewFilter())]
    assert sorted({*called}) == ["leak", "near miss", "review"]


# Settings -----------------------------------------------------------------------------------------


def problems_of(**leaks):
    entry = {"name": "m", "leaks": leaks}
    detectors = ("decon", "first_sentence")
    _, problems = read_mixtures([entry], where="f", sources=["web"], detectors=detectors)
    return [str(one) for one in problems]


@pytest.mark.usefixtures("unproven")
def test_a_mixture_may_name_a_detector_whose_score_is_no_proof():
    assert not problems_of(detectors=["first_sentence"])
    assert not problems_of(detectors=["first_sentence"], verdicts=["leak"])
    assert not problems_of(detectors=["first_sentence"], min_probability=0.9)
    assert not problems_of(min_probability=0.9, min_judged=10)
    assert not problems_of()


@pytest.mark.usefixtures("unproven")
def test_settings_without_effect_are_refused():
    (problem,) = problems_of(detectors=["decon"], min_probability=0.9)
    assert "every chosen detector decides by its score" in problem
    (problem,) = problems_of(min_judged=10)
    assert "mixture[0].leaks.min_judged: found 10; expected also min_probability" in problem
    assert len(problems_of(min_probability=1.5)) == 1


def test_a_mixture_without_a_probability_has_the_settings_that_it_had_before():
    assert "min_probability" not in DEFAULT.to_json()["leaks"]
    assert PROBABLE.to_json()["leaks"]["min_judged"] == 40
