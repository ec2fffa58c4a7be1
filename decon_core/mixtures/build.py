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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from decon_core.benchmarks.records import Version
from decon_core.config.mixtures import Mixture, treatment_of
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard, hash_file
from decon_core.decisions.common_ngrams import current_common
from decon_core.decisions.leaks import pairs_of
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.errors import DeconError, MissingError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.mixtures.card import CARD, card_of, listed
from decon_core.mixtures.control import Draw, draw, draw_fingerprint, read_draw
from decon_core.mixtures.manifest import (
    MANIFEST,
    Summary,
    current_manifest,
    manifest_faults,
    share_at,
    summary_of,
)
from decon_core.mixtures.preconditions import require_readable, require_scanned
from decon_core.mixtures.write import Writer, totals_of
from decon_core.scan.tiles import scan_fingerprint
from decon_core.scan.workers import Advance, run_jobs, useful_workers
from decon_core.storage.checksums import sealed_page
from decon_core.storage.store import Store, atomic_path, write_json

# Counted up when a mixture of the same inputs comes out in another way: it is built again.
_FORMAT = 3


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
    def reader(self) -> MatchReader:
        scan = scan_fingerprint(self.store, self.policy)
        return MatchReader(self.store, self.versions, self.policy, scan, self.verdicts)

    def build(self, mixture: Mixture, pack: Pack) -> Summary:
        """Write a pack's share of a mixture, unless it stands already."""
        mixture = self.effective(mixture)
        shards = _shards_of(mixture, pack)
        self._require(mixture, pack)
        fingerprint = self.fingerprint(mixture, pack)
        folder = self.store.mixture(mixture.name, pack.name)
        manifest = current_manifest(folder, fingerprint)
        if manifest is not None and not manifest_faults(folder):
            self._keep_card(mixture)
            return summary_of(manifest, folder, was_there=True)
        drawn = self.draw_for(mixture, pack)
        rows = drawn.rows if drawn else {}
        with atomic_path(folder, drafts=self.store.drafts) as draft:
            draft.mkdir(parents=True)
            writer = Writer(self.reader, mixture, pack, draft)
            accounts = [writer.write(shard, rows.get(shard.name, ())) for shard in shards]
            manifest = {
                **self._told(mixture),
                "pack": pack.name,
                "source": pack.source.name,
                "fingerprint": fingerprint,
                "control": [vars(drawn.matched)] if drawn else None,
                "has_verdicts": any(self._pairs(shards, self.reader.needed_by(mixture))),
                "shards": accounts,
                "totals": totals_of(accounts),
                "removed": hash_file(writer.write_removed()),
            }
            write_json(draft / MANIFEST, manifest)
        self._keep_card(mixture)
        return summary_of(manifest, folder, was_there=False)

    def stands(self, mixture: Mixture, pack: Pack) -> bool:
        """Whether a pack's share of a mixture is there, made from today's inputs."""
        folder = self.store.mixture(mixture.name, pack.name)
        manifest = current_manifest(folder, self.fingerprint(mixture, pack))
        return manifest is not None and self._leads_to(mixture, manifest)

    def fingerprint(self, mixture: Mixture, pack: Pack) -> str:
        """What it depends on: shards, benchmark versions, scan and decision settings, the rest."""
        mixture = self.effective(mixture)
        shards = _shards_of(mixture, pack)
        value = [
            _FORMAT,
            [(shard.name, shard.fingerprint) for shard in shards],
            mixture.to_json(),
            self.settings(self.reader.needed_by(mixture), shards),
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
        policy, scan = self.policy, self.reader.scan
        common = policy.leave_out_common and bool(versions)
        return [
            sorted((version.benchmark, version.fingerprint) for version in versions),
            scan,
            policy.decision_settings(one.benchmark for one in versions) if versions else None,
            policy.unreadable,
            policy.invalid_utf8,
            current_common(self.store, scan, policy)[0] if common else None,
            self.verdicts.digest_of(self._pairs(shards, versions)),
        ]

    def _pairs(self, shards: Iterable[Shard], versions: Sequence[Version]) -> Iterator[str]:
        """What was found of benchmarks in shards; looked up where anybody said anything."""
        for shard in shards if self.verdicts.decisive else ():
            for version in versions:
                key = shard.fingerprint, version.fingerprint
                if key not in self._known_pairs:
                    found = pairs_of(self.store, shard, version, self.reader.scan)
                    if found is None:
                        continue
                    self._known_pairs[key] = found & self.verdicts.decisive.keys()
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
        needed = self.reader.needed_by(mixture)
        if mixture.needs_leaks and not needed:
            where = f"mixture {mixture.name!r} of pack {pack.name!r}"
            raise MissingError(Problem(where, "no benchmark", "at least one"))
        if mixture.has_source(pack.source.name):
            require_scanned(self.reader, pack, needed)
            require_readable(self.reader, pack)

    def _draw_fingerprint(self, mixture: Mixture, pack: Pack) -> str:
        """The same for all packs of a source, and many of them ask."""
        key = mixture, pack.source.name
        if key not in self._known_draws:
            treatment = treatment_of(mixture, self.mixtures)
            packs = self._packs_beside(pack)
            shards = [shard for one in packs for shard in one.shards]
            settings = self.settings(self.reader.needed_by(treatment), shards)
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
        self._require_source(treatment, pack)
        fingerprint = self._draw_fingerprint(mixture, pack)
        found = read_draw(self.store, fingerprint, [shard.name for shard in pack.shards])
        if found is not None:
            return found
        return draw(self.reader, self._packs_beside(pack), mixture, treatment, fingerprint)

    def _require_source(self, treatment: Mixture, pack: Pack) -> None:
        """Raise unless all packs of a source were scanned; looked up once for all of them."""
        key = treatment, pack.source.name
        if key not in self._scanned_sources:
            for one in self._packs_beside(pack):
                require_scanned(self.reader, one, self.reader.needed_by(treatment))
            self._scanned_sources.add(key)

    @cached_property
    def _scanned_sources(self) -> set[tuple[Mixture, str]]:
        return set()

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
            "scan": self.reader.scan,
            "idf_snapshot": current_snapshot_fingerprint(self.store),
            "policy": asdict(self.policy),
            "unreadable": self.policy.unreadable,
            "invalid_utf8": self.policy.invalid_utf8,
            "benchmarks": {
                version.benchmark: version.fingerprint for version in self.reader.needed_by(mixture)
            },
        }

    def card(self, mixture: Mixture) -> str:
        """The page as the packs that are there today give it."""
        told = json.loads(json.dumps(self._told(self.effective(mixture))))
        shares = [
            share
            for folder in sorted(self.store.mixtures(mixture.name).glob(f"*/{MANIFEST}"))
            if (share := share_at(folder.parent))
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
        while not path.is_file() or path.read_bytes() != sealed_page(card):
            with atomic_path(path, drafts=self.store.drafts) as draft:
                draft.write_bytes(sealed_page(card))
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
