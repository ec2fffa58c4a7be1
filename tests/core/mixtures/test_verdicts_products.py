"""What verdicts do to what is built: only that, and only where what was found stands."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from decon_core.config.load import load_config
from decon_core.config.mixtures import Leaks, Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.decisions.verdicts import Verdict, Verdicts, append_verdicts, read_verdicts
from decon_core.errors import ConfigError
from decon_core.library.scan import Request, scan_folder
from decon_core.mixtures.clean_evals import build_clean_benchmarks, has_clean_benchmark
from decon_core.mixtures.verify import verify
from decon_core.report.build import is_current
from tests.core.conftest import DECON
from tests.core.places import CLEAN, CONTROL, Place, report_of
from tests.scan_result_files import scan_result_rows

# Of one item alone every n-gram would be in all there is, and weigh nothing.
OTHER = (" ".join(f"other{n}" for n in range(60)), None, None)


@pytest.fixture
def leaky(bench, make_words):
    """Two packs: the first holds item 0 twice and a part of item 1, the second item 2."""
    bench.policy = DECON
    items = [(make_words(("q", n), 60), None, None) for n in range(3)]
    versions = bench.prepare({"b": items})
    place = Place(bench, versions)
    texts = [question for question, _, _ in items]
    part = " ".join(items[1][0].split()[:45])
    noise = [make_words(("noise", n), 30) for n in range(6)]
    rows = [
        noise[0],
        f"{noise[1]} {texts[0]} {noise[2]}",
        f"{noise[3]}\n{texts[0].upper()}! {noise[4]}",
        f"{noise[4]} {part} {noise[5]}",
    ]
    place.put({"s.jsonl": rows}, name="web")
    place.put({"s.jsonl": [noise[5], f"{texts[2]} {noise[0]}"]}, name="books")
    return place.scan()


def rows_of(place, pack):
    (shard,) = pack.shards
    (version,) = place.versions
    names = place.bench.scan, shard.fingerprint, version.fingerprint
    return scan_result_rows(place.bench.store, *names)


def saying(said, **settings):
    by_text = {
        text_id: Verdict(pair=text_id, fingerprint="f" * 16, verdict=verdict)
        for text_id, verdict in said.items()
    }
    return Verdicts(by_text, **settings)


def text_in(place, row, pack=0):
    return next(one["text_id"] for one in rows_of(place, place.packs[pack]) if one["row"] == row)


def ids(place, mixture=CLEAN, pack=0):
    rows = place.rows(mixture, pack=place.packs[pack])
    return [int(row["id"].removeprefix("s.jsonl-")) for row in rows]


def test_what_was_found_has_one_key_wherever_it_stands_and_however_it_is_written(leaky):
    first, same, part = (text_in(leaky, row) for row in (1, 2, 3))
    assert first == same
    assert len({first, part, text_in(leaky, 1, pack=1)}) == 3


def test_a_part_of_an_item_is_another_finding_than_more_of_it(bench, make_words):
    bench.policy = Policy(tokenizer_str="words", detectors=("decon",), lowest_recorded_score=0.3)
    question = make_words("q", 60)
    versions = bench.prepare({"b": [(question, None, None), OTHER]})
    words = question.split()
    rows = [" ".join(words[:n]) + f" {make_words(n, 30)}" for n in (40, 50, 60)]
    place = Place(bench, versions)
    place.put({"s.jsonl": rows})
    place.scan()
    assert len({text_in(place, row) for row in range(3)}) == 3


@pytest.mark.parametrize("detector", ["ratcliff", "longest_match", "exact", "ngram_any"])
def test_every_rule_says_what_it_found_wherever_it_stands(bench, make_words, detector):
    bench.policy = Policy(tokenizer_str="words", detectors=(detector,))
    items = [(make_words(("q", n), 40), make_words(("a", n), 20), None) for n in range(2)]
    place = Place(bench, bench.prepare({"b": items}))
    rows = [f"{items[n][0]} {items[n][1]}" for n in (0, 1, 0)]
    place.put({"s.jsonl": rows})
    place.scan()
    matched_texts = [
        {one["text_id"] for one in rows_of(place, place.packs[0]) if one["row"] == n}
        for n in range(3)
    ]
    assert matched_texts[0] == matched_texts[2]
    assert matched_texts[0]
    assert matched_texts[1]
    assert not matched_texts[0] & matched_texts[1]


def test_a_repeat_of_a_record_has_the_text_of_the_first(bench, make_words):
    bench.policy = DECON
    item = (make_words("q", 60), make_words("a", 8), None)
    place = Place(bench, bench.prepare({"b": [item, item, OTHER]}))
    place.put({"s.jsonl": [f"{item[0]} {item[1]}"]})
    place.scan()
    place.verdicts = saying({text_in(place, 0): "template"})
    entries = (
        place.builder()
        .reader.entries(place.packs[0].shards[0], place.versions, source="web")
        .to_pylist()
    )
    assert [one["instance_index"] for one in entries] == [0, 1]
    assert [one["is_contaminated"] for one in entries] == [False, False]


def test_what_was_cleared_stays_in_and_what_was_called_a_leak_goes_with_the_reason(leaky):
    assert ids(leaky) == [0, 3]
    leaky.verdicts = saying({text_in(leaky, 1): "template", text_in(leaky, 3): "leak"})
    assert ids(leaky) == [0, 1, 2]
    (gone,) = leaky.removed(CLEAN)
    assert (gone["row"], gone["instance_index"], gone["why"]) == (3, 1, "leak")
    assert gone["detail"] == "a person called it a leak"
    assert gone["score"] < 0.8


def test_verify_goes_by_verdicts(leaky):
    leaky.verdicts = saying({text_in(leaky, 1): "template", text_in(leaky, 3): "leak"})
    for pack in leaky.packs:
        leaky.build(CLEAN, pack)
    found = verify(leaky.builder(), CLEAN)
    assert (found.problems, found.n_leaks) == ([], 0)


def test_a_span_that_a_person_called_a_leak_is_cut_out_and_stays_out(leaky):
    spans = Mixture(name="spans", cut="spans")
    leaky.verdicts = saying({text_in(leaky, 3): "leak"})
    rows = leaky.rows(spans)
    assert [row["id"] for row in rows] == [f"s.jsonl-{n}" for n in range(4)]
    assert len(rows[3]["text"].split()) < 75


def test_only_packs_that_hold_what_was_decided_are_built_again(leaky):
    mixtures = (CLEAN, CONTROL, Mixture(name="everything", take="everything"))
    for mixture in mixtures:
        for pack in leaky.packs:
            leaky.build(mixture, pack)

    def stale():
        builder = leaky.builder(*mixtures)
        return {
            (mixture.name, pack.source.name)
            for mixture in mixtures
            for pack in leaky.packs
            if not builder.is_current(mixture, pack)
        }

    assert stale() == set()
    text_id = text_in(leaky, 1)
    for harmless in ({text_id: "unsure"}, {"0" * 16: "leak"}):
        leaky.verdicts = saying(harmless)
        assert stale() == set()
    leaky.verdicts = saying({text_id: "template"}, clears=())
    assert stale() == set()
    leaky.verdicts = saying({text_id: "template"})
    assert stale() == {("clean", "web"), ("control", "web")}


def test_a_mixture_can_go_by_what_people_confirmed_alone(leaky):
    confirmed = Mixture(name="confirmed", leaks=Leaks(verdicts=("leak",)))
    assert ids(leaky, confirmed) == [0, 1, 2, 3]
    leaky.verdicts = saying({text_in(leaky, 1): "leak"})
    assert ids(leaky, confirmed) == [0, 3]
    # A low score is no reason to let go what a person confirmed.
    leaky.verdicts = saying({text_in(leaky, 3): "leak"})
    strict = Mixture(name="strict", leaks=Leaks(least_score=1.0))
    assert 3 not in ids(leaky, strict)


def test_a_clean_benchmark_goes_by_verdicts(leaky):
    def n_items_left():
        (summary,) = build_clean_benchmarks(leaky.builder(), leaky.versions)
        return summary.counts["n_items_left"]

    assert n_items_left() == 1
    leaky.verdicts = saying({text_in(leaky, 1): "common source"})
    assert not has_clean_benchmark(leaky.builder(), leaky.versions[0])
    assert n_items_left() == 2


def test_a_report_is_of_yesterday_after_any_verdict_and_any_note(leaky):
    store, policy = leaky.bench.store, leaky.bench.policy

    def current():
        return is_current(leaky.builder(CLEAN))

    def report():
        report_of(store, leaky.packs, leaky.versions, policy, (CLEAN,), verdicts=leaky.verdicts)

    report()
    assert current()
    text_id = text_in(leaky, 1)
    leaky.verdicts = saying({text_id: "unsure"})
    assert not current()
    report()
    assert current()
    noted = replace(leaky.verdicts.by_text[text_id], note="who knows")
    leaky.verdicts = Verdicts({text_id: noted})
    assert not current()


# Settings -----------------------------------------------------------------------------------------

GOOD = """
[evals]
recipes = ["evals.yaml"]
[[corpus.source]]
name = "web"
path = "shards/*.jsonl"
text = "text"
"""


def config(tmp_path, text):
    path = tmp_path / "decon.toml"
    path.write_text(GOOD + text)
    return load_config(path)


def test_verdicts_lie_beside_the_configuration(tmp_path):
    found = config(tmp_path, "")
    assert found.verdicts == tmp_path / "verdicts.jsonl"
    assert found.review.clears == ("template", "common source")
    assert not read_verdicts(found.verdicts)
    append_verdicts(
        found.verdicts, [{"pair": "0" * 16, "fingerprint": "1" * 16, "verdict": "leak"}]
    )
    assert read_verdicts(found.verdicts).decisive == {"0" * 16: True}
    found = config(tmp_path, '[review]\nverdicts = "mine/v.jsonl"\nclears = []\n')
    assert (found.verdicts, found.review.clears) == (tmp_path / "mine" / "v.jsonl", ())


def test_everything_that_is_wrong_with_review_settings_is_said_at_once(tmp_path):
    text = """
    [review]
    verdict = "v"
    verdicts = 3
    clears = ["tempalte"]
    [[mixture]]
    name = "m"
    [mixture.leaks]
    verdicts = ["leek", "template"]
    """
    with pytest.raises(ConfigError) as error:
        config(tmp_path, text)
    said = "\n".join(map(str, error.value.problems))
    for part in (
        "Did you mean 'verdicts'",
        "review.verdicts: found 3; expected a local file",
        "Did you mean 'template'",
        "Did you mean 'leak'",
        "mixture[0].leaks.verdicts[1]: found 'template'; expected 'leak'",
    ):
        assert part in said


# Any folder ---------------------------------------------------------------------------------------


def test_a_scan_of_a_folder_goes_by_verdicts_and_scans_nothing_again(tmp_path, make_words):
    question = make_words("q", 60)
    record = {"eval_key": "quiz", "split": "test", "eval_instance_index": 0, "question": question}
    other = {**record, "eval_instance_index": 1, "question": OTHER[0]}
    lines = "".join(json.dumps(one) + "\n" for one in (record, other))
    (tmp_path / "evals.jsonl").write_text(lines)
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": question}) + "\n")
    request = Request(
        evals=tmp_path / "evals.jsonl",
        source=Source(name="corpus", path=str(tmp_path / "c.jsonl"), id="id"),
        out=tmp_path / "out",
        policy=DECON,
        has_clean_evals=True,
    )

    def scan(request):
        return scan_folder(request)

    assert scan(request).n_leaks == 1
    (found,) = pq.read_table(tmp_path / "out" / "matches.parquet").to_pylist()
    again = scan(replace(request, verdicts=saying({found["text_id"]: "template"})))
    assert (again.n_leaks, again.n_shards_read) == (0, 0)
    (found,) = pq.read_table(tmp_path / "out" / "matches.parquet").to_pylist()
    assert (found["is_by_score"], found["verdict"]) == (True, "template")
    clean = tmp_path / "out" / "clean" / "evals" / "quiz.jsonl"
    assert len(clean.read_text().splitlines()) == 2
