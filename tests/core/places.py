"""A corpus in a store, scanned, and what is made of it: mixtures, blends, a report."""

import json

import pyarrow.parquet as pq

from decon_core.config.load import Report
from decon_core.config.mixtures import DEFAULT, Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.decisions.not_read import NOTHING_IGNORED
from decon_core.decisions.verdicts import NO_VERDICTS
from decon_core.mixtures.build import build_shares
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.manifest import REMOVED_FILE, manifest_faults
from decon_core.report.build import build_report
from decon_core.scan.scanner import scan_packs
from decon_core.storage.compression import create

CLEAN = Mixture(name="clean")
CONTROL = Mixture(name="control", take="control", control_of="clean")


def manifest_of(folder):
    """The manifest of the mixture of a pack, or of the blend, in a folder of a store."""
    root = next(path.parent for path in folder.parents if path.name in ("mixtures", "blends"))
    return root / "manifests" / folder.relative_to(root) / "manifest.json"


def faults_in(folder):
    """What is wrong with the files of the mixture of a pack."""
    return manifest_faults(manifest_of(folder), folder)


def removed_in(folder):
    """The list of what a mixture removed from a pack."""
    return pq.read_table(manifest_of(folder).with_name(REMOVED_FILE))


def report_of(store, packs, versions, policy, mixtures=(DEFAULT,), showing=None, **known):
    """Build the report; return its headline. `known`: verdicts and the like."""
    builder = Builder(store, tuple(packs), tuple(versions), policy, tuple(mixtures), **known)
    return build_report(builder, showing or Report())


def line_of(row, name):
    """A line of JSON; a text is a whole document, bytes are a line already."""
    value = row if isinstance(row, dict) else {"id": name, "text": row}
    return row if isinstance(row, bytes) else json.dumps(value).encode() + b"\n"


def build_mixture(builder, mixture, pack):
    """The share that a mixture takes from a pack, written with its card."""
    ((*_, future),) = build_shares(builder, [(mixture, pack)])
    return future.result()


class Place:
    """A corpus of one source in a store, scanned, and mixtures of it."""

    def __init__(self, bench, versions):
        self.bench, self.versions, self.packs = bench, versions, []
        self.verdicts = NO_VERDICTS
        self.unread = NOTHING_IGNORED

    def put(self, shards, *, source=None, name="web"):
        """Shards (rows by name) as a pack of a source."""
        source = source or Source(name=name, path=f"{name}/**/*.jsonl*", text="text", id="id")
        for file, rows in shards.items():
            path = self.bench.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            with create(path, ".zst" if file.endswith(".zst") else "") as out:
                for number, row in enumerate(rows):
                    out.write(line_of(row, f"{file}-{number}"))
        found = find_shards(source, folder=self.bench.folder, known={})
        pack = Pack(name=f"{name}-{len(self.packs):04}", source=source, shards=tuple(found))
        self.packs.append(pack)
        return pack

    def scan(self, **options):
        scan_packs(self.bench.store, self.packs, self.versions, self.bench.policy, **options)
        return self

    def builder(self, *mixtures):
        return Builder(
            self.bench.store,
            tuple(self.packs),
            tuple(self.versions),
            self.bench.policy,
            mixtures or (CLEAN, CONTROL),
            verdicts=self.verdicts,
            unread=self.unread,
        )

    def build(self, mixture, pack=None):
        builder = self.builder(CLEAN, CONTROL, mixture)
        return build_mixture(builder, mixture, pack or self.packs[0])

    def rows(self, mixture, shard="s.jsonl", pack=None):
        """The rows of a shard as a mixture has it."""
        folder = self.build(mixture, pack).folder
        assert faults_in(folder) == []
        return [json.loads(line) for line in (folder / shard).read_bytes().splitlines()]

    def removed(self, mixture, pack=None):
        return removed_in(self.build(mixture, pack).folder).to_pylist()

    def manifest(self, mixture, pack=None):
        return json.loads(manifest_of(self.build(mixture, pack).folder).read_text())
