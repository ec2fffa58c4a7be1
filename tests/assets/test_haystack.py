"""The asset `haystack`: off by default, made by a run, up to date until an input changes."""

import json

from decon_assets.cli.main import main

TABLE = "[haystack]\nitems = 2\ndocuments = 20\n"


def result(world):
    return json.loads((world.store.haystack / "haystack.json").read_text())


def test_a_run_makes_it_if_it_is_configured_and_again_if_its_settings_change(world, capsys):
    world.start()
    assert not world.store.haystack.exists()
    world.mixtures = TABLE
    world.run()
    assert result(world)["n_planted"] == 4
    assert [one["scorer"] for one in result(world)["scorers"]] == [
        "instruction_like",
        "educational",
        "short",
    ]
    world.run()
    assert "haystack: up to date" in world.said
    world.mixtures = TABLE.replace("items = 2", "items = 3")
    world.write_config()
    assert main(["status", "--config", str(world.config_path)]) == 1
    assert capsys.readouterr().out.count("haystack: missing or outdated") == 1
    world.run()
    assert result(world)["n_planted"] == 6
