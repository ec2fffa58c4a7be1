"""What mixtures are made of today: their inputs, and whether a share is current."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from decon_core.benchmarks.records import NotCovered, Version
from decon_core.config.mixtures import Mixture, treatment_of
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.candidates import NO_EVIDENCE, Evidence
from decon_core.decisions.common_ngrams import current_common
from decon_core.decisions.judged import Calibrated, calibrated
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.nominations import NominatedPlaces
from decon_core.decisions.not_read import (
    NOTHING_IGNORED,
    Account,
    UnreadRule,
    account_of,
    gaps_without_rows,
    has_open_text,
    ledgers_of,
)
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.errors import ConfigError
from decon_core.index.term_weights import current_snapshot_fingerprint
from decon_core.mixtures.card import CARD, Share, card_of, digest_of_labels, listing_of
from decon_core.mixtures.composition import Labels, labels_of
from decon_core.mixtures.control import draw_fingerprint
from decon_core.mixtures.manifest import current_manifest, fingerprint_of, read_share
from decon_core.scan.coverage import Gap, gaps_of, scan_fingerprint
from decon_core.storage.files import names_in
from decon_core.storage.listing import Skipped
from decon_core.storage.store import Store

if TYPE_CHECKING:  # only mixtures of loss masks have a tokenizer
    from decon_core.text.trainer_tokens import TrainerTokenizer

# Increase this when the same inputs give different files, so that mixtures are rebuilt.
_FORMAT = 7


@dataclass(frozen=True)
class Builder:
    """Builds the mixtures of a configuration from the current content of the store."""

    store: Store
    packs: tuple[Pack, ...]  # all packs: a control is drawn over all packs of its source
    versions: tuple[Version, ...]
    policy: Policy
    mixtures: tuple[Mixture, ...]
    n_known: int | None = None  # packs of the corpus, if `packs` holds only some of them
    known_labels: Labels | None = None  # labels of all sources, if `n_known` is given
    verdicts: Verdicts = NO_VERDICTS
    evidence: Evidence = NO_EVIDENCE
    nominations: tuple[NominatedPlaces, ...] = ()  # what is found beside the scan
    unread: UnreadRule = NOTHING_IGNORED
    not_covered: tuple[NotCovered, ...] = ()  # benchmarks that were asked for and cannot be had
    skipped: tuple[Skipped, ...] = ()  # files that are no shards, and not skipped on purpose
    not_sampled: tuple[Gap, ...] = ()  # shards that are not in a sample, or only in part
    calibrated: Calibrated | None = None  # made before, from all packs
    # Caches: decided texts by shard and benchmark version, draws, sources and shards with open
    # text, and scanned sources.
    _found: dict[tuple[str, str], set[str]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _draws: dict[tuple[Mixture, str], str] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _has_open_text: dict[tuple[str, str], bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    scanned: set[tuple[Mixture, str]] = field(
        default_factory=set, init=False, compare=False, repr=False
    )

    @cached_property
    def labels(self) -> Labels:
        """The labels of the sources, by which compositions are grouped."""
        if self.known_labels is not None:
            return self.known_labels
        return labels_of(pack.source for pack in self.packs)

    @cached_property
    def reader(self) -> MatchReader:
        scan = scan_fingerprint(self.store, self.policy)
        return MatchReader(
            self.store,
            self.versions,
            self.policy,
            scan,
            self.verdicts,
            nominations=self.nominations,
        )

    @cached_property
    def _calibrated(self) -> Calibrated:
        """The calibration by the pairs that are judged today, from all scanned shards."""
        return self.calibrated or calibrated(self.reader, self.packs, self.evidence.annotations)

    def reader_for(self, mixture: Mixture) -> MatchReader:
        """Return the reader with the calibration, if the mixture selects by probability."""
        if self.effective(mixture).leaks.min_probability is None:
            return self.reader
        return replace(self.reader, calibration=self._calibrated.load())

    def is_current(self, mixture: Mixture, pack: Pack) -> bool:
        """Return whether the mixture of a pack exists and was made from the current inputs."""
        return pack.name in self.current_packs(mixture, [pack])

    def current_packs(self, mixture: Mixture, packs: Iterable[Pack] | None = None) -> set[str]:
        """Return those of these packs, or of all, whose share of a mixture is current.

        None of them if the card lists a pack that does not exist, or has other labels than today's.
        """
        listed = listing_of(self.store.mixtures(mixture.name) / CARD)
        existing = names_in(self.store.mixture_manifests(mixture.name))
        if listed.labels != digest_of_labels(self.labels) or not listed.packs <= existing:
            return set()
        packs = self.packs if packs is None else packs
        return self._with_share(mixture, (pack for pack in packs if pack.name in listed.packs))

    def built_packs(self, mixture: Mixture, packs: Iterable[Pack]) -> set[str]:
        """Return those of these packs that have a current share, also if the card lacks it."""
        existing = names_in(self.store.mixture_manifests(mixture.name))
        return self._with_share(mixture, (pack for pack in packs if pack.name in existing))

    def _with_share(self, mixture: Mixture, packs: Iterable[Pack]) -> set[str]:
        return {
            pack.name
            for pack in packs
            if current_manifest(
                self.store.mixture_manifest(mixture.name, pack.name),
                self.fingerprint(mixture, pack),
                self.store.mixture(mixture.name, pack.name),
            )
        }

    def fingerprint(self, mixture: Mixture, pack: Pack) -> str:
        """Return a hash of all inputs: shards, mixture, benchmark versions, scan and policy."""
        mixture = self.effective(mixture)
        shards = shards_of(mixture, pack)
        is_drawn = shards and mixture.take == "control"
        names = [(shard.name, shard.fingerprint) for shard in shards]
        settings = self._leak_settings(mixture, shards)
        drawn = self.draw_fingerprint(mixture, pack) if is_drawn else None
        try:
            tokenizer = [*self._tokenizer(mixture).values()]
        except ConfigError:
            tokenizer = ["cannot be read"]  # building the mixture says why
        return fingerprint_of([_FORMAT, names, _declared(mixture), settings, drawn, *tokenizer])

    @property
    def shards(self) -> Iterator[tuple[Pack, Shard]]:
        """All shards of all packs."""
        return ((pack, shard) for pack in self.packs for shard in pack.shards)

    @property
    def gaps(self) -> list[Gap]:
        """The shards that are not scanned against every version, or have no readable row."""
        unscanned = gaps_of(self.reader.scan_results, self.packs, self.versions)
        return [*unscanned, *gaps_without_rows(self.reader, self.packs), *self.not_sampled]

    @property
    def not_read(self) -> Account:
        """What was not read, before any setting of the policy accepts it."""
        gaps = (gap for gap in self.gaps if not gap.is_read)
        return account_of(ledgers_of(self.reader, self.packs), self.unread, self.skipped, gaps)

    @cached_property
    def shards_as_json(self) -> str:
        """All shards with their sources, sorted: written once for fingerprints of many products."""
        return json.dumps(
            sorted((pack.source.name, shard.name, shard.fingerprint) for pack, shard in self.shards)
        )

    def settings(self, versions: Sequence[Version], shards: Iterable[Shard]) -> list[object]:
        """Return all settings that decide what leaked of these benchmarks into these shards.

        Only what decides about texts found in these shards counts, and nominations that wait for
        review; others must not cause a rebuild.
        """
        policy, scan, shards = self.policy, self.reader.scan, [*shards]
        common = policy.leave_out_common and bool(versions)
        return [
            sorted((version.benchmark, version.fingerprint) for version in versions),
            scan,
            policy.decision_settings(version.benchmark for version in versions)
            if versions
            else None,
            policy.unreadable,
            policy.invalid_utf8,
            self.unread.is_blocking,
            current_common(self.store, scan, policy)[0] if common else None,
            self.verdicts.digest_of(self.decided_texts(shards, versions)),
            *(
                [nomination.key, nomination.review_from]
                for nomination in self.nominations
                if nomination.review_from
            ),
            # Of all that can be ignored, only what is there counts.
            *(["open text"] if versions and self._is_held_back(shards) else []),
        ]

    def _is_held_back(self, shards: Iterable[Shard]) -> bool:
        """Return whether any of these shards has text that was not read and must be."""
        return self.unread.is_blocking and any(map(self._is_open, shards))

    def _is_open(self, shard: Shard) -> bool:
        key, reader = (shard.source, shard.fingerprint), self.reader
        if key not in self._has_open_text and reader.scan_results.is_read(shard.fingerprint):
            self._has_open_text[key] = has_open_text(shard, reader.ledger(shard), self.unread)
        return self._has_open_text.get(key, False)

    def _leak_settings(self, mixture: Mixture, shards: Iterable[Shard]) -> list[object]:
        """Return all settings that decide what a mixture counts as leaks in these shards."""
        settings = self.settings(self.reader.needed_by(mixture), shards)
        if mixture.leaks.min_probability is None:
            return settings
        return [*settings, self._calibrated.fingerprint]

    def decided_texts(self, shards: Iterable[Shard], versions: Sequence[Version]) -> Iterator[str]:
        """Yield the matched texts that were found in shards and have a verdict.

        Reads scan results only if needed.
        """
        if not self.verdicts.may_decide():
            return
        names = [shard.fingerprint for shard in shards]
        for version in versions:
            left = [name for name in names if (name, version.fingerprint) not in self._found]
            for name, text_ids in self.reader.decided_texts(left, version).items():
                self._found[name, version.fingerprint] = text_ids
            for name in names:
                yield from self._found.get((name, version.fingerprint), ())

    def effective(self, mixture: Mixture) -> Mixture:
        """Return a control with the sources, licenses and leaks of its treatment."""
        if mixture.take != "control":
            return mixture
        treatment = treatment_of(mixture, self.mixtures)
        return replace(
            mixture, sources=treatment.sources, licenses=treatment.licenses, leaks=treatment.leaks
        )

    def draw_fingerprint(self, mixture: Mixture, pack: Pack) -> str:
        """Return the fingerprint of a control's draw; cached, as all packs of a source share it."""
        key = mixture, pack.source.name
        if key not in self._draws:
            treatment = treatment_of(mixture, self.mixtures)
            packs = self.packs_of_source(pack)
            shards = [shard for other in packs for shard in other.shards]
            settings = self._leak_settings(treatment, shards)
            self._draws[key] = draw_fingerprint(packs, mixture, treatment, settings)
        return self._draws[key]

    def packs_of_source(self, pack: Pack) -> list[Pack]:
        return [other for other in self.packs if other.source.name == pack.source.name]

    def with_calibration(self) -> Builder:
        """Return a builder that has the calibration, if a mixture selects by probability."""
        if all(mixture.leaks.min_probability is None for mixture in self.mixtures):
            return replace(self, evidence=NO_EVIDENCE)
        return replace(self, evidence=NO_EVIDENCE, calibrated=self._calibrated.stored())

    @property
    def n_packs(self) -> int:
        """The number of packs of the corpus."""
        return len(self.packs) if self.n_known is None else self.n_known

    @staticmethod
    def _tokenizer(mixture: Mixture) -> dict[str, str]:
        """Return the fingerprint of the trainer's tokenizer, if the mixture has a tokenizer."""
        is_used = mixture.write == "mask"
        return {"tokenizer": tokenizer_of(mixture).fingerprint} if is_used else {}

    def manifest_settings(self, mixture: Mixture) -> dict[str, Any]:
        """Return the manifest fields that are the same for all packs of a mixture."""
        needed = self.reader.needed_by(mixture)
        is_probable = mixture.leaks.min_probability is not None
        return {
            **({"calibration": self._calibrated.fingerprint} if is_probable else {}),
            **self._tokenizer(mixture),
            "mixture": mixture.name,
            "declared": mixture.to_json(),
            "scan": self.reader.scan,
            "term_weights": current_snapshot_fingerprint(self.store),
            "policy": asdict(self.policy),
            "unreadable": self.policy.unreadable,
            "invalid_utf8": self.policy.invalid_utf8,
            "benchmarks": {version.benchmark: version.fingerprint for version in needed},
        }

    def card(self, mixture: Mixture, *, without: Collection[str] = ()) -> str:
        """Render the dataset card from the shares that exist, without those of some packs."""
        shares = [share for share in self._shares(mixture) if share.manifest["pack"] not in without]
        settings = self._card_settings(mixture) | {"thresholds": self.policy.thresholds}
        names = {share.manifest["pack"] for share in shares}
        packs = [pack for pack in self.packs if pack.name in names and shards_of(mixture, pack)]
        account = account_of(ledgers_of(self.reader, packs), self.unread).accepted_text()
        not_searched = [line.text for line in account.lines()]
        return card_of(settings, shares, not_searched, n_packs=self.n_packs, labels=self.labels)

    def outdated_packs(self, mixture: Mixture, packs: Iterable[Pack]) -> set[str]:
        """Return those of these packs whose share `card` takes, though it is of other inputs."""
        found = {
            share.manifest["pack"]: share.manifest["fingerprint"] for share in self._shares(mixture)
        }
        return {
            pack.name
            for pack in packs
            if pack.name in found and found[pack.name] != self.fingerprint(mixture, pack)
        }

    def _shares(self, mixture: Mixture) -> list[Share]:
        """Return the shares that were built with the current settings, and all that are current.

        A setting that decides nothing for a share may have changed after it was built. A builder of
        one pack cannot tell this for others: a card without them is completed after the last job.
        """
        settings = self._card_settings(mixture)
        packs = {pack.name: pack for pack in self.packs}

        def is_listed(manifest: Mapping[str, Any]) -> bool:
            if all(manifest.get(name) == value for name, value in settings.items()):
                return True
            pack = packs.get(manifest["pack"])
            return pack is not None and manifest["fingerprint"] == self.fingerprint(mixture, pack)

        paths = sorted(self.store.mixture_manifests(mixture.name).glob("*/manifest.json"))
        return [
            share for path in paths if (share := read_share(path)) and is_listed(share.manifest)
        ]

    def _card_settings(self, mixture: Mixture) -> dict[str, Any]:
        """Return the settings as a manifest has them."""
        settings = json.dumps(self.manifest_settings(self.effective(mixture)))
        return dict(json.loads(settings))


@lru_cache
def _declared(mixture: Mixture) -> dict[str, Any]:
    """Return the settings of a mixture, which are part of the fingerprint of each of its packs."""
    return mixture.to_json()


def shards_of(mixture: Mixture, pack: Pack) -> Sequence[Shard]:
    """Return the shards of a pack; none if the mixture does not take the source of the pack."""
    return pack.shards if mixture.has_source(pack.source.name) else ()


def tokenizer_of(mixture: Mixture) -> TrainerTokenizer:
    """Load the tokenizer of a mixture of loss masks."""
    from decon_core.text.trainer_tokens import load_trainer_tokenizer

    return load_trainer_tokenizer(
        str(mixture.tokenizer),
        add_special_tokens=mixture.add_special_tokens,
        where=f"mixture {mixture.name!r}: tokenizer",
    )
