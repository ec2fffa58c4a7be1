"""Fill the Jinja templates of pages and cards, which lie beside the code that gathers their data.

HTML and SVG are escaped automatically. Markdown is not: text from a corpus, a benchmark or a result
file goes through `code` or `plain` before it enters a Markdown template.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_core.wording.counts import counted, hold, percent

if TYPE_CHECKING:
    from jinja2 import Environment

_MARKDOWN_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", "|": "\\|", "[": "\\[", "`": "\\`"},
)


def render(template: str, **values: Any) -> str:
    """Fill a template, named by its path below decon_core; an unknown name in it is an error."""
    return _environment().get_template(template).render(values)


def pieces(template: str, **values: Any) -> Iterator[str]:
    """Fill a template piece by piece, for pages that are too large for one string."""
    return _environment().get_template(template).generate(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1]),
        autoescape=select_autoescape(["html.j2", "svg.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (code, counted, hold, number, percent, plain, quoted, table)
    environment.filters |= {one.__name__: one for one in filters}
    return environment


def number(value: float | None, form: str = ",") -> str:
    """Format a number, by default with thousands separators; None is unknown."""
    return "unknown" if value is None else format(value, form)


def quoted(text: str) -> str:
    """Return a JSON string, which is also a YAML string."""
    return json.dumps(text, ensure_ascii=False)


# Markdown -----------------------------------------------------------------------------------------


def code(name: str) -> str:
    """Return a name as code, so that it cannot form a table cell, a tag or a link."""
    plain = " ".join(name.split()).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else "–"


def plain(text: str) -> str:
    """Escape text on one line: no table columns, tags, links or code."""
    return " ".join(text.split()).translate(_MARKDOWN_ESCAPES)


def table(rows: Iterable[Sequence[str]], heads: Sequence[str], *, n_text: int | None = None) -> str:
    """Return a Markdown table; columns after the first `n_text` are aligned to the right."""
    lines = ["---" if n_text is None or at < n_text else "---:" for at in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, lines, *rows))
