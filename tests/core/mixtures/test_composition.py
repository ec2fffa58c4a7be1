"""Compositions by source and by label: of published numbers, on cards, and in the report."""

from dataclasses import replace

import duckdb
import pytest

from decon_core.config.load import config_from
from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack
from decon_core.errors import ConfigError
from decon_core.mixtures.build import build_shares
from decon_core.mixtures.card import CARD
from decon_core.mixtures.composition import (
    Amount,
    composition,
    composition_rows,
    phase_heads,
    phase_rows,
)
from decon_core.mixtures.verify import verify
from decon_core.report.build import is_current
from tests.core.places import Place, build_mixture, report_of


def test_a_source_without_a_label_that_others_have_is_not_declared():
    part = {"a": Amount(1, 10), "b": Amount(3, 30), "c": Amount(4, 5)}
    labels = {"a": {"language": "en"}, "b": {"kind": "w|b"}, "gone": {"era": "old"}}
    assert [*composition(part, labels)][3:] == [
        ("kind", "w|b", Amount(3, 30)),
        ("kind", "not declared", Amount(5, 15)),
        ("language", "not declared", Amount(7, 35)),
        ("language", "en", Amount(1, 10)),
    ]
    assert composition_rows(part, labels)[3][1] == "w\\|b"
    assert composition_rows({}, labels) == []


def test_a_source_that_a_phase_does_not_draw_from_has_a_row_with_nothing():
    phases = [{"a": Amount(1, 10)}, {"a": Amount(1, 10), "b": Amount(1, 30)}, {}]
    assert phase_rows(phases, {}) == [
        ["source", "b", "0", "0 %", "30", "75.0 %", "0", "–", "30", "60.0 %"],
        ["source", "a", "10", "100.0 %", "10", "25.0 %", "0", "–", "20", "40.0 %"],
    ]
    assert len(phase_heads(3)) == len(phase_rows(phases, {})[0])


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"language": "en", "kind_2": "books"}, None),
        ({"Language": "en"}, "found 'Language'; expected names of lower-case letters"),
        ({"source": "en"}, "found 'source'"),
        ({"language": 3}, "expected a text in quotes"),
        ({"language": ""}, "expected a text in quotes"),
        ("en", "expected a table of strings"),
    ],
)
def test_labels_are_texts_under_names_that_columns_can_have(tmp_path, labels, told):
    source = {"name": "web", "path": "x", "text": "t", "labels": labels}
    (tmp_path / "e.yaml").write_text("evals: {}")
    values = {"evals": {"recipes": ["e.yaml"]}, "corpus": {"source": [source]}}
    if told is None:
        (found,) = config_from(values, tmp_path / "decon.toml").corpus.sources
        assert found.labels == (("kind_2", "books"), ("language", "en"))
        pack = Pack(name="web-0", source=found, shards=())
        assert Pack.from_json(pack.to_json()) == pack
    else:
        with pytest.raises(ConfigError, match=told):
            config_from(values, tmp_path / "decon.toml")


PARQUET = Mixture(name="all", take="everything", write="parquet")


@pytest.fixture
def place(bench, make_words):
    """Two sources: three documents of 20 words with labels, and one of 40 without."""
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    place = Place(bench, versions)
    web = Source(
        name="web", path="web/*.jsonl", text="text", labels=(("kind", "web"), ("language", "en"))
    )
    place.put({"s.jsonl": [make_words(n, 20) for n in range(3)]}, source=web)
    place.put({"s.jsonl": [make_words(9, 40)]}, name="books")
    return place.scan()


def test_a_card_and_the_report_have_the_composition_by_source_and_label(place):
    builder = place.builder(PARQUET)
    for _, _, future in build_shares(builder, [(PARQUET, pack) for pack in place.packs]):
        future.result()
    card = (place.bench.store.mixtures("all") / CARD).read_text()
    rows = [
        "| source | web | 3 | 75.0 % | 60 | 60.0 % |",
        "| source | books | 1 | 25.0 % | 40 | 40.0 % |",
        "| kind | web | 3 | 75.0 % | 60 | 60.0 % |",
        "| kind | not declared | 1 | 25.0 % | 40 | 40.0 % |",
        "| language | en | 3 | 75.0 % | 60 | 60.0 % |",
        "| language | not declared | 1 | 25.0 % | 40 | 40.0 % |",
    ]
    assert "\n".join(rows) in card
    assert verify(builder, PARQUET).problems == []
    report_of(
        place.bench.store, place.packs, place.versions, place.bench.policy, mixtures=(PARQUET,)
    )
    with duckdb.connect(str(place.bench.store.report), read_only=True) as connection:
        found = connection.execute("FROM composition_by_mixture").fetchall()
    assert found == [
        ("all", True, "source", "web", 3, 0.75, 60, 0.6),
        ("all", True, "source", "books", 1, 0.25, 40, 0.4),
        ("all", True, "kind", "web", 3, 0.75, 60, 0.6),
        ("all", True, "kind", "not declared", 1, 0.25, 40, 0.4),
        ("all", True, "language", "en", 3, 0.75, 60, 0.6),
        ("all", True, "language", "not declared", 1, 0.25, 40, 0.4),
    ]


def test_other_labels_change_the_card_and_the_report_and_no_documents(place):
    first = [place.build(PARQUET, pack) for pack in place.packs]
    arguments = (place.versions, place.bench.policy, (PARQUET,))
    report_of(place.bench.store, place.packs, *arguments)
    assert is_current(place.builder(PARQUET))
    web, books = place.packs
    place.packs = [replace(web, source=replace(web.source, labels=(("kind", "forums"),))), books]
    builder = place.builder(PARQUET)
    assert not any(builder.is_current(PARQUET, pack) for pack in place.packs)
    assert not is_current(place.builder(PARQUET))
    again = [build_mixture(builder, PARQUET, pack) for pack in place.packs]
    assert [one.was_there for one in again] == [True, True]
    assert [one.counts for one in again] == [one.counts for one in first]
    assert "| kind | forums | 3 |" in (place.bench.store.mixtures("all") / CARD).read_text()
    assert all(builder.is_current(PARQUET, pack) for pack in place.packs)
