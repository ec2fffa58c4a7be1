"""Load and validate decon.toml or a policy alone, with the models of the small tables.

`SECTIONS` has the model of each table; a feature has those of its own. `__init__.py` says what
follows from a new key. Relative paths are relative to the folder of the file;
docs/configuration.md has examples.
"""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass as model

from decon_core.config.detector_registry import names
from decon_core.config.mixtures import TOKENIZER_FILE, Mixture, read_mixtures
from decon_core.config.policy import Policy, with_preset
from decon_core.config.sources import Corpus, Sketch, Source, source_names
from decon_core.config.validation import (
    TABLE,
    Count,
    Distinct,
    Name,
    Names,
    SettingsReader,
    Share,
    did_you_mean,
    expects,
)
from decon_core.errors import ConfigError, Problem, collecting
from decon_core.feature import feature_entries
from decon_core.storage.paths import RemotePath, expand_glob, is_url, parse_path, use_options

if TYPE_CHECKING:
    from decon_core.config.feature_table import FeatureTable

Settings = TypeVar("Settings", bound="FeatureTable")

_STORE = ".decon"
# Names of secret options.
_SECRET = re.compile(
    r"secret|token|passw|^key$|access_key|account_key|credential|sas", re.IGNORECASE
)


@model(frozen=True, kw_only=True, config=TABLE)
class Evals:
    """[evals]: the benchmarks."""

    recipes: Names[Name] = ()
    """Recipe files or globs; an entry that matches no file is an error."""
    catalog: Names[Name] = ()
    """Benchmarks of the catalog: names, patterns, and sets such as "@math" (docs/recipes.md)."""
    sets: dict[str, Names[Name]] = dataclass_field(default_factory=dict)
    """[evals.sets]: your own sets for `catalog`, as lists of names, patterns and other sets."""
    benchmarks: Names[Name] | None = None
    """Use only these benchmarks; default: all."""
    required: Names[Name] = ()
    """Fail if a chosen detector can find too few items of these benchmarks."""
    least_checkable_share: Share = 0.5
    """Minimum share of a benchmark's items that each detector must be able to find. Below this
    share, a check fails for a required benchmark, and warns for any other."""


@model(frozen=True, kw_only=True, config=TABLE)
class TermWeights:
    """[term_weights]: the weights of n-grams."""

    benchmarks: Names[Name] | None = None
    """Benchmarks in which n-grams are counted, by the first run only; default: all."""


@model(frozen=True, kw_only=True, config=TABLE)
class Review:
    """[review]: reviewers' verdicts on matches."""

    verdicts: Annotated[Name, expects("a local file, which need not exist")] = "verdicts.jsonl"
    """File with the reviewers' verdicts, which need not exist yet (docs/review.md)."""
    clears: Distinct[Literal["template", "common source"]] = ("template", "common source")
    """Verdicts that clear a match, which is then not a leak."""
    judged: Literal["leak", "review"] = "leak"
    """How to classify a match that an annotations file or a model called a duplicate, if its score
    does not prove a leak and no reviewer has decided."""


@model(frozen=True, kw_only=True, config=TABLE)
class Report:
    """[report]: how much text a report shows, and what it warns about."""

    snippets: Literal["on", "off"] = "on"
    """With "off", the database and the pages contain no corpus text."""
    context: Count = 300
    """Characters shown before and after a match."""
    most_texts: Count = 50_000
    """Maximum number of matched texts for which the text around the match is stored."""
    drift: Share = 0.05
    """The `leak_rate_is_steady` check warns if a benchmark's leak rate differs by more than this
    from its rate in the previous report."""

    @property
    def has_snippets(self) -> bool:
        return self.snippets == "on"


@model(frozen=True, kw_only=True, config=TABLE)
class StoreTable:
    """[store]: where all products are stored."""

    path: Annotated[Name | None, expects("a path")] = None
    """A folder or a URL; default: .decon."""
    work: Annotated[Name | None, expects("a path")] = None
    """If `path` is a URL, the local work folder; default: .decon."""


SECTIONS: Mapping[str, Any] = {
    "evals": Evals,
    "term_weights": TermWeights,
    "corpus": Corpus,
    "policy": Policy,
    "mixture": tuple[Mixture, ...],
    "sketch": Sketch,
    "review": Review,
    "report": Report,
    "store": StoreTable,
    "storage": Annotated[
        dict[str, dict[str, Any]],
        Field(
            description="Options of an fsspec file system, by URL scheme: "
            '[storage.s3] with endpoint_url = "http://127.0.0.1:9000". Do not '
            "put secrets here (docs/configuration.md)."
        ),
    ],
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A validated decon.toml: its tables, and the paths that they name."""

    path: Path  # the file itself
    evals: Evals
    term_weights: TermWeights
    corpus: Corpus
    policy: Policy
    mixtures: tuple[Mixture, ...]
    sketch: Sketch | None
    review: Review
    report: Report
    tables: Mapping[str, FeatureTable]  # keys are names of features
    storage: Mapping[str, Mapping[str, Any]]  # options by scheme
    recipes: tuple[Path, ...]
    verdicts: Path
    store: Path  # the local folder
    kept: RemotePath | None  # its remote copy, if there is one

    @property
    def folder(self) -> Path:
        """The folder that relative paths start at."""
        return self.path.parent

    def has_table(self, name: str) -> bool:
        """Return whether an optional table is there."""
        return name in self.tables or (name == "sketch" and self.sketch is not None)

    def table(self, model: type[Settings]) -> Settings | None:
        """Return the table of a feature, by its model; None if decon.toml has none."""
        return next((table for table in self.tables.values() if isinstance(table, model)), None)


def load_config(path: Path) -> Config:
    """Read and validate a decon.toml. Raises one `ConfigError` with all problems."""
    return config_from(read_toml(path, "a decon.toml", "`decon-assets init` writes one"), path)


def read_toml(path: Path, expected: str, remedy: str = "") -> dict[str, Any]:
    """Read a TOML file. Raises `ConfigError`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = Problem(str(path), "no such file", "" if remedy else expected, remedy)
    except OSError as error:
        problem = Problem(str(path), error.strerror or str(error), f"{expected} that can be read")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = Problem(str(path), str(error), "valid TOML in UTF-8")
    raise ConfigError(problem)


def config_from(values: Mapping[str, Any], path: Path) -> Config:
    """Validate the parsed values of a decon.toml at this path."""
    return ConfigReader(path).config(values)


class ConfigReader(SettingsReader):
    """Builds a `Config` from a parsed file and collects the problems."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), folder=path.resolve().parent)
        self.path = path
        self.sources: tuple[Source, ...] = ()
        self.mixtures: tuple[Mixture, ...] = ()
        self.has_store_url = False

    def config(self, values: Mapping[str, Any]) -> Config:
        others = sorted(values.keys() - SECTIONS.keys())
        of_features = feature_entries("tables")
        for name in (name for name in others if name not in of_features):
            remedy = did_you_mean(name, (*SECTIONS, *of_features))
            self.wrong(name, f"unknown key {name!r}", "a known key", remedy)
        evals = self.table(Evals, "evals", values.get("evals", {}))
        weights = self.table(TermWeights, "term_weights", values.get("term_weights", {}))
        storage = self._use_options(values.get("storage", {}))
        if not {"recipes", "catalog"} & set(values.get("evals") or ()):
            expected = "recipe files, or benchmarks of the catalog in evals.catalog"
            self.wrong("evals.recipes", "missing", expected)
        recipes = self._recipes(evals.recipes) if evals else ()
        of_store = self.table(StoreTable, "store", values.get("store", {}))
        store, kept = self._store(of_store or StoreTable())
        self.has_store_url = kept is not None
        review = self.table(Review, "review", values.get("review", {}))
        verdicts = self.local_file("review.verdicts", (review or Review()).verdicts)
        corpus = self.table(Corpus, "corpus", values.get("corpus", {}))
        self.sources = corpus.sources if corpus else ()
        sources = source_names(values.get("corpus"))
        self.named_tables("corpus.source", sources, what="source")
        report = self.table(Report, "report", values.get("report", {}))
        policy = None
        with collecting(self.problems, ConfigError):
            section = {"policy": values.get("policy", {})}
            policy = policy_from(section, self.path, folder=self.folder)
        detectors = policy.detectors if policy else names()
        nominating = [name for name in feature_entries("nominations") if name in values]
        self.mixtures, problems = read_mixtures(
            self._with_tokenizer_files(values.get("mixture")),
            where=str(self.path),
            sources=sources,
            detectors=[*detectors, *nominating],
            leak=policy.leak if policy else Policy.leak,
        )
        self.problems += problems
        self._check_sources_of_mixtures()
        self.names = {
            "sources": sources,
            "products": [mixture.name for mixture in self.mixtures],
            "detectors": [*detectors, *feature_entries("nominations")],
        }
        tables = {
            name: table
            for name, model in of_features.items()
            if name in values and (table := resolve_name(model).read(self, name, values[name]))
        }
        sketch = self.table(Sketch, "sketch", values["sketch"]) if "sketch" in values else None
        if self.problems or not (evals and weights and corpus and policy and review and report):
            raise ConfigError(self.problems)
        return Config(
            path=self.path.resolve(),
            evals=evals,
            term_weights=weights,
            corpus=corpus,
            policy=policy,
            mixtures=self.mixtures,
            sketch=sketch,
            review=review,
            report=report,
            tables=tables,
            storage=storage,
            recipes=recipes,
            verdicts=verdicts,
            store=store,
            kept=kept,
        )

    def _use_options(self, storage: object) -> Mapping[str, Mapping[str, Any]]:
        """Set and return the options of file systems, before recipes are searched for on them."""
        before = len(self.problems)
        options = self.table(dict[str, dict[str, Any]], "storage", storage)
        for where in _secrets(options, "storage"):
            remedy = "set it as an environment variable that the file system reads"
            self.wrong(where, "a key that looks like a secret", "no secrets in a file", remedy)
        if options and len(self.problems) == before:
            use_options(options)
        return options or {}

    def _store(self, section: StoreTable) -> tuple[Path, RemotePath | None]:
        work = section.work or _STORE
        if is_url(work):
            self.wrong("store.work", work, "a local folder")
        kept = parse_path(section.path or work, base=self.folder)
        is_remote = isinstance(kept, RemotePath)
        folder = self.folder / work if is_remote else kept
        if section.work and not is_remote:
            self.wrong("store.work", work, "no such key, because the store is a local folder")
        if folder.exists() and not folder.is_dir():
            where = "store.work" if is_remote else "store.path"
            self.wrong(where, f"the file {folder}", "a folder, or a path that does not exist")
        return folder, kept if isinstance(kept, RemotePath) else None

    def _recipes(self, patterns: tuple[str, ...]) -> tuple[Path, ...]:
        """Return the recipe files in the given order, those of a glob by name, each once."""
        recipes: list[Path] = []
        for pattern in patterns:
            files = [parse_path(pattern, base=self.folder)]
            if glob.has_magic(pattern):
                path = parse_path(pattern, base=Path(glob.escape(str(self.folder))))
                if isinstance(path, RemotePath):
                    files = [file for file, _ in expand_glob(str(path))]
                else:
                    files = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - takes whole patterns
            if not files:
                self.wrong("evals.recipes", repr(pattern), "a pattern that matches a file")
            recipes += files
        return tuple(dict.fromkeys(recipes))

    def _with_tokenizer_files(self, tables: object) -> object:
        """Return [[mixture]] tables with tokenizer files relative to the folder of decon.toml."""
        if not isinstance(tables, list):
            return tables
        tables = [*tables]
        for number, table in enumerate(tables):
            name = table.get("tokenizer") if isinstance(table, dict) else None
            if isinstance(name, str) and name.endswith(TOKENIZER_FILE):
                path = self.folder / name
                if not path.is_file():
                    where = f"mixture[{number}].tokenizer"
                    self.wrong(where, f"no file {path}", "a tokenizer.json")
                tables[number] = {**table, "tokenizer": str(path)}
        return tables

    def _check_sources_of_mixtures(self) -> None:
        """Report sources whose documents cannot be written as a mixture needs it."""
        for mixture in self.mixtures:
            where = f"mixture {mixture.name!r}: write"
            for source in self.sources:
                if not mixture.has_source(source.name):
                    continue
                if mixture.write == "attributes" and not source.id:
                    found = f'"attributes" with source {source.name!r}, which has no `id`'
                    expected = (
                        "the field with the document id, by which Dolma's mixer finds attributes"
                    )
                    remedy = "name it as `id` of the source, or select other sources with `sources`"
                    self.wrong(where, found, expected, remedy)
                if mixture.write == "mask" and source.roles:
                    found = f'"mask" with source {source.name!r}, which scans only some roles'
                    expected = "sources whose turns are all scanned"
                    remedy = "select other sources with `sources`, or remove `roles` from this one"
                    self.wrong(where, found, expected, remedy)


def _secrets(value: object, where: str) -> Iterator[str]:
    """Yield the places of keys with names of secrets, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if _SECRET.search(key):
                yield f"{where}.{key}"
            else:
                yield from _secrets(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _secrets(inner, f"{where}[{number}]")


# Policies in separate files -----------------------------------------------------------------------


def load_policy(path: Path, *, like: Policy | None = None) -> Policy:
    """Load a policy from a TOML file: its keys at the top level, or in a table `policy`.

    Settings that are not in the file are taken from `like`, or from the defaults if it is None.
    """
    return policy_from(read_policy(path), path, like=like)


def read_policy(path: Path) -> dict[str, Any]:
    """Read a TOML file. Call it once per path: a pipe is empty the second time."""
    return read_toml(path, "a policy in TOML")


def policy_from(
    values: Mapping[str, Any], path: Path, *, folder: Path | None = None, like: Policy | None = None
) -> Policy:
    """Make a policy from the values of a TOML file.

    Settings that are not among the values are taken from `like`, or from the defaults.
    `folder`: that of the path of a tokenizer, by default the folder of the file.
    """
    section = values.get("policy", values)
    if not isinstance(section, dict):
        raise ConfigError(Problem(f"{path}: policy", repr(section), "a table"))
    tokenizer = section.get("tokenizer_str")
    if isinstance(tokenizer, str) and tokenizer.endswith(".json"):
        section = {**section, "tokenizer_str": str((folder or path.parent) / tokenizer)}
    base = asdict(like) if like else {}
    if isinstance(section.get("benchmark"), dict):
        section = {**section, "benchmark": {**base.get("benchmark", {}), **section["benchmark"]}}
    return Policy.from_mapping({**base, **with_preset(section, where=str(path))}, where=str(path))
