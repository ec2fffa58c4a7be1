"""`decon-assets settings`: the tables and keys of decon.toml, in a terminal."""

import re

import pytest

from decon_assets.cli.main import main
from decon_core.config.setting_list import meaning_of, setting_tables


def printed(capsys, *names):
    assert main(["settings", *names]) == 0
    return capsys.readouterr().out


def test_all_tables_are_listed(capsys):
    lines = printed(capsys).splitlines()
    headings = [table.heading for table in setting_tables()]
    assert [line.split()[0] for line in lines if line.startswith("[")] == headings
    assert lines[-1] == "next: decon-assets settings TABLE"


def test_a_table_has_its_keys_with_defaults_and_those_of_the_tables_within_it(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = printed(capsys, "mixture")
    assert re.findall(r"(?m)^\[.*", said) == [
        "[[mixture]]",
        "[mixture.leaks]",
        "[mixture.licenses]",
    ]
    assert '\n  take = "clean"\n' in said
    assert "\n  sources\n      Only these sources. (list of string)\n" in said
    assert "the mixture, and of its folder in the store. (string, required)\n" in said
    assert max(map(len, said.splitlines())) <= 80
    assert printed(capsys, "[[mixture]]") == said


def test_keys_are_found_by_a_part_of_their_name(capsys):
    said = printed(capsys, "ratcliff_t")
    assert re.findall(r"(?m)^\[.*", said) == ["[policy]", "[policy.benchmark.NAME]"]
    assert re.findall(r"(?m)^  (\w+)(?: = 0.5)?$", said) == ["ratcliff_threshold"] * 2


def test_an_unknown_name_is_an_error(capsys):
    assert main(["settings", "mixtrue"]) == 2
    assert capsys.readouterr().err == (
        "mixtrue: no table or key of decon.toml has this name, or a name that contains it. "
        "`decon-assets settings` lists the tables\n"
    )


def test_every_key_needs_a_meaning():
    with pytest.raises(LookupError, match=r"report\.drift has no description"):
        meaning_of({"type": "number"}, "report.drift")
