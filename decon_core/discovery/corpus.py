"""Group shards into sources that are read the same way, by the fields of their first rows."""

from __future__ import annotations

import glob
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from decon_core.config.load import Source
from decon_core.config.names import folded
from decon_core.corpus.formats import known_suffixes
from decon_core.corpus.guess_fields import (
    Field,
    Row,
    Sample,
    count_read,
    detect_fields,
    fields_of,
    fields_read,
    sample,
)
from decon_core.corpus.packs import files_of, only_shards, require_names_in_utf8
from decon_core.discovery.overlap import overlaps
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import compression_of, suffix_of
from decon_core.storage.listing import Listing, list_path
from decon_core.storage.paths import is_url
from decon_core.wording import counted


@dataclass(frozen=True)
class SourceFinding:
    """A source, its files, and the reason for the fields that are read."""

    source: Source  # with an absolute path
    files: tuple[Path, ...]
    n_bytes: int
    fields: tuple[Field, ...]
    n_rows: int  # sampled rows
    n_files_read: int
    n_unreadable: int  # of the sampled rows
    why: str


@dataclass(frozen=True, eq=False)
class _Kind:
    """Files of one top folder and format whose names differ only from the first number on."""

    folder: Path
    is_root: bool  # whether `folder` is the given one, whose name does not describe the source
    stem: str
    ending: str
    files: tuple[Path, ...]
    samples: tuple[Sample, ...]  # of the first file, the middle one and the last one

    @property
    def rows(self) -> list[Row]:
        return [row for one in self.samples for row in one.rows]


def survey_corpus(typed: Sequence[str]) -> tuple[list[SourceFinding], list[str]]:
    """Return the sources in folders, files or globs, and files in none; or raise all problems."""
    remedy = (
        "run it on some downloaded files, then set `path` of the [[corpus.source]] to the URL "
        "(docs/configuration.md, URLs)"
    )
    expected = "local files, whose first rows can be read"
    if remote := [Problem(place, "a URL", expected, remedy) for place in typed if is_url(place)]:
        raise CorpusError(remote)
    places = [(place, _listing(place)) for place in typed]
    if twice := overlaps([(place, listing.paths) for place, listing in places]):
        raise CorpusError(twice)
    problems: list[Problem] = []
    kinds: list[_Kind] = []
    left_out: list[str] = []
    for place, listing in places:
        root, shards = listing.base, listing.paths
        if not shards:
            found = f"no shard{listing.instead or ': no such file'}"
            problems.append(Problem(place, found, f"files in {known_suffixes()}"))
        left_out += [str(one) for one in listing.skipped if not one.is_on_purpose]
        kinds += _kinds(root, shards)
    for one in (one for kind in kinds for one in kind.samples if one.damage):
        remedy = "replace it, or move it away"
        problems.append(Problem(str(one.path), one.damage, "a whole file", remedy))
    uniform = [part for kind in kinds for part in _split_mixed(kind, problems)]
    sources = _sources(uniform, problems)
    if not problems and not sources:
        expected = "files with rows, to see their fields"
        problems.append(Problem(", ".join(typed), "no row in any file", expected))
    if problems:
        raise CorpusError(dict.fromkeys(problems))
    read = {path for one in sources for path in one.files}
    left_out += [str(path) for kind in kinds for path in kind.files if path not in read]
    return _with_names(sources), left_out


def _listing(place: str) -> Listing:
    """List the shards at a place, and what else is there."""
    listing = only_shards(list_path(Path(place).absolute()))
    require_names_in_utf8(listing.paths)
    return listing


def _kinds(root: Path, shards: Iterable[Path]) -> list[_Kind]:
    """Group files by top folder, stem of the name (`shelf` of `shelf-0003.jsonl.gz`) and ending."""
    groups: defaultdict[tuple[Path, str, str], list[Path]] = defaultdict(list)
    for path in shards:
        below = path.relative_to(root).parts
        folder = root / below[0] if len(below) > 1 else root
        ending = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
        stem = re.split(r"[-_.]?\d", path.name.removesuffix(ending), maxsplit=1)[0]
        groups[folder, stem, ending].append(path)
    kinds = []
    for (folder, stem, ending), files in sorted(groups.items()):
        sampled = [files[at] for at in sorted({0, len(files) // 2, len(files) - 1})]
        samples = tuple(map(sample, sampled))
        kinds.append(_Kind(folder, folder == root, stem, ending, tuple(files), samples))
    return kinds


# Sources ------------------------------------------------------------------------------------------


def _split_mixed(kind: _Kind, problems: list[Problem]) -> list[_Kind]:
    """Split a group of files that are read differently; a problem if not all were sampled.

    They are if a file loses rows when it is read by the fields chosen for all files together.
    """
    reading = detect_fields(kind.rows)
    alone = [(one, detect_fields(one.rows)) for one in kind.samples] if reading else []
    if not reading or not any(
        own and count_read(reading[0], one.rows) < count_read(own[0], one.rows)
        for one, own in alone
    ):
        return [kind]
    if len(kind.files) == len(kind.samples):
        stems = [one.path.name.removesuffix(kind.ending) for one in kind.samples]
        return [
            replace(kind, stem=stem, files=(one.path,), samples=(one,))
            for stem, one in zip(stems, kind.samples, strict=True)
        ]
    files = f"{counted(len(kind.files), 'file')} named like {kind.files[0].name}"
    remedy = "move files with the same fields to a folder of their own"
    found, expected = f"{files} with different fields", "the same fields in files named alike"
    problems.append(Problem(str(kind.folder), found, expected, remedy))
    return []


def _sources(kinds: Sequence[_Kind], problems: list[Problem]) -> list[SourceFinding]:
    """Merge groups of a folder that are read the same way into sources, each with a glob."""
    findings: list[SourceFinding | None] = []
    folders: defaultdict[tuple[Path, str], list[_Kind]] = defaultdict(list)
    for kind in kinds:
        folders[kind.folder, kind.ending].append(kind)
    for _, alike in sorted(folders.items()):
        readings = {kind: detect_fields(kind.rows) for kind in alike if kind.rows}
        for kind in (kind for kind, reading in readings.items() if reading is None):
            found = f"rows with {', '.join(map(str, fields_of(kind.rows))) or 'no field'}"
            expected = "a field with text, a conversation, or chosen and rejected"
            problems.append(Problem(str(kind.files[0]), found, expected, _BY_HAND))
        ways = {(one[0].text, one[0].messages) for one in readings.values() if one}
        if len(ways) <= 1 and all(readings.values()):
            groups = [alike] if ways else []
        else:
            groups = [[kind] for kind in alike if readings.get(kind)]
        findings += [_finding(group, problems, alone=len(groups) == 1) for group in groups]
    return [one for one in findings if one is not None]


_BY_HAND = "leave these files out, or write their [[corpus.source]] by hand"


def _finding(
    group: Sequence[_Kind], problems: list[Problem], *, alone: bool
) -> SourceFinding | None:
    files = tuple(sorted(path for kind in group for path in kind.files))
    samples = [one for kind in group for one in kind.samples]
    rows = [row for one in samples for row in one.rows]
    reading = detect_fields(rows)
    pattern = _pattern(group, files, alone=alone)
    if reading is None or pattern is None:
        named = f"{counted(len(files), 'file')} named like {files[0].name}"
        found, expected = (
            f"{named}, among others with other fields",
            "names that a glob can tell apart",
        )
        remedy = "move them to a folder of their own"
        problems.append(Problem(str(group[0].folder), found, expected, remedy))
        return None
    source, why = reading
    n_rows = len(rows) + sum(one.n_unreadable for one in samples)
    n_readable = count_read(source, rows)
    if 2 * n_readable < n_rows:
        unread = f"{n_rows - n_readable} of {counted(n_rows, 'row')} in it and files like it"
        found = f"{unread} have no text in {', '.join(fields_read(source))}"
        problems.append(Problem(str(files[0]), found, "a text in most rows", _BY_HAND))
        return None
    first = group[0]
    stem = first.stem if len(group) == 1 and (first.is_root or not alone) else ""
    return SourceFinding(
        replace(source, name=stem or first.folder.name, path=pattern),
        files,
        sum(path.stat().st_size for path in files),
        tuple(fields_of(rows)),
        n_rows,
        len(samples),
        n_rows - n_readable,
        f"{why}; {n_readable} of {counted(n_rows, 'row')} can be read",
    )


def _pattern(group: Sequence[_Kind], files: tuple[Path, ...], *, alone: bool) -> str | None:
    """Return the simplest glob that matches exactly these files; None if there is none."""
    folder, ending = glob.escape(str(group[0].folder)), glob.escape(group[0].ending)
    depth = "" if all(path.parent == group[0].folder for path in files) else "**/"
    stem = "" if alone else glob.escape(group[0].stem)
    tried = [f"{folder}/{depth}{stem}{rest}{ending}" for rest in ("*", "[-_.0-9]*", "")]
    tried += [glob.escape(str(files[0]))] if len(files) == 1 else []
    for pattern in tried:
        found = files_of(Source(name="", path=pattern), folder=Path())
        if [path for path, _ in found] == [*files]:
            return pattern
    return None


def _with_names(findings: Sequence[SourceFinding]) -> list[SourceFinding]:
    """Give the sources unique names that are valid partition keys."""
    taken: set[str] = set()
    named = []
    for one in findings:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", folded(one.source.name)).strip("-")[:60] or "corpus"
        names = [plain, f"{plain}-{suffix_of(one.files[0])[1:]}"]
        names += [f"{plain}-{number}" for number in range(2, len(findings) + 2)]
        name = next(each for each in names if each.casefold() not in taken)
        taken.add(name.casefold())
        named.append(replace(one, source=replace(one.source, name=name)))
    return named
