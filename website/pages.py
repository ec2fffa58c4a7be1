"""The pages of the site: those of the repository with their links rewritten, and generated ones."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path, PurePosixPath

from website import reference

ROOT = Path(__file__).parents[1]

# Pages that lie outside docs/, by their place on the site.
_ELSEWHERE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "sample-data.md": "data/README.md",
}

# Code, where `](` is no link, or a link's target, with a title perhaps.
_CODE_OR_LINK = re.compile(
    r"(?ms)^ *(?P<fence>```+|~~~+).*?^ *(?P=fence)"
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<=\]\()(?P<target>[^()\s]+)(?=[)\s])"
)
_EXTERNAL = re.compile(r"[a-z]+:|#")


def write_pages(folder: Path, *, root: Path = ROOT) -> list[str]:
    """Write all pages, and the files that they link to, into a folder; return the broken links.

    A linked file outside docs/ is copied to `files/`. Links between pages are left to MkDocs.
    """
    places = {path: place for place, path in _ELSEWHERE.items()}
    for page in sorted((root / "docs").rglob("*.md")):
        places[page.relative_to(root).as_posix()] = page.relative_to(root / "docs").as_posix()
    texts = {path: (root / path).read_text("utf-8") for path in places}
    generated = {"docs/decisions": ("decisions/index.md", _list_of("docs/decisions/", texts))}
    generated |= {f"docs/{place}": (place, make()) for place, make in reference.PAGES.items()}
    for path, (place, text) in generated.items():
        places[path], texts[path] = place, text

    problems: list[str] = []
    for path, place in places.items():
        links = _Links(path, place, places, root)
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(links.rewritten(texts[path]), "utf-8")
        problems += links.problems
        for source, copy in links.files.items():
            (folder / copy).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / source, folder / copy)
    return problems


class _Links:
    """The links of one page: rewritten for its place on the site, with the files they need."""

    def __init__(self, path: str, place: str, places: dict[str, str], root: Path) -> None:
        self.files: dict[str, str] = {}  # to be copied, with their places
        self.problems: list[str] = []
        self._path = path
        self._place = place
        self._places = places
        self._root = root

    def rewritten(self, text: str) -> str:
        """Return the page with its links to files as they are on the site."""
        return _CODE_OR_LINK.sub(lambda found: self._replacement(found, text), text)

    def _replacement(self, found: re.Match[str], text: str) -> str:
        target = found["target"]
        if target is None or _EXTERNAL.match(target):
            return found[0]
        file, hash_sign, heading = target.partition("#")
        path = posixpath.normpath(PurePosixPath(self._path).parent / file)
        if place := self._places.get(path) or self._place_of_file(path):
            return self._relative(place) + hash_sign + heading
        line = text.count("\n", 0, found.start()) + 1
        what = "a folder, expected a file" if (self._root / path).is_dir() else "no such file"
        self.problems.append(f"{self._path}:{line}: link to {target!r}: {what}")
        return target

    def _place_of_file(self, path: str) -> str | None:
        if not (self._root / path).is_file():
            return None
        self.files[path] = (
            path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"
        )
        return self.files[path]

    def _relative(self, place: str) -> str:
        return posixpath.relpath(place, posixpath.dirname(self._place) or ".")


def _list_of(folder: str, texts: dict[str, str]) -> str:
    """Return a page that lists the pages of a folder by their titles."""
    return "# Decisions\n\n" + "".join(
        f"- [{text.splitlines()[0].removeprefix('# ')}]({path.removeprefix('docs/')})\n"
        for path, text in texts.items()
        if path.startswith(folder)
    )
