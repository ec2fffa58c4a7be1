"""The page of a report in a browser: what it shows, and the database behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from decon_core.report.html.build import write_page

# The page itself, its own files for saving, and the squares of the heat map.
OWN = ("asked: file:///", "asked: data:image/png", "asked: blob:null/")
BEST_FIRST = "is_contaminated DESC, is_no_answer DESC, score DESC, text_id"

Open = Callable[..., Page]


@contextmanager
def watched(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Contexts of a browser whose pages may ask for nothing else and fail nowhere."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    def new_context(**options: Any) -> BrowserContext:
        settings = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light", **options}
        context = browser.new_context(**settings)
        contexts.append(context)
        context.on("weberror", lambda error: problems.append(f"failed: {error.error}"))
        context.on("console", lambda said: problems.append(f"said: {said.text}"))
        context.on("request", lambda request: problems.append(f"asked: {request.url[:80]}"))
        return context

    yield new_context
    for context in contexts:
        context.close()
    unexpected = [one for one in problems if not one.startswith(OWN)]
    assert not unexpected, unexpected


def open_page(context: BrowserContext, report: Path, file: Path, place: str = "") -> Page:
    write_page(report, file)
    page = context.new_page()
    page.goto(f"{file.as_uri()}{place}")
    expect(page.locator("body.is-ready")).to_be_attached(timeout=60_000)
    return page


def go(page: Page, place: str) -> None:
    """Follow a link of the page, also one to what is shown already."""
    page.evaluate(
        """place => new Promise(done => {
            history.replaceState(null, "", "#elsewhere");
            addEventListener("hashchange", done, { once: true });
            location.hash = place;
        })""",
        place,
    )


def rows(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Matched texts").get_by_role("option")


def field(page: Page, label: str) -> Locator:
    """The field of the filter in view."""
    return page.locator("form.filters:visible").get_by_label(label, exact=True)


def names(page: Page) -> list[str]:
    return page.locator("#list .item").all_text_contents()


def found(page: Page, told: str = "#n-found") -> int:
    """The number of matched texts that the page says it shows, once it says one."""
    expect(page.locator(told)).to_contain_text(re.compile(r"^[\d,]+"))
    return int(re.match(r"[\d,]+", page.locator(told).inner_text())[0].replace(",", ""))


def ask(report: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(report), read_only=True) as connection:
        return connection.execute(query).fetchall()
