"""`decon-assets game`, as typed."""

from decon_assets.cli.main import main


def test_a_game_is_solved_and_drawn(tmp_path, capsys):
    given = ["--set", "penalty=3", "--set", "steepness=4"]
    assert main(["game", *given, "--out", str(tmp_path / "game")]) == 0
    out = capsys.readouterr().out
    assert "0.388 inner level 2.3 %" in " ".join(out.split())
    assert {path.name for path in (tmp_path / "game").iterdir()} == {
        "game.csv", "game.json", "game.svg", "game_by_penalty.svg",
    }  # fmt: skip
    assert main(["game", "--set", "gain=0.2"]) == 0
    out = capsys.readouterr().out
    assert "no net gain" in out
    assert "none needed" in out


def test_a_wrong_parameter_is_named(capsys):
    assert main(["game", "--set", "penalyt=3"]) == 2
    assert "Did you mean 'penalty'?" in capsys.readouterr().err
