"""decon.toml and the policy: wrong settings are all named at once."""

import json
import re
from pathlib import Path

import fsspec
import pytest

from decon_core.benchmarks.configured import benchmarks_of
from decon_core.config.json_schema import SCHEMA_PATH, config_schema
from decon_core.config.load import load_config
from decon_core.config.policy import Policy
from decon_core.config.sources import PackLimits
from decon_core.config.validation import bytes_of, check_names, did_you_mean
from decon_core.errors import ConfigError, KeyNameError
from decon_core.storage.paths import parse_path

DOCS = Path(__file__).parents[3] / "docs"

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
    path.write_text(text)
    return load_config(path)


def problems(error):
    return [str(problem) for problem in error.value.problems]


def test_a_short_file_is_enough_and_paths_start_at_its_folder(tmp_path):
    found = config(tmp_path, GOOD)
    assert found.recipes == (tmp_path / "evals.yaml",)
    assert found.store == tmp_path / ".decon"
    assert found.policy == Policy()
    assert found.corpus.packing == {"web": PackLimits(pack_shards=64)}


def test_everything_that_is_wrong_is_said_at_once(tmp_path):
    text = """
    [evals]
    recipies = ["evals.yaml"]
    [corpus]
    pack_shards = 0
    [[corpus.source]]
    name = "a|b"
    path = "x"
    text = "text"
    messages = "messages"
    [policy]
    ngram_sise = 4
    lowest_recorded_score = 2.0
    sampling = "some"
    [strore]
    """
    with pytest.raises(ConfigError) as error:
        config(tmp_path, text)
    said = "\n".join(problems(error))
    for expected in (
        "Did you mean 'recipes'",
        "evals.recipes: missing; expected",
        "corpus.pack_shards",
        "found 'text' and 'messages'",
        "Did you mean 'ngram_size'",
        "policy.sampling: found 'some'; expected one of exhaustive, reference",
        "Did you mean 'store'",
    ):
        assert expected in said


@pytest.mark.parametrize(
    ("detectors", "said"),
    [
        ("aligned", "found 'aligned'; expected a list of names. Write [\"aligned\"]"),
        (["alinged"], "each once. Did you mean 'aligned'?"),
    ],
)
def test_detectors_are_a_list_of_known_names(detectors, said):
    with pytest.raises(ConfigError) as error:
        Policy.from_mapping({"detectors": detectors}, where="policy")
    assert said in str(error.value)


def test_two_ways_of_reading_are_told_together_with_the_other_problems_of_a_source(tmp_path):
    text = """
    [evals]
    recipes = ["evals.yaml"]
    [corpus]
    [[corpus.source]]
    name = "web"
    path = "x"
    text = "text"
    messages = "messages"
    roles = ["user"]
    tex = 3
    [[corpus.source]]
    name = "chat"
    path = "y"
    text = "text"
    layout = "openai_chat"
    """
    with pytest.raises(ConfigError) as error:
        config(tmp_path, text)
    said = "\n".join(problems(error))
    assert "source[0].messages: found 'text' and 'messages'; expected one of them" in said
    assert "source[0].tex: found unknown key 'tex'" in said
    assert "source[1].layout: found 'text' and 'layout'; expected one of them" in said
    assert "no 'messages'" not in said


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        ("treshold", "did you mean 'threshold'?"),
        ("size", "did you mean 'ngram_size'?"),
        ("score", "did you mean 'code_score' or 'score_floor'?"),
        ("id", "did you mean 'ids' or 'doc_id'?"),
        ("many", "did you mean 'many_8'?"),
        ("core", ""),
        (None, ""),
        ("", ""),
    ],
)
def test_a_part_of_names_suggests_all_of_them(found, hint):
    known = ["threshold", "ngram_size", "score_floor", "code_score", "ids", "doc_id"]
    assert did_you_mean(found, [*known, *(f"many_{n}" for n in range(9))]) == hint


@pytest.mark.parametrize("text", ["[evals", "\x00"])
def test_a_file_that_is_no_toml_says_where(tmp_path, text):
    with pytest.raises(ConfigError, match="valid TOML"):
        config(tmp_path, text)


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ("keep_question_only", "keep_no_answer", "[policy]\nkeep_question_only = true\n"),
        ("evidence_floor", "lowest_recorded_score", "[policy]\nevidence_floor = 0.5\n"),
        ("ratcliff_floor", "ratcliff_lowest_recorded", "[policy]\nratcliff_floor = 0.3\n"),
        ("idf", "term_weights", '[idf]\nbenchmarks = ["a"]\n'),
        ("question_only", "no_answer", "[mixture.leaks]\nquestion_only = 'keep'\n"),
        ("arm", "training_run", '[study]\nbaseline = "clean"\n[[study.arm]]\nname = "clean"\n'),
        ("candidates", "review", "[mixture.leaks]\ncandidates = 'remove'\n"),
    ],
)
def test_a_setting_under_its_old_name_is_refused_with_the_new_one(tmp_path, before, now, text):
    mixture = '[[mixture]]\nname = "clean"\n' if text.startswith("[mixture") else ""
    with pytest.raises(ConfigError) as refused:
        config(tmp_path, f"{GOOD}{mixture}{text}")
    assert f"unknown key {before!r}" in str(refused.value)
    assert f"It is now called {now!r}" in str(refused.value)


def test_a_name_given_twice_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"term_weights\.benchmarks: found 'a' more than once"):
        config(tmp_path, GOOD + '[term_weights]\nbenchmarks = ["a", "b", "a"]\n')


def test_a_file_that_is_not_there_points_to_the_command_that_writes_one(tmp_path):
    with pytest.raises(ConfigError, match=r"no such file.*`decon-assets init` writes one"):
        load_config(tmp_path / "decon.toml")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ngram_size": 1}, "2 or more"),
        ({"ngram_size": 5.0}, "a whole number"),
        ({"eval_dedup": 1}, "true or false"),
        ({"contamination_score_threshold": 1.5}, "up to 1"),
        ({"lowest_recorded_score": 0.9}, "at most the threshold"),
        # A walk cannot end before its first miss.
        ({"question_max_consecutive_misses": 0}, "1 or more"),
        # An answer of 2 tokens would have neither a run to look for nor 3-grams.
        ({"short_answer_token_threshold": 1}, "at least answer_ngram_size - 1"),
        ({"perfect_match_decay_end": 20}, "more than perfect_match_decay_start"),
    ],
)
def test_a_policy_value_out_of_range_is_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        Policy.from_mapping(settings)


def test_only_scan_settings_snapshot_and_tokenizer_move_the_scan_results():
    def scan(snapshot="s", tokenizer="t", **settings):
        policy = Policy.from_mapping(settings)
        return policy.scan_fingerprint(tokenizer=tokenizer, snapshot=snapshot)

    assert scan(contamination_score_threshold=0.7, unreadable="drop") == scan()
    different = {
        scan(),
        scan(ngram_size=6),
        scan(lowest_recorded_score=0.5),
        scan(sampling="reference"),
        scan(snapshot="other"),
        scan(tokenizer="other"),
    }
    assert len(different) == 6


def test_a_setting_of_a_detector_moves_the_scan_results_only_where_the_detector_is_chosen():
    def scan(*detectors, **settings):
        policy = Policy(detectors=detectors, **settings)
        return policy.scan_fingerprint(tokenizer="t", snapshot="s")

    assert scan("decon", ratcliff_prompt="whole") == scan("decon")
    assert scan("ratcliff", ratcliff_prompt="question") == scan("ratcliff")
    assert scan("ratcliff", ratcliff_prompt="whole") != scan("ratcliff")


@pytest.mark.parametrize("name", ["a|b", "a...b", "a..b", "a,b", "a/b", "", ".a", "-a", "a.", "ä"])
def test_names_that_mean_something_to_dagster_or_a_shell_are_refused(name):
    with pytest.raises(KeyNameError, match="expected letters"):
        check_names([name], what="pack")


@pytest.mark.parametrize("name", ["mmlu", "gsm8k_train", "arc-easy", "v0.1.4", "A9"])
def test_ordinary_names_pass(name):
    check_names([name], what="pack")


def test_a_source_packs_by_its_own_limits_and_by_those_of_all_where_it_has_none(tmp_path):
    of_all = "[corpus]\npack_shards = 8\n[[corpus.source]]"
    text = (
        GOOD.replace("[[corpus.source]]", of_all)
        + """pack_bytes = "1.5 GiB"
    [[corpus.source]]
    name = "chat"
    path = "chat/*"
    messages = "messages"
    """
    )
    assert config(tmp_path, text).corpus.packing == {
        "web": PackLimits(pack_shards=8, pack_bytes=3 << 29),
        "chat": PackLimits(pack_shards=8),
    }


@pytest.mark.parametrize(
    ("said", "n_bytes"),
    [
        (7, 7),
        ("7 B", 7),
        ("20 GB", 20_000_000_000),
        ("20GB", 20_000_000_000),
        ("1.5 kB", 1500),
        ("2 MiB", 2 << 20),
        (0, None),
        (True, None),
        (1.5, None),
        ("20", None),
        ("20 gb", None),
        ("-1 GB", None),
        ("0 GB", None),
    ],
)
def test_sizes_are_numbers_or_texts_with_a_unit(said, n_bytes):
    assert bytes_of(said) == n_bytes


def test_recipes_may_be_globs_and_one_that_matches_nothing_is_a_problem(tmp_path):
    (tmp_path / "evals").mkdir()
    for name in ("b.yaml", "a.yaml", "c.txt"):
        (tmp_path / "evals" / name).touch()
    text = GOOD.replace('["evals.yaml"]', '["evals/b.yaml", "evals/*.yaml"]')
    found = config(tmp_path, text).recipes
    assert [path.name for path in found] == ["b.yaml", "a.yaml"]
    with pytest.raises(ConfigError, match=r"found 'more/\*\.yaml'; expected a pattern"):
        config(tmp_path, GOOD.replace("evals.yaml", "more/*.yaml"))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('text = "text"', 'text = ""', r"source\[0\]\.text: found ''"),
        ('text = "text"', 'text = ["prompt", ""]', r"source\[0\]\.text: found \['prompt', ''\]"),
        ('text = "text"', 'messages = ""', r"source\[0\]\.messages: found ''"),
        ('text = "text"', 'text = "text"\nid = ""', r"source\[0\]\.id: found ''"),
        ('"shards/*.jsonl"', '""', r"source\[0\]\.path: found ''"),
        ('["evals.yaml"]', '[""]', r"evals\.recipes\[0\]: found ''"),
        ("[evals]", '[store]\npath = ""\n[evals]', r"store\.path: found ''"),
        ("[evals]", '[store]\npath = "file"\n[evals]', r"store\.path: found the file .*file;"),
        (
            "[evals]",
            '[store]\npath = "memory://x"\nwork = "file"\n[evals]',
            r"store\.work: found the file .*file;",
        ),
        (
            "[evals]",
            '[review]\nverdicts = "s3://x/v.jsonl"\n[evals]',
            r"review\.verdicts: found 's3://x/v\.jsonl'; expected the path of a local file",
        ),
        (
            "[evals]",
            '[review]\nverdicts = "folder"\n[evals]',
            r"review\.verdicts: found the folder",
        ),
        ("[evals]", '[review]\nverdicts = ""\n[evals]', r"review\.verdicts: found ''"),
    ],
)
def test_a_value_that_could_mean_nothing_is_refused(tmp_path, before, after, said):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=said) as error:
        config(tmp_path, GOOD.replace(before, after))
    assert len(error.value.problems) == 1


@pytest.mark.parametrize(
    ("path", "local_path", "table", "said"),
    [
        ("shards/*.jsonl", "rows.jsonl", "s3", r"storage\.s3: found options .* no path is a URL"),
        ("memory://x/*.jsonl", "rows.jsonl", "Memory", "Did you mean 'memory'"),
        ("memory://x/*.jsonl", "rows.jsonl", "memory", None),
        ("shards/*.jsonl", "memory://x/rows.jsonl", "memory", None),
        ("s3a://x/*.jsonl", "rows.jsonl", "s3", None),
        ("S3://x/*.jsonl", "rows.jsonl", "s3", None),
    ],
)
def test_options_of_a_file_system_that_no_path_is_on_are_refused(
    tmp_path, monkeypatch, path, local_path, table, said
):
    for scheme in ("S3", "MEMORY"):
        monkeypatch.setenv(f"FSSPEC_{scheme}", "{}")  # so that what is set is taken back
    recipe = {"local_path": local_path, "splits": ["test"], "prompt": "q", "answers": ["a"]}
    (tmp_path / "evals.yaml").write_text(json.dumps({"evals": {"x": recipe}}))
    text = GOOD.replace("shards/*.jsonl", path) + f"[storage.{table}]\nanon = true\n"
    try:
        found = config(tmp_path, text)
        if said is None:
            assert list(benchmarks_of(found)) == ["x"]
            return
        with pytest.raises(ConfigError, match=said):
            benchmarks_of(found)
    finally:
        fsspec.config.conf.pop(table)


def test_a_scheme_may_be_written_in_any_case():
    assert str(parse_path("S3://Bucket/S3")) == "s3://Bucket/S3"
    assert parse_path("MEMORY://x/a.jsonl").key == parse_path("memory://x/a.jsonl").key


def test_the_reference_preset_is_the_published_rule():
    reference = Policy.from_mapping({"preset": "reference"})
    assert not reference.normalize_unicode
    assert not reference.strip_markup


@pytest.mark.parametrize("name", ["normalize_unicode", "strip_markup"])
def test_how_text_is_normalized_names_index_and_scan_results(name):
    one, other = Policy(), Policy(**{name: False})
    named = {"tokenizer": "t", "snapshot": "s"}
    assert one.index_fingerprint(**named) != other.index_fingerprint(**named)
    assert one.scan_fingerprint(**named) != other.scan_fingerprint(**named)


def test_a_setting_beside_a_preset_holds():
    policy = Policy.from_mapping({"preset": "reference", "strip_markup": True, "ngram_size": 6})
    assert (policy.normalize_unicode, policy.strip_markup, policy.ngram_size) == (False, True, 6)


# Tables that have a guide. All others are only on the page of settings (`website/reference.py`).
TABLES = {
    "Policy": "configuration decon-detector detectors",
    "Mixture": "mixtures",
    "Leaks": "mixtures",
    "Licenses": "mixtures",
    "Blend": "blends",
    "Phase": "blends",
    "Contamination": "blends",
    "Neighbours": "neighbours",
    "Sample": "neighbours",
    "Haystack": "studies/haystack",
    "Study": "studies/training-runs studies/translation",
    "TrainingRun": "studies/training-runs",
    "Translation": "studies/translation",
    "Sketch": "sketch",
}


def test_every_setting_is_in_the_documentation():
    tables = config_schema()["$defs"]
    missing = [
        (table, key)
        for table, pages in TABLES.items()
        for key, node in tables[table]["properties"].items()
        if "deprecated" not in node
        if not re.search(
            rf"\b{key}\b",
            "".join((DOCS / f"{page}.md").read_text() for page in pages.split()),
        )
    ]
    assert missing == []


def test_the_schema_that_editors_read_is_that_of_the_models():
    assert json.loads(SCHEMA_PATH.read_text()) == config_schema()


@pytest.mark.parametrize("name", ["refrence", 3])
def test_an_unknown_preset_is_refused_by_name(name):
    with pytest.raises(ConfigError, match=r"policy\.preset.*'reference'"):
        Policy.from_mapping({"preset": name})
