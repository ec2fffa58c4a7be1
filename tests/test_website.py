"""The site: a strict build, reference pages with everything that the code has, and its errors."""

import re
from html.parser import HTMLParser

import pytest

from decon_assets.cli.main import command_line
from decon_core.config.detector_registry import BUILT_IN
from decon_core.config.json_schema import config_schema
from decon_core.config.setting_list import default_in_toml
from website import reference
from website.build import SiteError, build_site
from website.pages import _ELSEWHERE, ROOT, write_pages


class Loaded(HTMLParser):
    """What a page loads when it is opened: scripts, styles, pictures, frames."""

    def __init__(self, page):
        super().__init__()
        self.addresses = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        is_loaded = tag != "a" and values.get("rel") != "canonical"
        self.addresses += [values[key] for key in ("src", "href") if is_loaded and values.get(key)]


def test_the_site_builds_strictly_and_loads_nothing_from_other_servers(tmp_path):
    build_site(tmp_path / "site")
    pages = [*(tmp_path / "site").rglob("*.html")]
    assert {"index.html", "reference/settings.html", "decisions/index.html"} <= {
        page.relative_to(tmp_path / "site").as_posix() for page in pages
    }
    for page in pages:
        for address in Loaded(page.read_text()).addresses:
            assert not re.match(r"(https?:)?//", address), page
            path = (page.parent / address.split("#")[0].split("?")[0]).resolve()
            assert address.startswith("data:") or page.name == "404.html" or path.exists(), address
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text()), style


@pytest.fixture
def repository(tmp_path):
    """A repository with empty pages, two of which are not in the navigation."""
    root = tmp_path / "repository"
    pages = [page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md")]
    for path in (*_ELSEWHERE.values(), "docs/a.md", "docs/b.md", *pages):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Title\n")
    (root / "docs" / "notes.txt").write_text("notes\n")
    return root


def test_a_missing_heading_and_an_unlisted_page_are_errors_and_the_old_site_stays(
    repository, tmp_path
):
    (repository / "docs" / "a.md").write_text("# A\n\n[there](b.md#nowhere)\n")
    old = tmp_path / "site" / "index.html"
    old.parent.mkdir()
    old.write_text("old")
    with pytest.raises(SiteError) as error:
        build_site(tmp_path / "site", root=repository)
    assert "does not contain an anchor '#nowhere'" in str(error.value)
    assert "  - a.md\n  - b.md\n" in str(error.value)
    assert old.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repository", "site"]


def test_links_lead_to_pages_and_copied_files_or_are_named(repository, tmp_path):
    (repository / "docs" / "a.md").write_text(
        "[b](b.md#title), [data](../data/README.md), [notes](notes.txt), ![x](x.png)\n"
        "[folder](../data) `[code](gone.md)`\n```\n[code](gone.md)\n```\n[web](https://x.org)\n"
    )
    (repository / "README.md").write_text("[a](docs/a.md) [settings](docs/reference/settings.md)")
    problems = write_pages(tmp_path / "out", root=repository)
    assert problems == [
        "docs/a.md:1: link to 'x.png': no such file",
        "docs/a.md:2: link to '../data': a folder, expected a file",
    ]
    assert (
        tmp_path / "out" / "index.md"
    ).read_text() == "[a](a.md) [settings](reference/settings.md)"
    written = (tmp_path / "out" / "a.md").read_text()
    assert "[b](b.md#title), [data](sample-data.md), [notes](notes.txt)," in written
    assert written.count("gone.md") == 2
    assert (tmp_path / "out" / "notes.txt").read_text() == "notes\n"


def test_the_page_of_settings_has_every_key_once_with_its_meaning():
    page = reference.settings()
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", page)
    tables = config_schema()["$defs"]
    nodes = [node for table in tables.values() for node in table["properties"].items()]
    keys = {key for key, node in nodes if "deprecated" not in node}
    inner = {*re.findall(r"(?m)^## `\[+.*?(\w+)(?:\.NAME)?\]+`", page)}
    assert {key for key, *_ in rows} == keys - (inner - {"review"})  # [policy] has this key, too
    assert all(meaning.strip() for *_, meaning in rows)
    assert "| `pack_shards` | integer ≥ 1 |" in page
    assert '| `unreadable` | `"block", "drop"` | `"block"` |' in page


def test_the_page_of_commands_has_the_help_of_every_command_and_action():
    page = reference.commands()
    headings = re.findall(r"(?m)^##+ `decon-assets ?(.*)`$", page)
    assert set(command_line().commands) <= set(headings)
    assert {"mixture verify", "review import"} <= set(headings)
    assert page.count("Usage: decon-assets") == len(headings)


def test_the_pages_of_detectors_and_assets_have_all_of_them():
    detectors = reference.detectors()
    assert re.findall(r"(?m)^## `(\w+)`$", detectors) == [*BUILT_IN]
    assert "| `ratcliff_lowest_recorded` | `0.3` |" in detectors
    assets = reference.assets()
    assert (
        "| `scan` | benchmark × pack | `corpus`, `index`, `sketch` | Matches of every shard"
        in assets
    )
    assert "| `self_tests_pass` | `scan` | yes |" in assets


@pytest.mark.parametrize(
    ("page", "table"),
    [("sketch", "Sketch"), ("neighbours", "Neighbours"), ("studies/haystack", "Haystack")],
)
def test_guides_with_a_table_of_keys_have_the_defaults_of_the_models(page, table):
    text = (ROOT / "docs" / f"{page}.md").read_text().split("| key | default | meaning |\n")[1]
    properties = config_schema()["$defs"][table]["properties"]
    n_compared = 0
    for keys, defaults, _ in re.findall(r"(?m)^\| (`.+?) \| (.+?) \| (.+) \|$", text):
        given = re.findall(r"`([^`]+)`", defaults)
        for key, default in zip(re.findall(r"`([^`]+)`", keys), given, strict=False):
            if (value := properties[key].get("default")) is not None:
                assert default == default_in_toml(value), key
                n_compared += 1
    assert n_compared


# Pictures that a command writes, by the page that shows the command; `make screenshots` makes the
# others in Chromium.
DRAWN = {
    "composition.svg": ("studies/composition.md", "decon-assets blend plan curriculum"),
    "gap-by-category.svg": ("studies/categories.md", "--results data/scores.csv --by split"),
    "rates-by-category.svg": ("studies/categories.md", "--results data/scores.csv --by split"),
    "sampling.svg": ("studies/sampling.md", "--out found --sample 10% --sample-seed 1"),
    "game.svg": ("studies/game.md", "decon-assets game "),
    "game-by-penalty.svg": ("studies/game.md", "decon-assets game "),
    "pipeline.svg": ("../README.md", "decon-assets run"),
    "exposure.svg": ("studies/exposure.md", "decon-assets study --config data/decon.toml"),
    "haystack-subjects.svg": ("studies/haystack.md", 'benchmarks=["almanac_rc"'),
    "haystack-amplification.svg": ("studies/haystack.md", "--config data/decon.toml --out study"),
    "haystack.svg": ("studies/haystack.md", "decon-assets haystack --config data/decon.toml"),
    "pair-metrics.svg": ("pair-metrics.md", "decon-assets scorecard --pairs"),
    "score-gap.svg": ("score-gap.md", "decon-assets gap --results data/scores.csv"),
    "study-by-dose.svg": ("studies/time-and-dose.md", "--config examples/wmt_copies/decon.toml"),
    "study-by-step.svg": ("studies/time-and-dose.md", "--config data/decon.toml --out tables"),
    "training-runs.svg": ("studies/training-runs.md", "--config data/decon.toml --out study"),
    "translation.svg": ("studies/translation.md", "--config examples/wmt_copies/decon.toml"),
    "scorecard.svg": ("scorecard.md", "decon-assets scorecard "),
}


def test_every_picture_is_shown_on_a_page_and_made_by_a_command():
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "ui").glob("test_*.py"))
    taken = set(re.findall(r"keep\(\w+, \"([\w.-]+)\"\)", tests))
    pictures = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert pictures == taken | DRAWN.keys()
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text() for page in pages)
    assert {name for name in pictures if f"images/{name})" not in text} == set()
    for page, command in DRAWN.values():
        assert command in (ROOT / "docs" / page).read_text()
