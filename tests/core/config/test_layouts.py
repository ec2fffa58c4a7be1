"""Paths, and the registry of layouts."""

import re
from pathlib import Path

import pytest

from decon_core.config.layouts import covers, known_layouts, leads_to

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(
    ("pattern", "path", "is_covered"),
    [
        ("text", "text", True),
        ("text", "text.body", True),
        ("text", "text[]", True),
        ("text", "texts", False),
        ("messages[].content", "messages[].content[].text", True),
        ("messages[].content", "messages[].role", False),
        ("metadata.*.body", "metadata.page.body", True),
        ("metadata.*.body", "metadata.page.title", False),
        ("*", "anything[].at.all", True),
    ],
)
def test_a_path_covers_a_field_and_all_that_is_below_it(pattern, path, is_covered):
    assert covers(pattern, path) == is_covered


def test_a_path_leads_to_what_a_pattern_names_below_it():
    assert leads_to("messages", "messages[].content")
    assert leads_to("metadata", "metadata.tools")
    assert not leads_to("meta", "metadata.tools")
    assert not leads_to("metadata.other", "metadata.tools")


def test_the_page_of_layouts_lists_each_with_its_marks_and_visible_paths():
    text = (DOCS / "layouts.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, flags=re.MULTILINE))
    assert [*rows] == [*known_layouts()]
    for name, layout in known_layouts().items():
        paths = [path for paths in layout.alternatives for path in paths]
        paths += [] if layout.visible == ("*",) else layout.visible
        assert {f"`{path}`" for path in paths} <= {*re.findall(r"`[^`]+`", rows[name])}
