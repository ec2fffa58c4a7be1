"""The first lines of the page: what was found, where most, and what to do next."""

from pathlib import Path

import pytest

from decon_core.report.html.gather import Facts
from decon_core.report.html.opening import Scanned, opening

TOTALS = {
    "n_items": 20,
    "n_checkable": 18,
    "n_leaked": 0,
    "n_leaked_checkable": 0,
    "n_no_answer": 0,
    "n_review": 0,
    "n_review_texts": 0,
    "n_documents": 1_200,
    "n_sources": 3,
    "n_unreadable": 0,
    "n_not_read": 0,
}
FIRST = {"rate_before": None, "made_before": None}
COUNTS = {"n_checkable": 9, "n_no_answer": 0, "n_review": 0, **FIRST}
CLEAN = {"n_leaked": 0, "n_leaked_checkable": 0, "rate": 0.0, "low": 0.0, "high": 0.3}
RANKED = [
    {
        **COUNTS,
        "benchmark": "quiz",
        "n_leaked": 3,
        "n_leaked_checkable": 3,
        "rate": 1 / 3,
        "low": 0.1,
        "high": 0.6,
        "place": "web",
        "n_in_place": 2,
        "n_places": 2,
    },
    {**COUNTS, **CLEAN, "benchmark": "poll", "place": None, "n_in_place": None},
]
MIXTURE = {"mixture": "clean", "n_documents_in": 1_200, "n_documents_out": 1_190, "n_cut": 0}


def opened(*, notice="", ranked=RANKED, mixtures=(), not_scanned=(), scanned=None, **totals):
    results = {
        "totals": [TOTALS | totals],
        "ranked": ranked,
        "mixtures": mixtures,
        "clean_mixtures": mixtures,
        "not_scanned": not_scanned,
    }
    return opening(Facts(results, None, {}, None, notice), scanned)


FROM_WEB = "3 of 18 checkable items leaked (16.7 %). 2 of them are from web."
WAITING = "2 items need review."
GREEN = "No leak: none of the 18 checkable items was found."
LEAKED = {"n_leaked": 3, "n_leaked_checkable": 3}
ONE = {"n_leaked": 1, "n_leaked_checkable": 1}


@pytest.mark.parametrize(
    ("facts", "tone", "verdict"),
    [
        (
            LEAKED | {"n_items": 18},
            "leaked",
            "3 of 18 items leaked (16.7 %). Highest rate: quiz, 3 of 9, 2 of them from web.",
        ),
        (
            {**LEAKED, "ranked": RANKED[:1]},
            "leaked",
            FROM_WEB,
        ),
        (
            {**LEAKED, "ranked": RANKED[:1], "n_review": 1},
            "leaked",
            f"{FROM_WEB} 1 more item needs review.",
        ),
        (
            {"n_leaked": 4, "n_leaked_checkable": 3, "ranked": RANKED[:1]},
            "leaked",
            FROM_WEB.replace("2 of", "1 other item also leaked. 2 of"),
        ),
        ({"n_leaked": 1, "ranked": RANKED[1:]}, "leaked", "1 item leaked."),
        (
            {**ONE, "ranked": [{**RANKED[0], **ONE, "n_in_place": 1}]},
            "leaked",
            "1 of 18 checkable items leaked (5.6 %). It is from web.",
        ),
        (
            {**LEAKED, "ranked": [{**RANKED[0], "n_in_place": 3}]},
            "leaked",
            FROM_WEB.replace("2 of them are", "They are"),
        ),
        (
            {**LEAKED, "ranked": [{**RANKED[0], "n_in_place": 1}]},
            "leaked",
            FROM_WEB.replace("2 of them are from web", "They are spread over 2 sources"),
        ),
        (  # imported from a program that lists only what leaked
            {**LEAKED, "n_checkable": None, "ranked": [RANKED[0] | {"rate": None}]},
            "leaked",
            "3 items leaked. 2 of them are from web.",
        ),
        (
            {"n_review": 2, "n_no_answer": 1},
            "open",
            f"No leak is confirmed. {WAITING} 1 question found without the answer.",
        ),
        ({}, "clean", GREEN),
        ({"n_unreadable": 1}, "open", GREEN),
        ({"n_not_read": 1}, "open", GREEN),
        ({"n_checkable": 0}, "open", "No leak was found."),
        ({"n_documents": 0}, "open", "No document was scanned."),
        (
            {"notice": "1 shard is missing"},
            "open",
            f"{GREEN} Not everything was scanned.",
        ),
    ],
)
def test_a_sentence_says_what_was_found_and_green_is_only_what_is_clean(facts, tone, verdict):
    said = opened(**facts)
    assert (said["tone"], said["verdict"]) == (tone, verdict)


def test_the_table_says_where_leaks_are_or_in_how_many_places():
    def place(n_in_place, n_sources=3):
        row = RANKED[0] | {"n_in_place": n_in_place, "n_places": 2, "n_leaked": 4}
        return opened(**LEAKED, ranked=[row], n_sources=n_sources)["ranked"][0]["source"]

    assert [place(n) for n in (4, 3, 2, 1)] == [
        *("4 of 4 in web", "3 of 4 in web", "2 sources, 2 of 4 in web", "2 sources")
    ]
    assert place(2, n_sources=1) == "2 shards, 2 of 4 in web"
    assert opened(ranked=RANKED[1:])["ranked"][0]["source"] == "–"


def test_a_place_without_most_of_the_leaks_is_not_named():
    spread = [RANKED[0] | {"n_in_place": 1, "n_places": 3}, RANKED[1]]
    assert "quiz, 3 of 9, spread over 3 sources." in opened(**LEAKED, ranked=spread)["verdict"]
    half = RANKED[0] | {"n_leaked": 4, "n_leaked_checkable": 4}
    assert (
        "quiz, 4 of 9, spread over 2 sources."
        in opened(**LEAKED, ranked=[half, RANKED[1]])["verdict"]
    )
    in_shards = opened(**LEAKED, ranked=spread, n_sources=1)["verdict"]
    assert "quiz, 3 of 9, spread over 3 shards." in in_shards


def test_benchmarks_are_ranked_and_those_left_out_are_counted():
    said = opened(**LEAKED, ranked=RANKED[:1] + RANKED[1:] * 20)
    assert [row["leaked"] for row in said["ranked"]] == ["3 of 9"] + ["0 of 9"] * 11
    assert said["ranked"][0]["filter"] == {"benchmark": "quiz"}
    assert said["left_out"] == "9 more benchmarks"
    assert opened()["left_out"] == ""


def test_of_a_benchmark_without_an_item_that_can_be_found_no_rate_is_said():
    nothing = RANKED[1] | {"n_checkable": 0, "rate": None, "low": None, "high": None}
    (row,) = opened(ranked=[nothing])["ranked"]
    assert (row["leaked"], row["rate"]) == ("none can be checked", None)


def steps(**facts):
    return [step["text"] for step in opened(**facts)["next"]]


def test_clean_data_says_how_many_documents_lost_spans():
    (step, _) = opened(mixtures=[MIXTURE | {"n_cut": 80}])["next"]
    assert "(1,190 of 1,200 documents, leaks cut out of 80)" in step["text"]


def test_next_are_what_is_missing_the_review_the_clean_data_and_the_check():
    check = "In CI, fail if more than 1 % of a benchmark leaked"
    assert steps() == [check]
    assert steps(**LEAKED) == ["Remove the leaks: add a [[mixture]] to decon.toml", check]
    assert steps(notice="1 shard is missing", n_review_texts=1, mixtures=[MIXTURE], **LEAKED) == [
        "Scan what is missing, which also builds the clean data",
        "Review 1 matched text",
        check,
    ]
    (step, _) = opened(mixtures=[MIXTURE])["next"]
    assert step["command"] == "decon-assets mixture verify clean"
    verify = "Verify the files in mixtures/clean (1,190 of 1,200 documents), then train on them"
    assert step["text"] == verify


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        (["damaged", "only a sample"], "Replace the files listed under"),
        (["only a sample of 1 %"], "Scan the other documents: repeat the scan without --sample"),
        ([], "Provide the benchmarks that could not be downloaded, and scan again"),
    ],
)
def test_next_after_a_scan_are_what_completes_it_and_a_project_for_its_files(reasons, text):
    scanned = Scanned(Path("found"), Path("found/r.duckdb"), "my shards", Path("evals.yaml"))
    not_scanned = [{"reason": reason} for reason in reasons]
    said = opened(notice="Incomplete", not_scanned=not_scanned, scanned=scanned, **LEAKED)
    first, project, _ = said["next"]
    assert first["text"].startswith(text)
    command = "decon-assets init --corpus 'my shards' --evals evals.yaml && decon-assets run"
    assert project["command"] == command
