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

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from decon_core.config.mixtures import Mixture
from decon_core.corpus.packs import Pack
from decon_core.errors import DeconError
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import run_jobs, useful_workers
from decon_core.execution.local import LOCAL
from decon_core.mixtures.builder import Builder, shards_of
from decon_core.mixtures.card import (
    CARD,
    listed_packs,
)
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
from decon_core.mixtures.write import Writer, totals_of
from decon_core.storage.checksums import hash_file, sealed_page
from decon_core.storage.files import atomic_path, write_json


def _build_share(builder: Builder, mixture: Mixture, pack: Pack) -> Built:
    """Write a mixture of a pack, unless an intact one from the same inputs exists; not its card."""
    mixture = builder.effective(mixture)
    shards = shards_of(mixture, pack)
    builder.require(mixture, pack)
    fingerprint = builder.fingerprint(mixture, pack)
    folder = builder.store.mixture(mixture.name, pack.name)
    path = builder.store.mixture_manifest(mixture.name, pack.name)
    manifest = current_manifest(path, fingerprint, folder)
    if manifest is not None and not manifest_faults(path, folder):
        return Built(folder, manifest, was_there=True)
    drawn = builder.draw_for(mixture, pack)
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
            "has_verdicts": any(builder.pairs(shards, builder.reader.needed_by(mixture))),
            "shards": accounts,
            "totals": totals_of(accounts),
            TABLES: {REMOVED_FILE: hash_file(writer.write_removed(records))},
        }
        write_json(records / path.name, manifest)
        _withdraw(builder, mixture, path)
    return Built(folder, manifest, was_there=False)


def _withdraw(builder: Builder, mixture: Mixture, manifest: Path) -> None:
    """Take a pack whose data is about to be replaced off the manifests and the card."""
    withdraw(manifest)
    if manifest.parent.name in listed_packs(builder.store.mixtures(mixture.name) / CARD):
        _update_card(builder, mixture)


def _update_card(builder: Builder, mixture: Mixture) -> None:
    """Write the card of a mixture until it matches the packs that exist.

    Other processes may build packs at the same time. Each reads the manifests again after
    writing, so the last card that is written is correct.
    """
    path = builder.store.mixtures(mixture.name) / CARD
    builder.store.drafts.mkdir(parents=True, exist_ok=True)
    card = builder.card(mixture)
    while not has_page(path, card):
        with atomic_path(path, drafts=builder.store.drafts) as draft:
            draft.write_bytes(sealed_page(card))
        card = builder.card(mixture)


_Job = tuple[Builder, Mixture, Pack]  # a mixture of a pack to build in a worker process


def build_shares(
    builder: Builder,
    wanted: Sequence[tuple[Mixture, Pack]],
    *,
    workers: int = 1,
    engine: Engine = LOCAL,
) -> Iterator[tuple[Mixture, Pack, Future[Built]]]:
    """Build mixtures of packs in parallel and yield them as they finish; write their cards last.

    A failure is kept in the future of its job; the other jobs go on. Shares of a mixture whose card
    does not list them, as after a kill, are not current: the next run completes the card.
    """
    # Workers get the calibration, which is made from all packs, and not what it is made from.
    builder = builder.with_calibration()
    for mixture, pack in {(one, pack.source.name): (one, pack) for one, pack in wanted}.values():
        with suppress(DeconError):  # raised again by the job of the pack
            builder.draw_for(mixture, pack)
    # Only a control needs packs other than its own. Mixtures of a pack share a builder, so that in
    # one process its matches are read and decided once.
    of_pack: dict[str, Builder] = {}
    for _, pack in wanted:
        if pack.name not in of_pack:
            of_pack[pack.name] = replace(
                builder, packs=(pack,), n_known=builder.n_packs, known_labels=builder.labels
            )
    jobs: list[_Job] = [
        (builder if mixture.take == "control" else of_pack[pack.name], mixture, pack)
        for mixture, pack in wanted
    ]
    sizes = [shard.n_bytes for _, pack in wanted for shard in pack.shards]
    n_workers = useful_workers(workers, sizes, engine=engine)
    done = run_jobs(_build, jobs, workers=n_workers, engine=engine, name_of=_name_of)
    built: dict[str, Mixture] = {}
    try:
        for (_, mixture, pack), future in done:
            if future.exception() is None:
                built[mixture.name] = mixture
            yield mixture, pack, future
    finally:
        for mixture in built.values():
            _update_card(builder, mixture)


def _name_of(job: _Job) -> str:
    _, mixture, pack = job
    return f"mixture {mixture.name!r} of pack {pack.name!r}"


def _build(job: _Job) -> Built:
    builder, mixture, pack = job
    return _build_share(builder, mixture, pack)
