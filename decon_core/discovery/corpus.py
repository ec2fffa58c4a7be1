"""Group the shards of folders into sources, and look at their first rows."""

from __future__ import annotations

import glob
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from decon_core.config.sources import Source
from decon_core.config.validation import key_from
from decon_core.corpus.formats import known_suffixes
from decon_core.corpus.packs import files_of, only_shards, require_names_in_utf8
from decon_core.corpus.shard_file import NO_PERMISSION, no_permission
from decon_core.corpus.shard_head import ShardHead, head_of, listed_fields
from decon_core.discovery.overlap import overlaps
from decon_core.discovery.row_survey import RowSurvey
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import compression_of, suffix_of
from decon_core.storage.listing import Listing, Skipped, list_path
from decon_core.storage.paths import is_url
from decon_core.wording import counted

_MOST_FILES = 48  # files of a source whose first rows are read


@dataclass(frozen=True, eq=False)
class SourceFinding:
    """A source with its files, and what their first rows hold."""

    source: Source  # its path is absolute
    files: tuple[Path, ...]
    n_bytes: int
    n_files_read: int
    rows: RowSurvey
    why: str  # these files are one source


@dataclass
class CorpusSurvey:
    """The sources in some places, and what is no source or damaged."""

    sources: list[SourceFinding] = field(default_factory=list)
    left_out: list[Skipped] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    with_problems: list[Skipped] = field(default_factory=list)  # left out; `problems` say so

    @property
    def unread(self) -> list[Skipped]:
        """All files that no source reads."""
        return sorted([*self.left_out, *self.with_problems])


@dataclass(frozen=True, eq=False)
class _Group:
    """Files of one top folder and format."""

    folder: Path
    is_root: bool  # whether `folder` is the given one, whose name does not describe the source
    ending: str
    files: tuple[Path, ...]
    typed: str  # the place that was given
    is_part: bool = False  # whether the folder has other files of the format

    @property
    def stems(self) -> dict[str, list[Path]]:
        """The files by name up to the first number: `shelf` of `shelf-0003.jsonl.gz`."""
        stems: dict[str, list[Path]] = {}
        for path in self.files:
            name = path.name.removesuffix(self.ending)
            stems.setdefault(re.split(r"[-_.]?\d", name, maxsplit=1)[0], []).append(path)
        return stems

    @property
    def name(self) -> str:
        stems = [*self.stems]
        is_named = len(stems) == 1 and (self.is_root or self.is_part)
        return (stems[0] if is_named else "") or self.folder.name

    @property
    def looked_at(self) -> list[Path]:
        """The first, the middle and the last file of each stem, and others at regular distances."""
        ends = {files[at] for files in self.stems.values() for at in (0, len(files) // 2, -1)}
        n_others = _MOST_FILES - len(ends)
        if n_others > 0:
            return sorted(ends | {*self.files[:: -(-len(self.files) // n_others)]})
        return sorted(ends)[:: -(-len(ends) // _MOST_FILES)]

    @property
    def pattern(self) -> str | None:
        """The simplest glob that matches exactly these files; None if there is none."""
        folder, ending = glob.escape(str(self.folder)), glob.escape(self.ending)
        depth = "" if all(path.parent == self.folder for path in self.files) else "**/"
        stems = [glob.escape(stem) for stem in self.stems] if len(self.stems) == 1 else []
        names = ["*", *(f"{stem}{rest}" for stem in stems for rest in ("*", "[-_.0-9]*", ""))]
        tried = [f"{folder}/{depth}{name}{ending}" for name in names]
        tried += [glob.escape(str(self.files[0]))] if len(self.files) == 1 else []
        return next(filter(self._matches, [*tried, str(Path(self.typed).absolute())]), None)

    def _matches(self, pattern: str) -> bool:
        matches = files_of(Source(name="", path=pattern), folder=Path())
        return [path for path, _ in matches] == [*self.files]


def survey_corpus(typed: Sequence[str]) -> CorpusSurvey:
    """Return the sources in folders, files or globs.

    What cannot be read is noted. Raises `CorpusError` if a place is a URL or lies in another one,
    or if there is no source at all.
    """
    remedy = (
        "run `init` on some downloaded files, then set `path` of the [[corpus.source]] to the URL "
        "(docs/configuration.md, URLs)"
    )
    expected = "local files, because their first rows are read"
    CorpusError.raise_for(
        Problem(place, "a URL", expected, remedy) for place in typed if is_url(place)
    )
    places: list[tuple[str, Listing]] = []
    for place in typed:
        listing = only_shards(list_path(Path(place).absolute()))
        require_names_in_utf8(listing.paths)
        places.append((place, listing))
    CorpusError.raise_for(overlaps([(place, listing.paths) for place, listing in places]))
    survey = CorpusSurvey()
    for place, listing in places:
        if not listing.paths:
            is_there = listing.instead or Path(place).is_dir()
            found = f"no shard{listing.instead}" if is_there else "no such file or folder"
            survey.problems.append(Problem(place, found, f"files in {known_suffixes()}"))
        survey.left_out += [file for file in listing.skipped if not file.is_on_purpose]
        for group in _groups(place, listing.base, listing.paths):
            _add_sources(group, survey)
    if not survey.sources:
        found = f"nothing that can be read{''.join(f'; {file}' for file in survey.left_out)}"
        nothing = Problem(", ".join(typed), found, "files whose rows contain text")
        if survey.left_out:
            survey.problems.append(nothing)
        raise CorpusError(survey.problems)
    survey.sources = _with_names(survey.sources)
    return survey


def _groups(place: str, root: Path, shards: Iterable[Path]) -> Iterator[_Group]:
    """Group files by top folder and ending."""
    groups: defaultdict[tuple[Path, str], list[Path]] = defaultdict(list)
    for path in shards:
        below = path.relative_to(root).parts
        folder = root / below[0] if len(below) > 1 else root
        ending = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
        groups[folder, ending].append(path)
    for (folder, ending), files in sorted(groups.items()):
        yield _Group(folder, folder == root, ending, tuple(files), place)


def _add_sources(group: _Group, survey: CorpusSurvey) -> None:
    """Add a group as a source; as one for each stem if no glob tells all its files apart."""
    if (pattern := group.pattern) is not None:
        _add_source(group, pattern, survey)
    elif len(group.stems) > 1:
        for files in group.stems.values():
            _add_sources(replace(group, files=(*files,), is_part=True), survey)
    else:
        n_files = counted(len(group.files), "file")
        found = f"no glob matches only the {n_files} that are named like {group.files[0].name}"
        remedy = "move them to a folder of their own"
        survey.problems.append(Problem(str(group.folder), found, remedy=remedy))
        survey.with_problems += _skipped(group.files, "named like files that are read")


def _add_source(group: _Group, pattern: str, survey: CorpusSurvey) -> None:
    """Add a group as a source, unless no text of it can be read."""
    heads = [head_of(path) for path in group.looked_at]
    faults = [problem for head in heads for problem in _faults(head)]
    rows = RowSurvey(heads)
    if why := _why_no_source(rows, heads):
        survey.problems += faults
        named = {problem.where: problem.found for problem in faults}
        left_out = [path for path in group.files if str(path) not in named]
        survey.left_out += _skipped(left_out, why)
        for where, found in named.items():
            survey.with_problems += _skipped([Path(where)], found)
        return
    without_text = [problem for head in heads for problem in _without_text(head)]
    survey.problems += faults + without_text
    where = "in" if all(path.parent == group.folder for path in group.files) else "below"
    named_so = "similarly named" if group.is_part else "all"
    survey.sources.append(
        SourceFinding(
            Source(name=group.name, path=pattern, id=rows.ids[0] if rows.ids else None),
            group.files,
            sum(path.stat().st_size for path in group.files),
            len(heads),
            rows,
            f"{named_so} {group.ending} files {where} {group.folder.name}, whatever their fields",
        )
    )


def _why_no_source(rows: RowSurvey, heads: Sequence[ShardHead]) -> str:
    """Return why nothing can be read of files with these first rows; empty if it can."""
    with_rows = [head for head in heads if head.n_rows]
    if with_rows and all(head.is_unreadable for head in with_rows):
        n_unreadable = sum(head.n_unreadable for head in with_rows)
        seen = counted(sum(head.n_rows for head in with_rows), "row")
        why = with_rows[0].why_unreadable
        return f"{n_unreadable} of {seen} in files like it cannot be read: {why}"
    if not rows.rows:
        return "no readable rows" if rows.unreadable else "no rows"
    return "" if rows.has_text else f"rows without text, but with {listed_fields(rows.rows)}"


def _skipped(files: Iterable[Path], why: str) -> list[Skipped]:
    return [Skipped(str(path), why, is_on_purpose=False) for path in files]


def _without_text(head: ShardHead) -> Iterator[Problem]:
    """Yield a problem of an intact file in which there is no text."""
    if not head.damage and not head.n_unreadable and (why := _why_no_source(RowSurvey([head]), ())):
        yield Problem(str(head.path), why, "text", "check it, or move it elsewhere")


def _faults(head: ShardHead) -> Iterator[Problem]:
    where = str(head.path)
    if head.damage == NO_PERMISSION:
        yield no_permission(where)
    elif head.damage:
        yield Problem(where, head.damage, "a complete file", "replace it, or move it elsewhere")
    elif head.is_unreadable:
        seen = f"{head.n_unreadable} of its first {counted(head.n_rows, 'row')}"
        found = f"{seen} cannot be read: {head.why_unreadable}"
        yield Problem(where, found, remedy="replace it, or move it elsewhere")


def _with_names(findings: Sequence[SourceFinding]) -> list[SourceFinding]:
    """Give the sources unique names that are valid partition keys."""
    taken: set[str] = set()
    named = []
    for finding in findings:
        plain = key_from(finding.source.name, other="-").strip("-")[:60] or "corpus"
        names = [plain, f"{plain}-{suffix_of(finding.files[0])[1:]}"]
        names += [f"{plain}-{number}" for number in range(2, len(findings) + 2)]
        name = next(each for each in names if each.casefold() not in taken)
        taken.add(name.casefold())
        named.append(replace(finding, source=replace(finding.source, name=name)))
    return named
