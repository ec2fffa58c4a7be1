"""A blend, built: its parts, the account of every text in them, and what they were made from.

    <store>/blends/<name>/
      phase-1/part-00000.jsonl.zst      and so on; `holds-test-items` in the name where some do
      _texts.parquet                    every text in its order: which document, or which test item
      _replaced.parquet                 the documents that test items took the place of
      _items.parquet                    the items of those benchmarks: seen or held back
      README.md                         the page that goes with it
      _manifest.json                    inputs, settings, counts, and a hash of every file

Fail-closed: a blend is built from a mixture of which every pack is there, and of today. The folder
appears whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.blends.account import (
    account_of,
    items_table,
    planned_tokens,
    replaced_table,
    text_tables,
)
from decon_core.blends.card import card_of_blend
from decon_core.blends.plan import Plan, plan_blend
from decon_core.blends.write import Written, job_of, write_part
from decon_core.config.blends import Blend
from decon_core.config.mixtures import Mixture, mixture_named
from decon_core.corpus.packs import Pack, hash_file
from decon_core.errors import DeconError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.mixtures.build import Builder
from decon_core.mixtures.card import CARD
from decon_core.mixtures.manifest import MANIFEST, unlisted_files
from decon_core.scan.workers import Advance, run_jobs
from decon_core.schemas import BLENDED
from decon_core.storage.checksums import sealed_page
from decon_core.storage.store import (
    atomic_path,
    read_json,
    read_parquet,
    write_json,
    write_parquet,
    write_tables,
)

TEXTS_FILE = "_texts.parquet"
REPLACED_FILE = "_replaced.parquet"
ITEMS_FILE = "_items.parquet"
_TABLES = (TEXTS_FILE, REPLACED_FILE, ITEMS_FILE)

# Counted up when a blend of the same inputs comes out in another way: it is built again.
_FORMAT = 1
# Below this a process takes longer to start than it saves.
_TOKENS_PER_WORKER = 50_000_000


@dataclass(frozen=True)
class BlendSummary:
    """What a blend holds."""

    blend: str
    n_documents: int
    n_tokens: int
    n_test_texts: int
    n_test_tokens: int
    n_parts: int
    most_passes: float  # of any source: how often it was gone through
    folder: Path
    was_there: bool


@dataclass(frozen=True)
class Blender:
    """Builds the blends of a configuration from the mixtures that stand today."""

    builder: Builder
    blends: tuple[Blend, ...]

    def build(
        self, blend: Blend, *, workers: int = 1, on_advance: Advance = lambda _: None
    ) -> BlendSummary:
        """Write a blend, unless it stands already."""
        store = self.builder.store
        folder = store.blend(blend.name)
        fingerprint = self.fingerprint(blend)
        standing = _standing(folder, fingerprint)
        if standing is not None and not blend_damage(folder):
            _keep_card(folder, standing)
            return _summary(standing, folder, was_there=True)
        plan = plan_blend(self.builder, blend)
        with atomic_path(folder, drafts=store.drafts) as draft:
            draft.mkdir(parents=True)
            written = _write(plan, draft, self.builder, workers, on_advance)
            manifest = {
                **self._inputs(blend),
                "fingerprint": fingerprint,
                **_account(plan, written, draft),
            }
            write_json(draft / MANIFEST, manifest)
            _keep_card(draft, read_json(draft / MANIFEST))
        return _summary(manifest, folder, was_there=False)

    def stands(self, blend: Blend) -> bool:
        """Whether a blend is there, made from today's inputs."""
        folder = self.builder.store.blend(blend.name)
        manifest = _standing(folder, self.fingerprint(blend))
        return manifest is not None and has_card(folder, manifest)

    def is_of_today(self, blend: Blend) -> bool:
        """Whether there is a manifest of today's inputs, whatever else is there."""
        manifest = _manifest(self.builder.store.blend(blend.name))
        return manifest is not None and manifest.get("fingerprint") == self.fingerprint(blend)

    def fingerprint(self, blend: Blend) -> str:
        """What it depends on: its mixture's packs, the benchmarks in it, and what it is to be."""
        mixture = self.mixture_of(blend)
        value = [
            _FORMAT,
            blend.to_json(),
            mixture.name,
            self._made_of[mixture.name],
            self._versions(blend),
        ]
        return sha256(json.dumps(value).encode()).hexdigest()[:16]

    @cached_property
    def _made_of(self) -> dict[str, list[str]]:
        """The fingerprints of the packs of every mixture that blends are made of."""
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
        """The benchmarks whose items are in a blend."""
        named = {name for one in blend.contamination for name in one.benchmarks}
        return {
            version.benchmark: version.fingerprint
            for version in sorted(self.builder.versions, key=lambda version: version.benchmark)
            if version.benchmark in named
        }

    def _inputs(self, blend: Blend) -> dict[str, Any]:
        builder = self.builder
        mixture = builder.effective(self.mixture_of(blend))
        folders = {
            pack.name: builder.store.mixture(mixture.name, pack.name) / MANIFEST
            for pack in self._packs(mixture)
        }
        return {
            "blend": blend.name,
            "declared": blend.to_json(),
            "mixture": {
                "name": mixture.name,
                "declared": mixture.to_json(),
                "benchmarks": {
                    version.benchmark: version.fingerprint
                    for version in builder.reader.needed_by(mixture)
                },
                "manifests": {name: hash_file(path) for name, path in folders.items()},
            },
            "benchmarks": self._versions(blend),
            "seed": blend.seed,
            "scan": builder.reader.scan,
            "idf_snapshot": current_snapshot_fingerprint(builder.store),
            "policy": asdict(builder.policy),
            "thresholds": builder.policy.thresholds,
        }


def build_blends(
    blender: Blender,
    wanted: Sequence[Blend],
    *,
    workers: int = 1,
    on_advance: Advance = lambda _: None,
) -> Iterator[tuple[Blend, BlendSummary | DeconError]]:
    """Build blends, one after the other; one that is refused does not stop the others."""
    for blend in wanted:
        try:
            yield blend, blender.build(blend, workers=workers, on_advance=on_advance)
        except DeconError as error:
            yield blend, error


def _write(
    plan: Plan, folder: Path, builder: Builder, workers: int, on_advance: Advance
) -> list[Written]:
    """All parts, in as many processes as there is work for."""
    for phase in range(plan.stream.phases.size - 1):
        (folder / f"phase-{phase + 1}").mkdir()
    jobs = [job_of(plan, part, folder, builder.policy) for part in plan.parts]
    n_tokens = int(plan.stream.draws.n_tokens.sum())
    n_workers = min(workers, len(jobs), n_tokens // _TOKENS_PER_WORKER)
    done = run_jobs(write_part, jobs, workers=n_workers, on_advance=on_advance)
    written = [future.result() for _, future in done]
    return sorted(written, key=lambda one: one.part.number)


# The account --------------------------------------------------------------------------------------


def _account(plan: Plan, written: Sequence[Written], folder: Path) -> dict[str, Any]:
    """Write the tables; what the manifest says of them and of the parts."""
    n_tokens = planned_tokens(plan)
    n_tokens[plan.by >= 0] = np.concatenate([one.tokens_of_texts for one in written])
    write_tables(folder / TEXTS_FILE, BLENDED, text_tables(plan, n_tokens))
    write_parquet(folder / REPLACED_FILE, replaced_table(plan))
    write_parquet(folder / ITEMS_FILE, items_table(plan))
    return {
        **account_of(plan, n_tokens),
        "parts": [_part(plan, one, n_tokens, folder) for one in written],
        "tables": {name: hash_file(folder / name) for name in _TABLES},
    }


def _part(plan: Plan, one: Written, n_tokens: Any, folder: Path) -> dict[str, Any]:
    own = slice(one.part.start, one.part.stop)
    return {
        "file": one.path.relative_to(folder).as_posix(),
        "phase": one.part.phase + 1,
        "n_documents": one.part.stop - one.part.start,
        "n_tokens": int(n_tokens[own].sum()),
        "n_test_texts": int((plan.by[own] >= 0).sum()),
        "n_bytes": one.n_bytes,
        "output": one.output,
    }


# What stands --------------------------------------------------------------------------------------


def _manifest(folder: Path) -> dict[str, Any] | None:
    """What a manifest says, if it can be read."""
    try:
        manifest = read_json(folder / MANIFEST)
    except (OSError, DeconError):
        return None
    return manifest if isinstance(manifest, dict) else None


def _standing(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """The manifest of a blend that is there already, whole and from the same inputs."""
    manifest = _manifest(folder)
    try:
        is_standing = (
            manifest is not None
            and manifest["fingerprint"] == fingerprint
            and all((folder / name).is_file() for name in _TABLES)
            and all(
                (folder / part["file"]).is_file()
                and (folder / part["file"]).stat().st_size == part["n_bytes"]
                for part in manifest["parts"]
            )
        )
    except (KeyError, TypeError):
        return None  # of an older form: it is built again
    return manifest if is_standing else None


def has_card(folder: Path, manifest: dict[str, Any]) -> bool:
    """Whether the page is there, and says what the manifest does."""
    path = folder / CARD
    return path.is_file() and path.read_bytes() == sealed_page(card_of_blend(manifest))


def _keep_card(folder: Path, manifest: dict[str, Any]) -> None:
    if not has_card(folder, manifest):
        with atomic_path(folder / CARD) as draft:
            draft.write_bytes(sealed_page(card_of_blend(manifest)))


def _summary(manifest: dict[str, Any], folder: Path, *, was_there: bool) -> BlendSummary:
    totals = manifest["totals"]
    return BlendSummary(
        blend=manifest["blend"],
        n_documents=totals["n_documents"],
        n_tokens=totals["n_tokens"],
        n_test_texts=totals["n_test_texts"],
        n_test_tokens=totals["n_test_tokens"],
        n_parts=len(manifest["parts"]),
        most_passes=max(source["passes"] for source in manifest["sources"]),
        folder=folder,
        was_there=was_there,
    )


def blend_damage(folder: Path) -> list[Problem]:
    """What does not add up in a blend: texts drawn, replaced and written, and the bytes on disk."""
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a blend")]
    manifest = read_json(folder / MANIFEST)
    totals = manifest["totals"]
    n_accounted = totals["n_drawn"] - totals["n_replaced"] + totals["n_test_texts"]
    n_written = sum(part["n_documents"] for part in manifest["parts"])
    problems = [
        Problem(str(folder), f"{found} texts", f"{n_accounted}")
        for found in (totals["n_documents"], n_written)
        if found != n_accounted
    ]
    files = {part["file"]: part["output"] for part in manifest["parts"]} | manifest["tables"]
    for name, content in files.items():
        file = folder / name
        if not file.is_file() or hash_file(file) != content:
            remedy = "remove the folder; `decon-assets run` builds it anew"
            problems.append(Problem(str(file), "other bytes", "those that were written", remedy))
    problems += unlisted_files(folder, {*files, MANIFEST, CARD})
    if not problems:
        problems += _unlisted(folder, manifest)
    return problems


def _unlisted(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Where the tables say something else than the manifest."""
    texts = read_parquet(folder / TEXTS_FILE, schema=BLENDED, columns=["part", "n_tokens"])
    counts = texts.group_by("part").aggregate([("n_tokens", "count"), ("n_tokens", "sum")])
    listed = {row["part"]: row for row in counts.to_pylist()}
    for number, part in enumerate(manifest["parts"]):
        row = listed.get(number, {"n_tokens_count": 0, "n_tokens_sum": 0})
        told = (row["n_tokens_count"], row["n_tokens_sum"])
        if told != (part["n_documents"], part["n_tokens"]):
            wanted = f"{part['n_documents']} and {part['n_tokens']}"
            found = "{} texts, {} tokens listed".format(*told)
            yield Problem(f"{folder / TEXTS_FILE}: {part['file']}", found, wanted)
