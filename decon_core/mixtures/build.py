"""A mixture of one pack, built: its shards, the list of what is not in them, and the account.

Fail-closed: nothing is built while a shard was not scanned against every benchmark that the mixture
asks about, or while rows were lost in reading, unless the policy says to leave those out. A folder
appears whole:

    <store>/mixtures/<name>/<pack>/
      <shard> ...            under the names that they have in the corpus
      _removed.parquet       every document that is not there, or not as it was, and why
      _manifest.json         inputs, settings, counts, and a hash of every file
    <store>/mixtures/<name>/README.md    of a mixture in parquet: the page that goes with it
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.common import current_common
from decon_core.corpus import Pack, Shard, hash_file
from decon_core.errors import CorpusError, DeconError, IncompleteError, MissingError, Problem
from decon_core.idf import current_snapshot_fingerprint
from decon_core.leaks import pairs_of
from decon_core.mixtures.attributes import attribute_file, stem_of, write_attributes
from decon_core.mixtures.card import CARD, DATA, Share, card_of, leaked_of, listed
from decon_core.mixtures.choice import Choice, Sight, Sizes, choose, refuse
from decon_core.mixtures.control import Draw, draw, draw_fingerprint, read_draw
from decon_core.mixtures.excise import Cut, cut_out
from decon_core.mixtures.layouts import LAYOUTS, write_layout
from decon_core.mixtures.rewrite import Changes, Ids, has_lines, rewrite, rewrite_lines
from decon_core.mixtures.rows import Rows, RowsOfBlock, RowsOfShard
from decon_core.policy import Policy
from decon_core.reading.lines import LineBlock
from decon_core.records import Version
from decon_core.rescan import Rescan
from decon_core.schemas import REMOVED
from decon_core.store import Store, aside, read_json, write_json, write_parquet
from decon_core.tiles import scan_fingerprint
from decon_core.variants import Mixture, treatment_of
from decon_core.verdicts import NO_VERDICTS, Verdicts
from decon_core.workers import Advance, advance, run_jobs, useful_workers

MANIFEST = "_manifest.json"
REMOVED_FILE = "_removed.parquet"

# Counted up when a mixture of the same inputs comes out in another way: it is built again.
_FORMAT = 2

_UNITS = ("documents", "bytes", "tokens")


@dataclass(frozen=True)
class Summary:
    """What a mixture of a pack holds, and what is not in it any more."""

    mixture: str
    pack: str
    n_documents_in: int
    n_documents_out: int
    n_tokens_in: int
    n_tokens_out: int
    n_cut: int  # documents that are there in part
    n_unreadable: int
    folder: Path
    was_there: bool

    @property
    def n_removed(self) -> int:
        return self.n_documents_in - self.n_documents_out


@dataclass(frozen=True)
class Builder:
    """Builds the mixtures of a configuration from what is in the store today."""

    store: Store
    packs: tuple[Pack, ...]  # all of them: a control is drawn over all packs of its source
    versions: tuple[Version, ...]
    policy: Policy
    mixtures: tuple[Mixture, ...]
    n_known: int | None = None  # packs of the corpus, where these are some of them
    verdicts: Verdicts = NO_VERDICTS

    @cached_property
    def sight(self) -> Sight:
        scan = scan_fingerprint(self.store, self.policy)
        return Sight(self.store, self.versions, self.policy, scan, self.verdicts)

    def build(self, mixture: Mixture, pack: Pack) -> Summary:
        """Write a pack's share of a mixture, unless it stands already."""
        mixture = self.effective(mixture)
        shards = _shards_of(mixture, pack)
        self._require(mixture, pack)
        fingerprint = self.fingerprint(mixture, pack)
        folder = self.store.mixture(mixture.name, pack.name)
        manifest = _standing(folder, fingerprint)
        if manifest is not None and not damage(folder):
            self._keep_card(mixture)
            return _summary(manifest, folder, was_there=True)
        drawn = self.draw_for(mixture, pack)
        rows = drawn.rows if drawn else {}
        with aside(folder, drafts=self.store.drafts) as draft:
            draft.mkdir(parents=True)
            work = _Work(self.sight, mixture, pack, draft)
            accounts = [work.write(shard, rows.get(shard.name, ())) for shard in shards]
            manifest = {
                **self._told(mixture),
                "pack": pack.name,
                "source": pack.source.name,
                "fingerprint": fingerprint,
                "control": [vars(drawn.matched)] if drawn else None,
                "has_verdicts": any(self._pairs(shards, self.sight.needed_by(mixture))),
                "shards": accounts,
                "totals": _totals(accounts),
                "removed": hash_file(work.write_removed()),
            }
            write_json(draft / MANIFEST, manifest)
        self._keep_card(mixture)
        return _summary(manifest, folder, was_there=False)

    def stands(self, mixture: Mixture, pack: Pack) -> bool:
        """Whether a pack's share of a mixture is there, made from today's inputs."""
        folder = self.store.mixture(mixture.name, pack.name)
        manifest = _standing(folder, self.fingerprint(mixture, pack))
        return manifest is not None and self._leads_to(mixture, manifest)

    def fingerprint(self, mixture: Mixture, pack: Pack) -> str:
        """What it depends on: shards, benchmark versions, scan and decision settings, the rest."""
        mixture = self.effective(mixture)
        shards = _shards_of(mixture, pack)
        value = [
            _FORMAT,
            [(shard.name, shard.fingerprint) for shard in shards],
            mixture.to_json(),
            self.settings(self.sight.needed_by(mixture), shards),
            self._draw_fingerprint(mixture, pack) if shards and mixture.take == "control" else None,
        ]
        return sha256(json.dumps(value).encode()).hexdigest()[:16]

    @property
    def shards(self) -> Iterator[tuple[Pack, Shard]]:
        """All that there are."""
        return ((pack, shard) for pack in self.packs for shard in pack.shards)

    def settings(self, versions: Sequence[Version], shards: Iterable[Shard]) -> list[object]:
        """All that decides what leaked of these benchmarks into these shards.

        Of verdicts only those on what stands there: others must not have anything built again.
        """
        policy, scan = self.policy, self.sight.scan
        common = policy.leave_out_common and bool(versions)
        return [
            sorted((version.benchmark, version.fingerprint) for version in versions),
            scan,
            sorted(policy.thresholds.items()) if versions else None,
            policy.unreadable,
            current_common(self.store, scan, policy)[0] if common else None,
            self.verdicts.digest_of(self._pairs(shards, versions)),
        ]

    def _pairs(self, shards: Iterable[Shard], versions: Sequence[Version]) -> Iterator[str]:
        """What was found of benchmarks in shards; looked up where anybody said anything."""
        for shard in shards if self.verdicts.weighty else ():
            for version in versions:
                key = shard.fingerprint, version.fingerprint
                if key not in self._known_pairs:
                    found = pairs_of(self.store, shard, version, self.sight.scan)
                    if found is None:
                        continue
                    self._known_pairs[key] = found & self.verdicts.weighty.keys()
                yield from self._known_pairs[key]

    @cached_property
    def _known_pairs(self) -> dict[tuple[str, str], set[str]]:
        """Of every tile that was looked at: those of which a person decided."""
        return {}

    def effective(self, mixture: Mixture) -> Mixture:
        """A control with the sources, licenses and leaks of what it is a control of."""
        if mixture.take != "control":
            return mixture
        treatment = treatment_of(mixture, self.mixtures)
        return replace(
            mixture,
            sources=treatment.sources,
            licenses=treatment.licenses,
            leaks=treatment.leaks,
        )

    def _require(self, mixture: Mixture, pack: Pack) -> None:
        """Raise unless all that the mixture of this pack needs was scanned and read."""
        needed = self.sight.needed_by(mixture)
        if mixture.needs_leaks and not needed:
            where = f"mixture {mixture.name!r} of pack {pack.name!r}"
            raise MissingError(Problem(where, "no benchmark", "at least one"))
        if mixture.has_source(pack.source.name):
            require_scanned(self.sight, pack, needed)
            require_readable(self.sight, pack)

    def _draw_fingerprint(self, mixture: Mixture, pack: Pack) -> str:
        """The same for all packs of a source, and many of them ask."""
        key = mixture, pack.source.name
        if key not in self._known_draws:
            treatment = treatment_of(mixture, self.mixtures)
            packs = self._packs_beside(pack)
            shards = [shard for one in packs for shard in one.shards]
            settings = self.settings(self.sight.needed_by(treatment), shards)
            self._known_draws[key] = draw_fingerprint(packs, mixture, treatment, settings)
        return self._known_draws[key]

    @cached_property
    def _known_draws(self) -> dict[tuple[Mixture, str], str]:
        return {}

    def _packs_beside(self, pack: Pack) -> list[Pack]:
        """All packs of the source of one."""
        return [one for one in self.packs if one.source.name == pack.source.name]

    def draw_for(self, mixture: Mixture, pack: Pack) -> Draw | None:
        """What a control leaves out of a pack: drawn once from all of its source, then read."""
        if mixture.take != "control":
            return None
        treatment = treatment_of(mixture, self.mixtures)
        if not treatment.has_source(pack.source.name):
            return None
        fingerprint = self._draw_fingerprint(mixture, pack)
        found = read_draw(self.store, fingerprint, [shard.name for shard in pack.shards])
        if found is not None:
            return found
        packs = self._packs_beside(pack)
        for one in packs:
            require_scanned(self.sight, one, self.sight.needed_by(treatment))
        return draw(self.sight, packs, mixture, treatment, fingerprint)

    def with_packs(self, *packs: Pack) -> Builder:
        return replace(self, packs=packs, n_known=self._n_packs)

    @property
    def _n_packs(self) -> int:
        return len(self.packs) if self.n_known is None else self.n_known

    # The page of a mixture ----------------------------------------------------------------------

    def _told(self, mixture: Mixture) -> dict[str, Any]:
        """What the manifests of all packs of a mixture say alike."""
        return {
            "mixture": mixture.name,
            "declared": mixture.to_json(),
            "scan": self.sight.scan,
            "idf_snapshot": current_snapshot_fingerprint(self.store),
            "policy": asdict(self.policy),
            "unreadable": self.policy.unreadable,
            "benchmarks": {
                version.benchmark: version.fingerprint for version in self.sight.needed_by(mixture)
            },
        }

    def card(self, mixture: Mixture) -> str:
        """The page as the packs that are there today give it."""
        told = json.loads(json.dumps(self._told(self.effective(mixture))))
        shares = [
            share
            for folder in sorted(self.store.mixtures(mixture.name).glob(f"*/{MANIFEST}"))
            if (share := _share(folder.parent))
            and all(share.manifest.get(name) == value for name, value in told.items())
        ]
        thresholds = {"thresholds": self.policy.thresholds}
        return card_of(told | thresholds, shares, n_packs=self._n_packs)

    def _keep_card(self, mixture: Mixture) -> None:
        """Write the page, if it is to be, until it says what is there.

        Others build packs meanwhile. Whoever writes last has looked after that, so it is right.
        """
        path = self.store.mixtures(mixture.name) / CARD
        if mixture.write != "parquet":
            if listed(path):  # of a time when it was one in parquet
                path.unlink(missing_ok=True)
            return
        self.store.drafts.mkdir(parents=True, exist_ok=True)
        card = self.card(mixture)
        while not path.is_file() or path.read_text(encoding="utf-8") != card:
            with aside(path, drafts=self.store.drafts) as draft:
                draft.write_text(card, encoding="utf-8")
            card = self.card(mixture)

    def _leads_to(self, mixture: Mixture, manifest: Mapping[str, Any]) -> bool:
        """Whether loaders get to a pack's files, and to none that is not there."""
        if mixture.write != "parquet":
            return True
        folder = self.store.mixtures(mixture.name)
        named = listed(folder / CARD)
        is_named = manifest["pack"] in named or not manifest["shards"]
        there = {path.name for path in folder.iterdir()}
        return is_named and named | {CARD} <= there


@dataclass(frozen=True)
class _Share:
    """A mixture of a pack, to be built in any process that sees the store and the corpus."""

    builder: Builder
    mixture: Mixture
    pack: Pack


def build_shares(
    builder: Builder,
    wanted: Sequence[tuple[Mixture, Pack]],
    *,
    workers: int = 1,
    on_advance: Advance = lambda _: None,
) -> Iterator[tuple[Mixture, Pack, Future[Summary]]]:
    """Build mixtures of packs, as they end; one that is refused does not stop the others.

    `on_advance` hears how many bytes of shards were gone through.
    """
    for mixture, pack in {(one, pack.source.name): (one, pack) for one, pack in wanted}.values():
        with suppress(DeconError):  # said once more, and handed on, where a pack asks for it
            builder.draw_for(mixture, pack)
    jobs = [
        # Only a control has to know of other packs than its own.
        _Share(builder if mixture.take == "control" else builder.with_packs(pack), mixture, pack)
        for mixture, pack in wanted
    ]
    n_workers = useful_workers(workers, [shard for _, pack in wanted for shard in pack.shards])
    for job, future in run_jobs(_build, jobs, workers=n_workers, on_advance=on_advance):
        yield job.mixture, job.pack, future


def _build(share: _Share) -> Summary:
    return share.builder.build(share.mixture, share.pack)


def _shards_of(mixture: Mixture, pack: Pack) -> Sequence[Shard]:
    """None, of a source that a mixture does not take: its share of such a pack is an empty one."""
    return pack.shards if mixture.has_source(pack.source.name) else ()


def file_of(mixture: Mixture, shard: Shard) -> str:
    """The name of what a mixture has of a shard."""
    match mixture.write:
        case "shards":
            return shard.name
        case "attributes":
            return attribute_file(shard)
        case "dolma":
            return stem_of(shard) + LAYOUTS["dolma"].suffix
        case "parquet":
            suffix = LAYOUTS["parquet"].suffix
            return f"{DATA}/{stem_of(shard).removesuffix(suffix)}{suffix}"


def _require_name(mixture: Mixture, shard: Shard) -> None:
    """Raise where a shard is named like what is ours, or like what loaders pass over."""
    expected = ""
    if shard.name in (MANIFEST, REMOVED_FILE):
        expected = "any other name"
    elif mixture.write == "parquet" and any(
        part.startswith((".", "__")) for part in shard.name.split("/")
    ):
        expected = "a name that begins in another way: loaders of parquet would pass over it"
    if expected:
        raise CorpusError(Problem(shard.path, f"a shard named {shard.name}", expected))


@dataclass(frozen=True, eq=False)
class _Fate:
    """What becomes of the rows of a shard. Some of it is told only as they are written."""

    sizes: Sizes
    choice: Choice
    cut: dict[int, Cut] = field(default_factory=dict)

    @property
    def rows(self) -> range:
        """All of them."""
        return range(max([*self.choice.gone, *self.sizes.rows[-1:].tolist()], default=-1) + 1)


class _Work:
    """Writes the shards of one mixture and pack, and keeps account."""

    def __init__(self, sight: Sight, mixture: Mixture, pack: Pack, folder: Path) -> None:
        self._sight, self._mixture, self._pack, self._folder = sight, mixture, pack, folder
        self._removed: list[pa.Table] = [REMOVED.empty_table()]

    @cached_property
    def _rescan(self) -> Rescan:
        sight = self._sight
        return Rescan(
            sight.store,
            sight.needed_by(self._mixture),
            sight.policy,
            sight.scan,
            source=self._pack.source.name,
            verdicts=sight.verdicts,
        )

    def write(self, shard: Shard, drawn: Sequence[int]) -> dict[str, Any]:
        """Write a shard as the mixture has it; its account."""
        _require_name(self._mixture, shard)
        sizes = Sizes.of(self._sight.store, shard, self._sight.scan)
        choice = choose(self._sight, shard, self._pack.source, self._mixture, sizes, drawn=drawn)
        fate = _Fate(sizes, choice)
        target = self._folder / file_of(self._mixture, shard)
        if target.exists():  # these have one ending, whatever their shards have
            what = "attributes" if self._mixture.write == "attributes" else "documents"
            found = f"another shard whose {what} would have the same name"
            raise CorpusError(Problem(shard.path, found, "names that differ before the ending"))
        ids = self._write(shard, target, fate)
        advance(shard.n_bytes)
        self._removed.append(_removed_rows(shard, fate, ids, self._mixture))
        return {
            "shard": shard.name,
            "file": file_of(self._mixture, shard),
            "content": shard.content,
            "fingerprint": shard.fingerprint,
            **_account(fate),
            "n_bytes": target.stat().st_size,
            "output": hash_file(target),
        }

    def _write(self, shard: Shard, target: Path, fate: _Fate) -> Ids:
        """The file of a shard; the ids of the rows that are not as they were."""
        source, write = self._pack.source, self._mixture.write

        def decide(block: LineBlock) -> Changes:
            return self._settle(fate, block.rows, RowsOfBlock(block, shard, source))

        if write == "shards" and has_lines(shard):
            return rewrite_lines(shard, source, target, decide)
        changes = self._settle(fate, fate.rows, RowsOfShard(shard, source))
        rows = fate.sizes.rows.tolist()
        if write == "attributes":
            name = self._mixture.name
            return write_attributes(shard, source, target, fate.choice, rows, name=name)
        if write == "shards":
            return rewrite(shard, source, target, changes)
        return write_layout(write, shard, source, target, changes, rows)

    def _settle(self, fate: _Fate, rows: range, at_hand: Rows) -> Changes:
        """What only the rows themselves can tell, of a stretch of them: then all is told."""
        mixture, choice = self._mixture, fate.choice
        refuse(choice, fate.sizes.within(rows), at_hand, mixture)
        to_cut = [row for row in rows if row in choice.cut] if choice.cut else []
        cut = {}
        if to_cut:
            cut = cut_out(choice, to_cut, at_hand, self._pack.source, mixture, self._rescan)
            fate.cut.update(cut)
        gone = frozenset(filter(choice.gone.__contains__, rows))
        return Changes(gone, {row: one.value for row, one in cut.items()})

    def write_removed(self) -> Path:
        path = self._folder / REMOVED_FILE
        write_parquet(path, pa.concat_tables(self._removed).combine_chunks())
        return path


def _account(fate: _Fate) -> dict[str, Any]:
    """Documents, bytes and tokens before and after, and what went for which reason first."""
    sizes, choice, cut = fate.sizes, fate.choice, fate.cut
    is_left = ~np.isin(sizes.rows, np.array([*choice.gone], np.int64))
    n_bytes, n_tokens = sizes.n_bytes.copy(), sizes.n_tokens.copy()
    for row, one in cut.items():
        at = sizes.at([row])
        n_bytes[at], n_tokens[at] = one.n_bytes, one.n_tokens
    counts = {
        "in": (sizes.rows.size, sizes.n_bytes.sum(), sizes.n_tokens.sum()),
        "out": (is_left.sum(), n_bytes[is_left].sum(), n_tokens[is_left].sum()),
    }
    why = Counter(reasons[0]["why"] for reasons in choice.gone.values())
    return {
        **{
            f"n_{unit}_{way}": int(n)
            for way, ns in counts.items()
            for unit, n in zip(_UNITS, ns, strict=True)
        },
        "n_cut": len(cut),
        "n_unreadable_left_out": why.pop("unreadable", 0),
        "removed": dict(sorted(why.items())),
    }


def _removed_rows(shard: Shard, fate: _Fate, ids: Ids, mixture: Mixture) -> pa.Table:
    """What is not there, and why. A column at a time: it may be nearly all of the shard."""
    sizes, cut = fate.sizes, fate.cut
    told = {**fate.choice.gone, **{row: one.reasons for row, one in cut.items()}}
    once = sorted(told)
    n_reasons = np.array([len(told[row]) for row in once], np.int64)
    n_left = np.array([cut[row].n_tokens if row in cut else 0 for row in once], np.int64)
    rows = np.repeat(np.array(once, np.int64), n_reasons)
    is_read = np.isin(rows, sizes.rows)
    n_tokens = np.zeros(rows.size, np.int64)
    n_tokens[is_read] = sizes.n_tokens[np.searchsorted(sizes.rows, rows[is_read])]
    numbers = rows.tolist()
    reasons = [reason for row in once for reason in told[row]]
    columns = {
        "shard": pa.repeat(shard.name, rows.size),
        "row": rows,
        "doc_id": [ids[row] for row in numbers],
        "n_tokens": pa.array(n_tokens - np.repeat(n_left, n_reasons), mask=~is_read),
        "what": [mixture.cut if row in cut else "document" for row in numbers],
    }
    said = set().union(*reasons)
    for name in REMOVED.names[len(columns) :]:
        found = [reason.get(name) for reason in reasons] if name in said else pa.nulls(rows.size)
        columns[name] = pa.array(found, REMOVED.field(name).type)
    return pa.table(columns, schema=REMOVED)


def _totals(accounts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for account in accounts:
        totals.update({name: n for name, n in account.items() if name.startswith("n_")})
        removed.update(account["removed"])
    return {**dict(sorted(totals.items())), "removed": dict(sorted(removed.items()))}


# What has to be there first -----------------------------------------------------------------------


def require_scanned(sight: Sight, pack: Pack, versions: Sequence[Version]) -> None:
    """Raise unless every shard has a tile for every benchmark: absent means not scanned."""
    problems = [
        Problem(
            f"shard {shard.name!r} of pack {pack.name!r}",
            f"not scanned against {', '.join(lacking)}" if versions else "not scanned",
            "a tile for every benchmark",
            "materialize `scan` for these cells first; until then nothing here counts as clean",
        )
        for shard in pack.shards
        if (lacking := _lacking(sight, shard, versions)) is not None
    ]
    if problems:
        raise MissingError(problems)


def _lacking(sight: Sight, shard: Shard, versions: Sequence[Version]) -> list[str] | None:
    """Benchmarks that a shard was not scanned against; None when it has all, and a ledger."""
    store, scan = sight.store, sight.scan
    if not store.ledger(scan, shard.fingerprint).is_file():
        return [version.benchmark for version in versions]
    return [
        version.benchmark
        for version in versions
        if not store.tile(scan, shard.fingerprint, version.fingerprint).is_file()
    ] or None


def require_readable(sight: Sight, pack: Pack) -> None:
    """Raise when rows of a shard could not be read: nobody knows what they hold.

    Even where such rows may be left out, a shard of nothing else is more likely a field of another
    name than a shard to be emptied.
    """
    problems = []
    for shard in pack.shards:
        ledger = read_json(sight.store.ledger(sight.scan, shard.fingerprint))
        if ledger["unreadable"] and not ledger["n_documents"]:
            first = ledger["unreadable"][0]
            problems.append(
                Problem(
                    shard.path,
                    f"no row that could be read; the first: {first['reason']} ({first['detail']})",
                    "documents",
                    f"check the fields of the source {pack.source.name!r} in decon.toml",
                )
            )
        elif sight.policy.unreadable == "block":
            problems += [_unreadable_row(shard, row) for row in ledger["unreadable"]]
    if problems:
        raise IncompleteError(problems)


def _unreadable_row(shard: Shard, row: dict[str, Any]) -> Problem:
    # Lines are counted from one, as editors do; rows of tables from zero, as libraries do.
    place = f"row {row['row']}" if row["offset"] is None else f"line {row['row'] + 1}"
    return Problem(
        f"{shard.path}: {place}",
        f"{row['reason']} ({row['detail']})",
        "a document",
        'mend it, or set policy.unreadable = "drop" to leave such rows out',
    )


# What stands --------------------------------------------------------------------------------------


def _standing(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """The manifest of a mixture that is there already, whole and from the same inputs."""
    path = folder / MANIFEST
    if not path.is_file() or not (folder / REMOVED_FILE).is_file():
        return None
    try:
        manifest: dict[str, Any] = read_json(path)
        is_standing = manifest["fingerprint"] == fingerprint and all(
            (folder / shard["file"]).is_file()
            and (folder / shard["file"]).stat().st_size == shard["n_bytes"]
            for shard in manifest["shards"]
        )
    except (DeconError, KeyError, TypeError):
        return None  # damaged, or of an older form: it is built again
    return manifest if is_standing else None


def _share(folder: Path) -> Share | None:
    """What a pack has to say on its mixture's page; nothing, while another process replaces it."""
    try:
        status = (folder / MANIFEST).stat()
        return _share_of(folder, (status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, DeconError, KeyError, TypeError, pa.ArrowException):
        return None  # or damaged: its own build, or `mixture verify`, says so


@lru_cache(maxsize=1 << 14)
def _share_of(folder: Path, _as_it_lies: tuple[int, ...]) -> Share:
    """Read once: a page is written for every pack, from all of them."""
    manifest = read_json(folder / MANIFEST)
    has_files = bool(manifest.pop("shards"))
    return Share(manifest, has_files, leaked_of(folder / REMOVED_FILE))


def _summary(manifest: Mapping[str, Any], folder: Path, *, was_there: bool) -> Summary:
    totals = manifest["totals"]
    return Summary(
        mixture=manifest["mixture"],
        pack=manifest["pack"],
        **{
            name: totals.get(name, 0)
            for name in (
                "n_documents_in",
                "n_documents_out",
                "n_tokens_in",
                "n_tokens_out",
                "n_cut",
            )
        },
        n_unreadable=totals.get("n_unreadable_left_out", 0),
        folder=folder,
        was_there=was_there,
    )


def damage(folder: Path) -> list[Problem]:
    """What does not add up in a pack's mixture: documents in and out, and the bytes on disk."""
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a mixture")]
    manifest = read_json(folder / MANIFEST)
    problems = []
    for shard in manifest["shards"]:
        n_accounted = shard["n_documents_out"] + sum(shard["removed"].values())
        if n_accounted != shard["n_documents_in"]:
            file = str(folder / shard["file"])
            problems.append(Problem(file, f"{n_accounted} documents", f"{shard['n_documents_in']}"))
    if not problems:
        problems += _unlisted(folder, manifest)
    written = [(shard["file"], shard["output"]) for shard in manifest["shards"]]
    for name, content in [*written, (REMOVED_FILE, manifest["removed"])]:
        file = folder / name
        if not file.is_file() or hash_file(file) != content:
            problems.append(
                Problem(
                    str(file),
                    "other bytes",
                    "those that were written",
                    "remove the folder; `decon-assets run` builds it anew",
                )
            )
    return problems + strays(folder, {name for name, _ in written} | {REMOVED_FILE, MANIFEST})


def strays(folder: Path, known: Collection[str]) -> list[Problem]:
    """Files that a folder should not have: whoever reads all of it would read them, too."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return [
        Problem(str(folder / name), "a file that no manifest names", "nothing", "remove it")
        for name in sorted(files.difference(known))
    ]


def _unlisted(folder: Path, manifest: Mapping[str, Any]) -> list[Problem]:
    """Whether as many documents are on the list of what is not there as the account says."""
    path = folder / REMOVED_FILE
    if not path.is_file():
        return []  # said with the other files
    rows = pq.read_table(path, schema=REMOVED, columns=["shard", "row", "what"])
    whole = rows.filter(pc.field("what") == "document")
    n_listed = whole.group_by(["shard", "row"]).aggregate([]).num_rows
    totals = manifest["totals"]
    n_gone = sum(totals["removed"].values()) + totals.get("n_unreadable_left_out", 0)
    if n_listed == n_gone:
        return []
    return [Problem(str(path), f"{n_listed} documents", f"{n_gone}, as the manifest says")]
