"""Build mixtures, one pack at a time.

A mixture of a pack is built only if every shard was scanned against every benchmark that the
mixture needs, and every row was read (unless the policy says to leave unreadable rows out). Each
folder is written atomically, the manifest last:

    <store>/mixtures/<name>/
      <pack>/<shard> ...     the data: under the same names as in the corpus
      README.md              dataset card: what loaders read, of the packs that have a manifest
    <store>/manifests/mixtures/<name>/<pack>/
      removed.parquet        every document that was removed or changed, and why
      manifest.json          inputs, settings, counts, and a hash of every file
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from decon_core.config.mixtures import Mixture, treatment_of
from decon_core.corpus.packs import Pack
from decon_core.decisions.match_reader import require_scanned
from decon_core.errors import DeconError, MissingError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import BYTES_PER_SHARD, run_jobs, useful_workers
from decon_core.execution.local import LOCAL
from decon_core.mixtures.builder import Builder, shards_of
from decon_core.mixtures.card import CARD, listing_of
from decon_core.mixtures.control import Draw, draw, read_draw
from decon_core.mixtures.manifest import (
    REMOVED_FILE,
    TABLES,
    Built,
    current_manifest,
    has_page,
    manifest_faults,
    replaced,
    withdraw,
)
from decon_core.mixtures.preconditions import (
    require_calibrated,
    require_nominated,
    require_read,
    require_readable,
)
from decon_core.mixtures.write import Writer, totals_of
from decon_core.storage.checksums import hash_file, sealed_page
from decon_core.storage.files import atomic_path, write_json

# A card takes the manifests of all packs, so it is not written after each of them.
_SECONDS_BETWEEN_CARDS = 60.0
_SHARE_OF_TIME = 0.05  # share of the time that cards take at the most


_Job = tuple[Builder, Mixture, Pack]  # a mixture of a pack to build in a worker process


def _build_share(job: _Job) -> Built:
    """Write a mixture of a pack, unless an intact one from the same inputs exists; not its card."""
    builder, mixture, pack = job
    mixture = builder.effective(mixture)
    shards = shards_of(mixture, pack)
    require_inputs(builder, mixture, pack)
    fingerprint = builder.fingerprint(mixture, pack)
    folder = builder.store.mixture(mixture.name, pack.name)
    path = builder.store.mixture_manifest(mixture.name, pack.name)
    manifest = current_manifest(path, fingerprint, folder)
    if manifest is not None and not manifest_faults(path, folder):
        return Built(folder, manifest, was_there=True)
    drawn = draw_for(builder, mixture, pack)
    rows = drawn.rows if drawn else {}
    with replaced(folder, path, builder.store.drafts) as (data, records):
        writer = Writer(builder.reader_for(mixture), mixture, pack, data)
        accounts = [writer.write(shard, rows.get(shard.name, ())) for shard in shards]
        manifest = {
            **builder.manifest_settings(mixture),
            "pack": pack.name,
            "source": pack.source.name,
            "fingerprint": fingerprint,
            "control": [vars(drawn.matched)] if drawn else None,
            "has_verdicts": any(builder.decided_texts(shards, builder.reader.needed_by(mixture))),
            "shards": accounts,
            "totals": totals_of(accounts),
            TABLES: {REMOVED_FILE: hash_file(writer.write_removed(records))},
        }
        write_json(records / path.name, manifest)
        # Take the pack off the manifests and the card before its data is replaced.
        withdraw(path)
        if pack.name in listing_of(builder.store.mixtures(mixture.name) / CARD).packs:
            _update_card(builder, mixture)
    return Built(folder, manifest, was_there=False)


def require_inputs(builder: Builder, mixture: Mixture, pack: Pack) -> None:
    """Raise if the pack was not fully scanned or read for this mixture."""
    needed = builder.reader.needed_by(mixture)
    if mixture.needs_leaks and not needed:
        where = f"mixture {mixture.name!r} of pack {pack.name!r}"
        raise MissingError(Problem(where, "no benchmark", "at least one"))
    if mixture.has_source(pack.source.name):
        require_nominated(builder.reader, mixture)
        require_calibrated(builder.reader_for(mixture), mixture, needed)
        require_scanned(builder.reader, [pack], needed)
        require_readable(builder.reader, pack)
        if mixture.needs_leaks:
            require_read(builder.reader, pack, builder.unread)


def draw_for(builder: Builder, mixture: Mixture, pack: Pack) -> Draw | None:
    """Return the rows that a control leaves out of a pack; None if there are none to draw.

    They are drawn once from all packs of the source, then read from the store.
    """
    if mixture.take != "control":
        return None
    treatment = treatment_of(mixture, builder.mixtures)
    if not treatment.has_source(pack.source.name):
        return None
    packs, source = builder.packs_of_source(pack), (treatment, pack.source.name)
    if source not in builder.scanned:
        require_scanned(builder.reader, packs, builder.reader.needed_by(treatment))
        builder.scanned.add(source)
    fingerprint = builder.draw_fingerprint(mixture, pack)
    drawn = read_draw(builder.store, fingerprint, [shard.name for shard in pack.shards])
    reader = builder.reader_for(treatment)
    return drawn or draw(reader, packs, mixture, treatment, fingerprint)


def _update_card(builder: Builder, mixture: Mixture, *, without: Collection[str] = ()) -> None:
    """Write the card of a mixture until it matches the packs that exist, without some packs.

    Other processes may build packs at the same time. Each reads the manifests again after
    writing, so the last card that is written is correct.
    """
    path = builder.store.mixtures(mixture.name) / CARD
    builder.store.drafts.mkdir(parents=True, exist_ok=True)
    while not has_page(path, card := builder.card(mixture, without=without)):
        with atomic_path(path, drafts=builder.store.drafts) as draft:
            draft.write_bytes(sealed_page(card))


def build_shares(
    builder: Builder,
    shares: Sequence[tuple[Mixture, Pack]],
    *,
    workers: int = 1,
    engine: Engine = LOCAL,
) -> Generator[tuple[Mixture, Pack, Future[Built]]]:
    """Build mixtures of packs in parallel and yield them as they finish, with their cards.

    A failure is kept in the future of its job; the other jobs go on. Shares that a card does not
    list, as after a kill, are not current: the next run verifies them and completes the card.
    """
    # Workers get the calibration, which is made from all packs, and not what it is made from.
    builder = builder.with_calibration()
    by_source = {(mixture, pack.source.name): (mixture, pack) for mixture, pack in shares}
    for mixture, pack in by_source.values():
        with suppress(DeconError):  # raised again by the job of the pack
            draw_for(builder, mixture, pack)
    # Only a control needs packs other than its own. Mixtures of a pack share a builder, so that in
    # one process its matches are read and decided once.
    known = replace(builder, n_known=builder.n_packs, known_labels=builder.labels)
    builders = {pack.name: replace(known, packs=(pack,)) for _, pack in shares}
    jobs: list[_Job] = [
        (builder if mixture.take == "control" else builders[pack.name], mixture, pack)
        for mixture, pack in shares
    ]
    sizes = [sum(shard.n_bytes + BYTES_PER_SHARD for shard in pack.shards) for _, pack in shares]
    n_workers = useful_workers(workers, sizes, engine=engine)

    def name_of(job: _Job) -> str:
        return f"mixture {job[1].name!r} of pack {job[2].name!r}"

    done = run_jobs(_build_share, jobs, workers=n_workers, engine=engine, name_of=name_of)
    cards = _Cards(builder)
    try:
        cards.take_off(shares)
        with closing(done):
            for (_, mixture, pack), future in done:
                cards.add(mixture, pack, is_built=future.exception() is None)
                yield mixture, pack, future
    except BaseException:  # also of the caller, who closes the iterator
        with suppress(DeconError, OSError):
            cards.write()
        raise
    cards.write()


@dataclass
class _Cards:
    """The cards of mixtures that are being built: written now and then, and at the end."""

    builder: Builder
    changed: dict[str, Mixture] = field(default_factory=dict)
    taken_off: dict[str, set[str]] = field(default_factory=dict)  # packs, by mixture
    due: float = 0.0  # due at once after the first share, so that loaders find the card

    def take_off(self, shares: Sequence[tuple[Mixture, Pack]]) -> None:
        """Take outdated shares off the cards together, before the first of them is replaced."""
        for name, mixture in {mixture.name: mixture for mixture, _ in shares}.items():
            packs = [pack for other, pack in shares if other.name == name]
            self.taken_off[name] = set()
            with suppress(DeconError):  # raised again by the jobs, which take off their own share
                self.taken_off[name] = self.builder.outdated_packs(mixture, packs)
                if self.taken_off[name]:
                    _update_card(self.builder, mixture, without=self.taken_off[name])

    def add(self, mixture: Mixture, pack: Pack, *, is_built: bool) -> None:
        """Add a share after its job, or put it back on the card if it could not be replaced."""
        taken_off = self.taken_off[mixture.name]
        if is_built or pack.name in taken_off:
            taken_off.discard(pack.name)
            self.changed[mixture.name] = mixture
        if self.changed and time.monotonic() >= self.due:
            self.write()

    def write(self) -> None:
        began = time.monotonic()
        for name, mixture in self.changed.items():
            _update_card(self.builder, mixture, without=self.taken_off[name])
        took = time.monotonic() - began
        self.due = began + max(_SECONDS_BETWEEN_CARDS, took / _SHARE_OF_TIME)
        self.changed.clear()
