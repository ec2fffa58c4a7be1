"""Build blends: parts, tables that list every text in them, and a manifest.

    <store>/blends/<name>/
      phase-1/part-00000.jsonl.zst      and so on; `holds-test-items` in the name if it does
      README.md                         dataset card
    <store>/manifests/blends/<name>/
      texts.parquet                     every text in order: which document, or which test item
      replaced.parquet                  the documents that test items replaced
      items.parquet                     the items of the inserted benchmarks: seen or unseen
      manifest.json                     inputs, settings, counts, and a hash of every file

A blend is built only if all packs of its mixture exist and are current. Each folder is written
atomically, the manifest last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.config.mixtures import Mixture, mixture_named
from decon_core.corpus.packs import Pack
from decon_core.errors import Problem
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import run_jobs
from decon_core.execution.local import LOCAL
from decon_core.features.blends.card import card_of_blend
from decon_core.features.blends.rewordings import NO_REWORDINGS, Rewordings
from decon_core.features.blends.schemas import (
    BLENDED,
    ITEMS_FILE,
    REPLACED_FILE,
    TEXTS_FILE,
    blend_folder,
    blend_manifest,
)
from decon_core.features.blends.settings import REWORDED, Blend
from decon_core.index.term_weights import current_snapshot_fingerprint
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.card import CARD
from decon_core.mixtures.manifest import (
    TABLES,
    Built,
    current_manifest,
    file_faults,
    fingerprint_of,
    has_page,
    replaced,
    withdraw,
)
from decon_core.schemas import schema_of
from decon_core.storage.checksums import hash_file, sealed_page
from decon_core.storage.files import atomic_path, read_json, write_json
from decon_core.storage.tables import read_parquet, write_parquet, write_tables

if TYPE_CHECKING:
    from decon_core.features.blends.plan import Plan
    from decon_core.features.blends.write import WrittenPart

# Increase this when the same inputs give different files, so that blends are rebuilt.
_FORMAT = 5
# A process with fewer tokens takes longer to start than it saves.
_TOKENS_PER_WORKER = 50_000_000


@dataclass(frozen=True)
class Blender:
    """Builds the blends of a configuration from the current mixtures."""

    builder: Builder
    blends: tuple[Blend, ...]
    rewordings: Rewordings = NO_REWORDINGS

    def build(self, blend: Blend, *, workers: int = 1, engine: Engine = LOCAL) -> Built:
        """Write a blend, unless an intact one from the same inputs exists."""
        store = self.builder.store
        folder = blend_folder(store, blend.name)
        fingerprint = self.fingerprint(blend)
        path = blend_manifest(store, blend.name)
        current = current_manifest(path, fingerprint, folder)
        if current is not None and not blend_faults(path, folder):
            self._update_card(folder, current)
            return Built(folder, current, was_there=True)
        # Imported late: runs ask whether blends are current, and few build a blend.
        from decon_core.features.blends.plan import plan_blend
        from decon_core.features.blends.write import job_of, write_part

        plan = plan_blend(self.builder, blend, self.rewordings)
        with replaced(folder, path, store.drafts) as (data, records):
            for number in range(1, plan.stream.phases.size):
                (data / f"phase-{number}").mkdir()
            jobs = [job_of(plan, part, data, self.builder.policy) for part in plan.parts]
            n_tokens = int(plan.stream.draws.n_tokens.sum())
            workers = min(engine.most_workers(workers), len(jobs), n_tokens // _TOKENS_PER_WORKER)
            done = run_jobs(
                write_part, jobs, workers=workers, engine=engine, name_of=lambda job: str(job.path)
            )
            written = sorted(
                (future.result() for _, future in done), key=lambda job: job.part.number
            )
            account = _account(plan, written, data, records)
            manifest = {**self._inputs(blend), "fingerprint": fingerprint, **account}
            write_json(records / path.name, manifest)
            self._update_card(data, read_json(records / path.name))
            withdraw(path)
        return Built(folder, manifest, was_there=False)

    def is_current(self, blend: Blend) -> bool:
        """Return whether a blend exists with all files and was made from the current inputs."""
        store = self.builder.store
        folder, path = blend_folder(store, blend.name), blend_manifest(store, blend.name)
        manifest = current_manifest(path, self.fingerprint(blend), folder)
        return manifest is not None and self.has_card(folder, manifest)

    def has_card(self, folder: Path, manifest: Mapping[str, Any]) -> bool:
        """Return whether the card exists and matches the manifest and the labels of sources."""
        return has_page(folder / CARD, card_of_blend(manifest, self.builder.labels))

    def _update_card(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        if not self.has_card(folder, manifest):
            with atomic_path(folder / CARD) as draft:
                draft.write_bytes(sealed_page(card_of_blend(manifest, self.builder.labels)))

    def fingerprint(self, blend: Blend) -> str:
        """Return a hash of all inputs: settings, packs, inserted benchmarks, rewordings."""
        mixture = self.mixture_of(blend)
        packs = self._pack_fingerprints[mixture.name]
        versions = self._versions(blend)
        inputs = [_FORMAT, blend.to_json(), mixture.name, packs, versions]
        if any(inserted.form == REWORDED for inserted in blend.contamination):
            inputs.append(self.rewordings.digest)
        return fingerprint_of(inputs)

    @cached_property
    def _pack_fingerprints(self) -> dict[str, list[str]]:
        """The fingerprints of the packs of every mixture that blends draw from."""
        mixtures = {blend.of: self.mixture_of(blend) for blend in self.blends}
        return {
            name: [self.builder.fingerprint(mixture, pack) for pack in self._packs(mixture)]
            for name, mixture in mixtures.items()
        }

    def mixture_of(self, blend: Blend) -> Mixture:
        return mixture_named(self.builder.mixtures, blend.of)

    def _packs(self, mixture: Mixture) -> list[Pack]:
        return [pack for pack in self.builder.packs if mixture.has_source(pack.source.name)]

    def _versions(self, blend: Blend) -> dict[str, str]:
        """Return the fingerprints of the benchmarks whose items a blend inserts."""
        named = {name for inserted in blend.contamination for name in inserted.benchmarks}
        versions = {version.benchmark: version.fingerprint for version in self.builder.versions}
        return {name: versions[name] for name in sorted(versions) if name in named}

    def _inputs(self, blend: Blend) -> dict[str, Any]:
        builder = self.builder
        mixture = builder.effective(self.mixture_of(blend))
        needed, manifest = builder.reader.needed_by(mixture), builder.store.mixture_manifest
        packs = [pack.name for pack in self._packs(mixture)]
        return {
            "blend": blend.name,
            "declared": blend.to_json(),
            "mixture": {
                "name": mixture.name,
                "declared": mixture.to_json(),
                "benchmarks": {version.benchmark: version.fingerprint for version in needed},
                "manifests": {name: hash_file(manifest(mixture.name, name)) for name in packs},
            },
            "benchmarks": self._versions(blend),
            "seed": blend.seed,
            "scan": builder.reader.scan,
            "term_weights": current_snapshot_fingerprint(builder.store),
            "policy": asdict(builder.policy),
            "thresholds": builder.policy.thresholds,
        }


def _account(
    plan: Plan, written: Sequence[WrittenPart], folder: Path, records: Path
) -> dict[str, Any]:
    """Write the tables to `records`; return the manifest entries of tables and parts."""
    from decon_core.features.blends import counts

    n_tokens = counts.planned_tokens(plan)
    n_tokens[plan.by >= 0] = np.concatenate([done.tokens_of_texts for done in written])
    tables = (counts.texts_table(plan, part, n_tokens) for part in plan.parts)  # one would be large
    write_tables(records / TEXTS_FILE, schema_of(BLENDED), tables)
    write_parquet(records / REPLACED_FILE, counts.replaced_table(plan))
    write_parquet(records / ITEMS_FILE, counts.items_table(plan))
    parts = []
    for done in written:
        texts = slice(done.part.start, done.part.stop)
        parts.append(
            {
                "file": done.path.relative_to(folder).as_posix(),
                "phase": done.part.phase + 1,
                "n_documents": done.part.stop - done.part.start,
                "n_tokens": int(n_tokens[texts].sum()),
                **done.counts,
                "n_test_texts": int((plan.by[texts] >= 0).sum()),
                "n_bytes": done.n_bytes,
                "output": done.output,
            }
        )
    hashes = {name: hash_file(records / name) for name in (TEXTS_FILE, REPLACED_FILE, ITEMS_FILE)}
    return {**counts.account_of(plan, n_tokens), "parts": parts, TABLES: hashes}


def blend_faults(path: Path, folder: Path) -> list[Problem]:
    """Verify a blend against its manifest: counts of texts and file checksums."""
    if not path.is_file():
        return [Problem(str(folder), f"the blend has no manifest {path}")]
    manifest = read_json(path)
    totals = manifest["totals"]
    n_accounted = totals["n_drawn"] - totals["n_replaced"] + totals["n_test_texts"]
    n_written = sum(part["n_documents"] for part in manifest["parts"])
    problems = [
        Problem(str(folder), f"{n} texts", f"{n_accounted}")
        for n in (totals["n_documents"], n_written)
        if n != n_accounted
    ]
    problems += file_faults(path, manifest, folder, CARD)
    if problems:
        return problems
    table = path.with_name(TEXTS_FILE)
    texts = read_parquet(table, schema=schema_of(BLENDED), columns=["part", "n_tokens"])
    by_part = texts.group_by("part").aggregate([("n_tokens", "count"), ("n_tokens", "sum")])
    listed = {row["part"]: row for row in by_part.to_pylist()}
    for number, part in enumerate(manifest["parts"]):
        row = listed.get(number, {"n_tokens_count": 0, "n_tokens_sum": 0})
        counts = (row["n_tokens_count"], row["n_tokens_sum"])
        if counts != (part["n_documents"], part["n_tokens"]):
            found = "{} texts, {} tokens listed".format(*counts)
            expected = f"{part['n_documents']} texts, {part['n_tokens']} tokens"
            problems.append(Problem(f"{table}: {part['file']}", found, expected))
    return problems
