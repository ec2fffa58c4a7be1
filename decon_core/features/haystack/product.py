"""The haystack in the store: its files, the digest of its inputs, and whether it is missing.

Runs ask this often, so nothing here loads what scores documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from pkgutil import resolve_name

from decon_core.benchmarks.records import Version
from decon_core.config.load import Config
from decon_core.corpus.packs import FILES as LISTED
from decon_core.corpus.packs import Pack, changed_files
from decon_core.errors import InputError, Problem, collecting
from decon_core.features.haystack.settings import BUILT_IN, Haystack, ScorerName
from decon_core.mixtures.manifest import fingerprint_of, read_manifest
from decon_core.planner import Plan
from decon_core.report.page_additions import Addition
from decon_core.storage.checksums import hash_file
from decon_core.storage.files import read_json
from decon_core.storage.store import Store

# Changes whenever the same inputs would give other results.
_VERSION = 2
_LEFT_OUT = frozenset({"scorers", "model", "key_env"})  # settings that are not in the key

PAGE, RESULT = "haystack.md", "haystack.json"
TABLES = ("haystack", "amplification")  # each with a figure of the same name
_DRAWN = (f"{name}.{kind}" for name in TABLES for kind in ("csv", "svg"))
FILES = ("planted.jsonl", *_DRAWN, PAGE, RESULT)


@dataclass(frozen=True)
class ModelFile:
    """A file, and the label whose probability is the score."""

    path: Path
    label: str | None

    @staticmethod
    def of(name: ScorerName) -> ModelFile:
        """Split FILE[:LABEL]; a file that has the whole name has no label."""
        whole = Path(name.target)
        if whole.is_file():
            return ModelFile(whole, None)
        path, _, label = name.target.rpartition(":")
        if path and Path(path).is_file():
            return ModelFile(Path(path), label)
        found = "no such file" if not whole.is_dir() else "a folder"
        raise InputError(Problem(f"scorer {name}", found, "the file of a classifier"))


def has_haystack(folder: Path, key: str) -> bool:
    """Return whether a folder has the whole study with this key."""
    return all((folder / name).is_file() for name in FILES) and key_of(folder) == key


def key_of(folder: Path) -> str:
    """Return the key of the study in a folder; empty if there is none."""
    return str((read_manifest(folder / RESULT) or {}).get("key", ""))


def haystack_key(packs: Sequence[Pack], versions: Sequence[Version], settings: Haystack) -> str:
    """Return a digest of all inputs. Raises InputError if the file of a scorer cannot be found."""
    shards = [
        [pack.source.name, shard.name, shard.fingerprint] for pack in packs for shard in pack.shards
    ]
    inputs = [
        _VERSION,
        {name: value for name, value in asdict(settings).items() if name not in _LEFT_OUT},
        fingerprints_of(settings),
        sorted(shards),
        [[version.benchmark, version.fingerprint] for version in versions],
    ]
    return fingerprint_of(inputs)


def label_of(name: ScorerName) -> str:
    """Return a short name: of a file without its folder, of an endpoint without its scheme."""
    if name.kind == "column":
        return name.target.partition("=")[0]
    if name.kind == "endpoint":
        return name.target.partition("://")[2].rstrip("/")
    return name.target.rpartition("/")[2] or name.kind


def fingerprints_of(settings: Haystack) -> list[str]:
    """Return a hash of what determines the scores of each scorer; of a file, its content.

    Raises InputError for all files that do not exist.
    """
    fingerprints: list[str] = []
    problems: list[Problem] = []
    for name in settings.scorer_names:
        parts = [str(name)]
        with collecting(problems, InputError):
            if name.kind == "endpoint":
                parts.append(settings.model or "")
            elif name.kind == "column":
                parts = [name.kind, name.target.partition("=")[0], hash_file(scores_file(name))]
            elif name.kind not in BUILT_IN:
                file = ModelFile.of(name)
                parts = [name.kind, label_of(name), file.label or "", hash_file(file.path)]
        fingerprints.append(fingerprint_of(parts))
    InputError.raise_for(problems)
    return fingerprints


def scores_file(name: ScorerName) -> Path:
    """Return the file with the scores of planted items. Raises InputError if there is none."""
    path = Path(name.target.partition("=")[2])
    if not path.is_file():
        remedy = (
            "planted items are not rows of the corpus: write them with `decon-assets haystack "
            "--planted FILE`, score them with the classifier that filled the field, and pass a "
            'file with lines {"item": …, "score": …}'
        )
        where = f"scorer {name}"
        raise InputError(Problem(where, "no such file", "the scores of planted items", remedy))
    return path


_SECTION = "decon_core.features.haystack.page:section_of"  # imported only to draw it


def haystack_folder(store: Store) -> Path:
    return store.root / "haystack"


def is_missing(plan: Plan) -> bool:
    """Return whether a haystack is wanted, and missing or outdated."""
    settings = plan.config.table(Haystack)
    if settings is None:
        return False
    try:
        key = haystack_key(plan.packs, plan.versions, settings)
    except InputError:  # the file of a scorer cannot be found, which the study then says
        return True
    return not has_haystack(haystack_folder(plan.store), key)


def haystack_on_page(config: Config, store: Store) -> Addition | None:
    """Return the section of the haystack that was made; None if there is none."""
    folder = haystack_folder(store)
    key = key_of(folder) if config.table(Haystack) else ""
    return Addition(key, lambda: resolve_name(_SECTION)(folder)) if key else None


def faults_of_haystack(folder: Path) -> Iterator[Problem]:
    """Yield the files that were changed or removed."""
    if (folder / RESULT).is_file():
        yield from changed_files(folder, read_json(folder / RESULT)[LISTED])
