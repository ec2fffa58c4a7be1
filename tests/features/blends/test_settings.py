"""[[blend]] in decon.toml: what is declared, what a list makes of it, what is refused and why."""

import tomllib

import pytest

from decon_core.config.mixtures import Mixture
from decon_core.errors import ConfigError
from decon_core.features.blends.settings import (
    Blend,
    BlendReader,
    Contamination,
    Phase,
    blend_named,
    is_for_training,
    unknown_in_blends,
)

MIXTURES = (
    Mixture(name="clean"),
    Mixture(name="web_only", sources=("web",)),
    Mixture(name="tables", write="parquet"),
)
SOURCES = {"web": True, "chat": True, "pairs": False}


def read(text, sources=SOURCES):
    reader = BlendReader("decon.toml", MIXTURES, sources)
    return reader.blends(tomllib.loads(text).get("blend")), reader.problems


def one(text, **options):
    (blend,), problems = read('[[blend]]\nname = "b"\nof = "web_only"\n' + text, **options)
    assert problems == []
    return blend


def refused(text):
    blends, problems = read('[[blend]]\nname = "b"\nof = "web_only"\n' + text)
    assert blends == ()
    return "\n".join(map(str, problems))


def contaminated(text):
    return '[[blend.contamination]]\nbenchmarks = ["a"]\n' + text


def test_what_is_declared_is_what_is_read():
    blend = one(
        """
        seed = 7
        write = "parquet"
        part_tokens = 1000
        [[blend.phase]]
        tokens = 500
        weights = { web = 2.5 }
        [[blend.phase]]
        [[blend.contamination]]
        benchmarks = ["a", "b"]
        splits = ["test"]
        seen = 0.5
        template = { a = "{question} {choices} {answer}" }
        shuffle_answers = true
        window = [0.5, 1.0]
        swap = 10
        into = ["web"]
        most_per_batch = 0.1
        batch_documents = 64
        """
    )
    assert blend == Blend(
        name="b",
        of="web_only",
        seed=7,
        write="parquet",
        part_tokens=1000,
        phases=(Phase(tokens=500, weights=(("web", 2.5),)), Phase()),
        contamination=(
            Contamination(
                benchmarks=("a", "b"),
                splits=("test",),
                seen=0.5,
                template=(("a", "{question} {choices} {answer}"),),
                shuffle_answers=True,
                window=(0.5, 1.0),
                swap=10,
                into=("web",),
                most_per_batch=0.1,
                batch_documents=64,
            ),
        ),
    )
    assert blend.contamination[0].template_of("a") == "{question} {choices} {answer}"
    assert blend.contamination[0].template_of("b") is None
    assert one("").phases[0].is_everything


def test_lists_make_a_blend_for_every_combination():
    text = contaminated(
        'form = ["source", "full"]\nschedule = ["early", "late"]\ncopies = [1, 10, 100]\n'
        'template = "{question} {answer}"'
    )
    blends, problems = read('[[blend]]\nname = "g"\nof = "web_only"\n' + text)
    assert problems == []
    assert len(blends) == 12
    assert [blend.name for blend in blends][:4] == [
        "g-source-early-1",
        "g-source-early-10",
        "g-source-early-100",
        "g-source-late-1",
    ]
    for blend in blends:
        (found,) = blend.contamination
        assert blend.name == f"g-{found.form}-{found.schedule}-{found.copies}"
        assert (found.template is None) == (found.form == "source")  # said for those in full
    without_names = {str(blend.to_json()) for blend in blends}
    assert len(without_names) == 12


def test_a_list_of_ratios_makes_a_blend_named_by_each():
    text = contaminated("ratio = [0.01, 0.25]")
    blends, problems = read('[[blend]]\nname = "g"\nof = "web_only"\n' + text)
    assert problems == []
    ratios = {blend.name: blend.contamination[0].ratio for blend in blends}
    assert ratios == {"g-0.01": 0.01, "g-0.25": 0.25}


def test_schedules_are_the_shares_of_the_study():
    stretches = {
        schedule: one(contaminated(f'schedule = "{schedule}"\ncopies = 1')).contamination[0]
        for schedule in ("early", "middle", "late", "uniform")
    }
    starts = {name: found.token_range for name, found in stretches.items()}
    assert starts == {
        "early": (0.3, 1.0),
        "middle": (0.6, 1.0),
        "late": (0.9, 1.0),
        "uniform": (0.3, 0.9),
    }
    assert [name for name, found in stretches.items() if found.is_front_loaded] == [
        "early",
        "middle",
        "late",
    ]
    assert not one(contaminated("window = [0.0, 0.1]\ncopies = 1")).contamination[0].is_front_loaded


def test_splits_for_training_are_told_by_their_names():
    assert [
        name for name in ("train", "training", "auxiliary_train") if not is_for_training(name)
    ] == []
    assert [name for name in ("test", "dev", "validation", "strain") if is_for_training(name)] == []
    found = one(contaminated("copies = 1")).contamination[0]
    assert (found.takes("test"), found.takes("train")) == (True, False)
    found = one(contaminated('copies = 1\nsplits = ["train"]')).contamination[0]
    assert (found.takes("test"), found.takes("train")) == (False, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense = 1", "unknown key 'nonsense'"),
        ('write = "shards"', "one of dolma, parquet"),
        ("part_tokens = 0", "a whole number of 1 or more"),
        ("seed = true", "a whole number"),
        ("phase = []", "one or more [[blend.phase]]"),
        ("[[blend.phase]]\ntokens = 5\ndocuments = 5", "both 'tokens' and 'documents'"),
        ("[[blend.phase]]\nweights = { web = 1 }", "weights alone"),
        ("[[blend.phase]]\ntokens = 5\nweights = { chat = 1 }", "'chat'; expected one of web"),
        ("[[blend.phase]]\ntokens = 5\nweights = { web = 0 }", "a number above 0"),
        ("[[blend.phase]]\ntokens = 5\nweights = { web = true }", "a number above 0"),
        ("[[blend.phase]]\ntokens = -5", "a whole number of 1 or more"),
        ("contamination = 5", "[[blend.contamination]]"),
        (contaminated(""), "no amount; expected one of copies, swap, ratio"),
        (contaminated("copies = 1\nratio = 0.5"), "copies and ratio"),
        (contaminated("copies = []"), "an empty list"),
        (contaminated("copies = [0]"), "a whole number of 1 or more"),
        (contaminated("ratio = 0.0"), "a number above 0 and below 1"),
        (contaminated("ratio = 1.0"), "a number above 0 and below 1"),
        (contaminated("copies = 1\nseen = 0"), "a number above 0 and up to 1"),
        (contaminated("copies = 1\nseen = 1.5"), "a number above 0 and up to 1"),
        (contaminated('copies = 1\nform = "half"'), "one of source, target, full"),
        (contaminated('copies = 1\nschedule = "never"'), "one of early, middle, late, uniform"),
        (
            contaminated("copies = 1\nwindow = [0.5, 0.2]"),
            "two numbers from 0 to 1, in ascending order",
        ),
        (contaminated('copies = 1\nwindow = [0, 1]\nschedule = "late"'), "both 'window'"),
        (contaminated('ratio = 0.1\nform = "apart"'), "source, target or full"),
        (
            contaminated("ratio = 0.1\nmost_per_batch = 0.1"),
            "and 'ratio'; expected only one of them",
        ),
        (contaminated('swap = 5\nform = "apart"'), "an even number"),
        (contaminated('copies = 1\ninto = ["chat"]'), "one of web"),
        (contaminated('copies = 1\nshuffle_answers = "yes"'), "true or false"),
        (contaminated('copies = 1\nform = "source"\nshuffle_answers = true'), 'form = "full"'),
        (contaminated('copies = 1\nform = "source"\ntemplate = "{question}"'), 'form = "full"'),
        (contaminated('copies = 1\ntemplate = "nothing"'), "a string with {question} or {answer}"),
        (contaminated('copies = 1\ntemplate = "{question} {title}"'), "a string with {question}"),
        (contaminated('copies = 1\ntemplate = "{question"'), "a string with {question}"),
        (contaminated('copies = 1\ntemplate = "{question:>9}"'), "a string with {question}"),
        (contaminated('copies = 1\ntemplate = "{question!r}"'), "a string with {question}"),
        (contaminated('copies = 1\ntemplate = { b = "{answer}" }'), "one of the benchmarks"),
        (contaminated("copies = 1\ntemplate = {}"), "an empty table"),
        (contaminated('copies = 1\nform = ["source"]\ntemplate = "{answer}"'), '"full" among'),
        (
            contaminated('copies = 1\nshuffle_answers = true\ntemplate = "{question}"'),
            "without {choices} and {letter}",
        ),
        (contaminated("swap = 100000000000000000000"), "a whole number of 1 or more"),
        ("[[blend.phase]]\ntokens = 5\nweights = {}", "sources with numbers above 0"),
        ("[[blend.phase]]\ntokens = 5\nweights = { web = nan }", "a number above 0"),
        ("[[blend.phase]]\ntokens = 5\nweights = { web = inf }", "a number above 0"),
        ("[[blend.contamination]]\ncopies = 1", "benchmarks: missing; expected a list"),
        ("phases = []", "blend[0].phases: found unknown key 'phases'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_place(text, told):
    found = refused(text)
    assert told in found
    assert found.startswith("decon.toml: blend")


def test_a_blend_is_of_a_mixture_whose_shards_can_be_read():
    assert "one of clean, web_only, tables" in str(read('[[blend]]\nname = "b"\nof = "x"')[1][0])
    assert "shards" in str(read('[[blend]]\nname = "b"\nof = "tables"')[1][0])


def test_where_documents_have_several_fields_none_makes_room_for_an_item():
    text = '[[blend]]\nname = "b"\nof = "clean"\n' + contaminated("copies = 1")
    assert "'pairs', whose documents have several fields" in str(read(text)[1][0])
    blends, problems = read(text + '\ninto = ["web", "chat"]')
    assert problems == []
    assert blends[0].contamination[0].into == ("web", "chat")


def test_a_list_needs_a_name_to_add_its_values_to():
    text = '[[blend]]\nof = "clean"\n' + contaminated('copies = [1, 10]\ninto = ["web"]')
    (problem,) = read(text)[1]
    assert str(problem) == "decon.toml: blend[0].name: missing; expected a string"


def test_names_are_taken_once_and_not_by_a_mixture():
    twice = '[[blend]]\nname = "b"\nof = "clean"\n' * 2
    assert "more than once" in str(read(twice)[1][0])
    assert "no mixture has" in str(read('[[blend]]\nname = "clean"\nof = "clean"')[1][0])
    assert "blend name" in str(read('[[blend]]\nname = "a|b"\nof = "clean"')[1][0])
    with pytest.raises(ConfigError, match=r"blend 'x': no such name.*; expected one of b"):
        blend_named([one("")], "x")
    message = r"blend 'x': decon.toml declares no blend. See docs/blends.md"
    with pytest.raises(ConfigError, match=message):
        blend_named([], "x")


def test_unknown_benchmarks_and_splits_are_told():
    blend = one(contaminated('copies = 1\nsplits = ["test", "dev"]'))
    assert [*unknown_in_blends([blend], {"a": ["test", "dev"]})] == []
    (problem,) = unknown_in_blends([blend], {"a": ["test"]})
    assert "'dev'" in problem.found
    (problem,) = unknown_in_blends([blend], {"b": ["test"]})
    assert "one of b" in problem.expected
