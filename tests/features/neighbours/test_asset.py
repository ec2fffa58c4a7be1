"""The `neighbours` asset: off by default, made by a run, kept up to date, part of the report."""

import duckdb
import pytest

from decon_assets.cli.main import main
from decon_assets.runner.pipeline import PipelineError
from decon_core.report.html import sections
from decon_core.report.html.gather import gather

TABLE = "[neighbours]\nsize = 8\nmin_tokens = 10\nmax_tokens = 30\ntop = 2\n"


def asked(world, query):
    with duckdb.connect(str(world.store.report), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def sampled(world):
    """A world with [neighbours], with a report."""
    world.mixtures = TABLE
    world.start(until="report")
    return world


def test_without_the_table_nothing_is_sampled(world):
    world.start(until="report")
    assert not (world.store.root / "neighbours").exists()
    assert asked(world, "SELECT count(*) FROM neighbours") == [(0,)]


def test_the_report_has_the_neighbours_of_every_item(sampled):
    assert asked(sampled, "SELECT source, n_sampled FROM neighbour_sample") == [("web", 8)]
    n_items = asked(sampled, "SELECT count(*) FROM items")[0][0]
    assert asked(sampled, "SELECT count(*) FROM neighbours") == [(2 * n_items,)]
    ((text,),) = asked(sampled, "SELECT text FROM neighbours LIMIT 1")
    assert text


def test_a_second_run_has_nothing_to_do(sampled, capsys):
    sampled.run()
    assert any("neighbours: up to date" in line for line in sampled.said)
    assert main(["status", "--config", str(sampled.config_path)]) == 0


def test_other_settings_are_missing_until_the_next_run_and_without_the_table_there_are_none(
    sampled, capsys
):
    sampled.mixtures = f'{TABLE.replace("size = 8", "size = 9")}[report]\nsnippets = "off"\n'
    sampled.write_config()
    assert main(["status", "--config", str(sampled.config_path)]) == 1
    assert "neighbours" in capsys.readouterr().out
    sampled.run(until="report")
    assert asked(sampled, "SELECT n_sampled FROM neighbour_sample") == [(9,)]
    ((n, n_texts),) = asked(sampled, "SELECT count(*), count(text) FROM neighbours")
    assert (n > 0, n_texts) == (True, 0)  # without snippets there are no paragraphs
    sampled.mixtures = ""
    sampled.run(until="report")
    assert asked(sampled, "SELECT count(*) FROM neighbours") == [(0,)]


def test_a_missing_embedder_fails_with_the_remedy_and_the_report_is_made(sampled):
    sampled.mixtures = f'{TABLE}embedder = "model"\n'
    with pytest.raises(PipelineError, match="a sentence-transformers folder"):
        sampled.run(until="report")
    assert asked(sampled, "SELECT count(*) FROM neighbours") == [(0,)]


def test_the_page_shows_the_nearest_items(sampled):
    section = sections.section("neighbours", gather(sampled.store.report))
    by_benchmark, by_source, nearest, similarity, sample = section.tables
    assert not by_benchmark.rows + by_source.rows  # nothing is judged yet
    assert len(nearest.rows) == asked(sampled, "SELECT count(*) FROM items")[0][0]
    assert len(similarity.rows) == 2 * 10
    ((*counts, _, _, _),) = sample.rows
    assert counts == ["web", 36, 8]
