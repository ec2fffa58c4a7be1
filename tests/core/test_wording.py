"""Counts agree with their nouns; templates escape foreign text and refuse unknown names."""

import subprocess
import sys

import jinja2
import pytest

from decon_core import wording
from decon_core.wording import counted, have, hold, said_by_rows, size

HOSTILE = "a|b`<img src=x>[x](y)&\n# T {{ 7 * 7 }}"


def rendered(template, name="page.md.j2", **values):
    """The text as a template of this name, filled."""
    environment = wording._environment().overlay(loader=jinja2.DictLoader({name: template}))
    return environment.get_template(name).render(values)


def test_rows_of_a_split_train_say_that_the_benchmark_is_evaluated_on_it():
    row = {"shard": "a.jsonl", "n_shards": 1, "n_rows": 2, "value": "google/IFEval"}
    row |= {"split": "train", "benchmark": "ifeval"}
    said = "say that they are google/IFEval, split train (benchmark ifeval, evaluated on its split "
    assert said_by_rows(row) == f"2 rows of a.jsonl {said}train)"


def test_html_and_svg_are_escaped_and_values_are_no_templates():
    for name in ("page.html.j2", "picture.svg.j2"):
        page = rendered("<p>{{ value }}</p>", name, value=HOSTILE)
        assert "<img" not in page
        assert "{{ 7 * 7 }}" in page


def test_text_in_markdown_is_one_line_that_forms_nothing():
    assert rendered("{{ value|plain }}", value=HOSTILE) == (
        "a\\|b\\`&lt;img src=x>\\[x](y)&amp; # T {{ 7 * 7 }}"
    )
    assert rendered("{{ value|code }}", value=HOSTILE) == (
        "`a\\|b'<img src=x>[x](y)& # T {{ 7 * 7 }}`"
    )
    assert rendered("{{ value|code }}", value=" \n ") == "–"


def test_a_name_that_nobody_gives_is_an_error_and_not_an_empty_text():
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        rendered("{{ missing }}")


def test_a_table_is_as_wide_as_its_heads():
    rows = [("a", "1"), ("b", "2")]
    assert rendered("{{ rows|table(('x', 'n'), n_text=1) }}", rows=rows) == (
        "| x | n |\n| --- | ---: |\n| a | 1 |\n| b | 2 |"
    )


def test_the_command_line_and_the_code_location_do_without_templates():
    code = (
        "import sys, decon_assets.cli.main, decon_assets.definitions\n"
        "sys.exit('jinja2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 shards"), (1, "1 shard"), (2, "2 shards"), (1200, "1,200 shards")]
)
def test_the_noun_agrees_with_its_number(n, text):
    assert counted(n, "shard") == text


def test_the_verb_agrees_with_its_number():
    assert [hold(0), hold(1), hold(2)] == ["hold", "holds", "hold"]
    assert [have(0), have(1), have(2)] == ["have", "has", "have"]


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (2_500_000, "2.5 MB"),
        (10**12, "1.0 TB"),
    ],
)
def test_a_size_has_the_largest_unit_that_fits(n_bytes, text):
    assert size(n_bytes) == text
