"""Load and validate decon.toml: benchmarks, corpus, policy, mixtures, report and store.

    [evals]
    recipes = ["evals/*.yaml"]          # one or more recipe files, or globs
    benchmarks = ["gsm8k", "mmlu"]      # optional: only these
    required = ["gsm8k"]                # optional: fail if a detector sees too few of their items
    least_indexable_share = 0.5         # too few: below this share; for other benchmarks a warning

    [idf]
    snapshot = ["gsm8k", "mmlu"]        # optional: benchmarks of the idf snapshot; default: all

    [corpus]
    pack_shards = 64                    # maximum number of shards of a source in a pack
    pack_bytes = "20 GB"                # optional: maximum size of their files

    [[corpus.source]]
    name = "web"
    path = "corpus/web/**/*.jsonl.gz"   # a glob
    text = "text"                       # or several: ["prompt", "chosen", "rejected"]
    id = "id"                           # optional
    pack_shards = 8                     # optional, as is pack_bytes: for this source

    [[corpus.source]]
    name = "chat"
    path = "corpus/chat/*.parquet"
    messages = "messages"               # instead of text: a list of turns
    roles = ["user", "assistant"]       # optional: only turns with these roles

    [policy]
    contamination_score_threshold = 0.8

    [[mixture]]                         # optional, any number: see mixtures.py
    name = "decontaminated"

    [[blend]]                           # optional: see blends.py
    name = "stream"
    of = "decontaminated"

    [review]                            # optional: verdicts on findings (docs/review.md)
    verdicts = "verdicts.jsonl"         # the file; it need not exist
    clears = ["template", "common source"]    # verdicts that make a match no leak

    [report]
    snippets = "on"                     # or "off": no text of the corpus in database and pages
    context = 300                       # characters shown before and after a match
    most_pairs = 50_000                 # pairs of item and passage whose texts are kept
    drift = 0.05                        # accepted change of a leak rate since the previous report

    [store]
    path = ".decon"                     # or a URL: s3://bucket/products
    work = ".decon"                     # optional, with a URL: the local folder

    [storage.s3]                        # optional: options of a file system, but no secrets
    endpoint_url = "http://127.0.0.1:9000"

Sources, recipes and benchmark files may also be URLs (docs/configuration.md). Relative paths are
relative to the folder of the file.
"""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decon_core.config.blends import Blend, read_blends
from decon_core.config.detectors import names
from decon_core.config.mixtures import Mixture, read_mixtures
from decon_core.config.policy import Policy
from decon_core.config.settings import SettingsReader
from decon_core.config.verdicts import CLEARING, DEFAULT_FILE
from decon_core.errors import ConfigError, Problem
from decon_core.storage.paths import RemotePath, expand_glob, is_url, parse_path, use_options

CONFIG_VARIABLE = "DECON_CONFIG"  # environment variable with the path, for Dagster's processes
DEFAULT_CONFIG = "decon.toml"

_SECTIONS = {
    "evals": {"recipes", "benchmarks", "required", "least_indexable_share"},
    "idf": {"snapshot"},
    "corpus": {"pack_shards", "pack_bytes", "source"},
    "policy": None,
    "mixture": None,
    "blend": None,
    "review": {"verdicts", "clears"},
    "report": {"snippets", "context", "most_pairs", "drift"},
    "store": {"path", "work"},
    "storage": None,
}
_SOURCE_KEYS = {"name", "path", "text", "messages", "roles", "id"}
_PACKING_KEYS = {"pack_shards", "pack_bytes"}
_DEFAULT_PACK_SHARDS = 64
_STORE = ".decon"
# Names of secret options.
_SECRET = re.compile(
    r"secret|token|passw|^key$|access_key|account_key|credential|sas", re.IGNORECASE
)

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kMGT]?)(i?)B")
_POWERS = ("", "k", "M", "G", "T")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A glob of shards, and the fields with their text. Fields may be nested: `metadata.text`."""

    name: str
    path: str
    text: str | tuple[str, ...] | None = None  # several fields: each a text or a list of messages
    messages: str | None = None
    roles: tuple[str, ...] = ()  # of the messages to read; empty: all
    id: str | None = None

    def __post_init__(self) -> None:
        # JSON and TOML have only lists; a source read from them must equal the original.
        if self.text is not None and not isinstance(self.text, str):
            object.__setattr__(self, "text", tuple(self.text))
        object.__setattr__(self, "roles", tuple(self.roles))

    @property
    def is_one_text(self) -> bool:
        """Whether a document is one text or one conversation, not several fields."""
        return self.messages is not None or isinstance(self.text, str)


@dataclass(frozen=True, kw_only=True)
class Packing:
    """The limits of a new pack. Existing packs are not changed."""

    shards: int | None = None
    n_bytes: int | None = None  # size of the files

    def is_full(self, n_shards: int, n_bytes: int, n_more: int) -> bool:
        """Return whether a shard of `n_more` bytes would exceed a limit of the pack."""
        too_many = self.shards is not None and n_shards >= self.shards
        return too_many or (self.n_bytes is not None and n_bytes + n_more > self.n_bytes)


@dataclass(frozen=True, kw_only=True)
class Showing:
    """How much text of the corpus a report may contain."""

    snippets: bool = True
    context: int = 300  # characters before and after a match
    most_pairs: int = 50_000  # pairs with texts: leaks first, the highest scores first


@dataclass(frozen=True, kw_only=True)
class Config:
    """A validated decon.toml."""

    path: Path  # of the file itself
    folder: Path
    recipes: tuple[Path, ...]
    benchmarks: tuple[str, ...] | None
    required: tuple[str, ...]
    least_indexable_share: float  # of a benchmark's items, for each chosen rule
    snapshot: tuple[str, ...] | None
    sources: tuple[Source, ...]
    packing: Mapping[str, Packing]  # by source
    policy: Policy
    mixtures: tuple[Mixture, ...]
    blends: tuple[Blend, ...]
    verdicts: Path
    clears: tuple[str, ...]  # verdicts that make a match no leak
    showing: Showing
    drift: float  # accepted change of a benchmark's leak rate between reports
    store: Path  # the local folder
    kept: RemotePath | None  # its remote copy, if there is one
    storage: tuple[str, ...]  # schemes with options


def load_config(path: Path) -> Config:
    """Read and validate a decon.toml. Raises one `ConfigError` with all problems."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            Problem(str(path), "no such file", "a decon.toml", "the README has a short example")
        ) from None
    except OSError as error:
        found = error.strerror or str(error)
        raise ConfigError(Problem(str(path), found, "a readable decon.toml")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(str(path), str(error), "valid TOML in UTF-8")) from None
    return config_from(values, path)


def config_from(values: Mapping[str, Any], path: Path) -> Config:
    """Validate the parsed values of a decon.toml at this path."""
    return _Reader(path).config(values)


class _Reader(SettingsReader):
    """Builds a `Config` from a parsed file and collects the problems."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path
        self._folder = path.resolve().parent

    def config(self, values: Mapping[str, Any]) -> Config:
        self.unknown("", values, _SECTIONS)
        sections: dict[str, Mapping[str, Any]] = {}
        for name, keys in _SECTIONS.items():
            if name in ("mixture", "blend"):  # lists of tables
                continue
            section = values.get(name, {})
            if not isinstance(section, dict):
                self.wrong(name, section, "a table")
                section = {}
            if keys is not None:
                self.unknown(name, section, keys)
            sections[name] = section
        evals, corpus = sections["evals"], sections["corpus"]
        recipes = self._recipes(evals.get("recipes"))
        benchmarks = self.names("evals.benchmarks", evals.get("benchmarks"))
        required = self.names("evals.required", evals.get("required")) or ()
        share = evals.get("least_indexable_share", 0.5)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            self.wrong("evals.least_indexable_share", share, "a number from 0 to 1")
        snapshot = self.names("idf.snapshot", sections["idf"].get("snapshot"))
        self._use_options(sections["storage"])
        store, kept = self._store(sections["store"])
        verdicts = self._verdicts(sections["review"].get("verdicts", DEFAULT_FILE))
        clears = self._clears(sections["review"].get("clears", [*CLEARING]))
        sources = self._sources(corpus.get("source", []))
        packing = self._packing(corpus)
        showing = self._showing(sections["report"])
        drift = sections["report"].get("drift", 0.05)
        if isinstance(drift, bool) or not isinstance(drift, int | float) or not 0 <= drift <= 1:
            self.wrong("report.drift", drift, "a number from 0 to 1")
        policy = self._policy(sections["policy"])
        mixtures, problems = read_mixtures(
            values.get("mixture"),
            where=str(self._path),
            sources=[source.name for source in sources],
            detectors=policy.detectors if policy else names(),
        )
        self.problems += problems
        blends, problems = read_blends(
            values.get("blend"),
            where=str(self._path),
            mixtures=mixtures,
            sources={source.name: source.is_one_text for source in sources},
        )
        self.problems += problems
        if self.problems or policy is None:
            raise ConfigError(self.problems)
        return Config(
            path=self._path.resolve(),
            folder=self._folder,
            recipes=recipes,
            benchmarks=benchmarks,
            required=required,
            least_indexable_share=share,
            snapshot=snapshot,
            sources=sources,
            packing=packing,
            policy=policy,
            mixtures=mixtures,
            blends=blends,
            verdicts=verdicts,
            clears=clears,
            showing=showing,
            drift=drift,
            store=store,
            kept=kept,
            storage=tuple(sections["storage"]),
        )

    def _use_options(self, storage: Mapping[str, Any]) -> None:
        """Set the options of file systems, before recipes are searched for on them."""
        before = len(self.problems)
        for scheme, options in storage.items():
            if not isinstance(options, dict):
                self.wrong(f"storage.{scheme}", options, "a table of options")
                continue
            for where in _secrets(options, f"storage.{scheme}"):
                remedy = "set it in the environment, where the file system reads it"
                self.wrong(where, "a secret, by its name", "no secrets in a file", remedy)
        if len(self.problems) == before:
            use_options(storage)

    def _store(self, section: Mapping[str, Any]) -> tuple[Path, RemotePath | None]:
        for key in sorted(section.keys() & {"path", "work"}):
            if not _is_name(section[key]):
                self.wrong(f"store.{key}", repr(section[key]), "a path")
                return self._folder, None
        work = section.get("work", _STORE)
        if is_url(work):
            self.wrong("store.work", work, "a local folder")
        kept = parse_path(section.get("path", work), base=self._folder)
        if isinstance(kept, RemotePath):
            self._require_folder("store.work", self._folder / work)
            return self._folder / work, kept
        if "work" in section:
            self.wrong("store.work", work, "no such key, as the store itself is a local folder")
        self._require_folder("store.path", kept)
        return kept, None

    def _require_folder(self, where: str, path: Path) -> None:
        if path.exists() and not path.is_dir():
            self.wrong(where, f"the file {path}", "a folder, which need not exist")

    def _verdicts(self, value: object) -> Path:
        expected = "a local file, which need not exist"
        if not isinstance(value, str) or not value or is_url(value):
            self.wrong("review.verdicts", repr(value), expected)
            return self._folder
        path = self._folder / value
        if path.is_dir():
            self.wrong("review.verdicts", f"the folder {path}", expected)
        return path

    def _recipes(self, value: object) -> tuple[Path, ...]:
        """Return the recipe files in the given order, those of a glob by name, each once."""
        recipes: list[Path] = []
        for pattern in self.names("evals.recipes", value, required=True) or ():
            files = [parse_path(pattern, base=self._folder)]
            if glob.has_magic(pattern):
                files = self._matching(pattern)
            if not files:
                self.wrong("evals.recipes", repr(pattern), "a pattern that matches a file")
            recipes += files
        return tuple(dict.fromkeys(recipes))

    def _matching(self, pattern: str) -> list[Path]:
        path = parse_path(pattern, base=Path(glob.escape(str(self._folder))))
        if isinstance(path, RemotePath):
            return [file for file, _ in expand_glob(str(path))]
        return sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - takes whole patterns

    def _packing(self, corpus: Mapping[str, Any]) -> Mapping[str, Packing]:
        """Return the limits by source: its own, or else those of [corpus]."""
        general = self._limits("corpus", corpus)
        packing = {}
        entries = corpus.get("source", [])
        for number, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                limits = general | self._limits(f"corpus.source[{number}]", entry)
                packing[entry["name"]] = Packing(**limits or {"shards": _DEFAULT_PACK_SHARDS})
        return packing

    def _limits(self, where: str, section: Mapping[str, Any]) -> dict[str, int]:
        limits: dict[str, int] = {}
        if "pack_shards" in section:
            shards = section["pack_shards"]
            if not isinstance(shards, int) or isinstance(shards, bool) or shards < 1:
                self.wrong(f"{where}.pack_shards", shards, "a whole number of 1 or more")
            else:
                limits["shards"] = shards
        if "pack_bytes" in section:
            n_bytes = bytes_of(section["pack_bytes"])
            if n_bytes is None:
                expected = "a whole number of 1 or more, or a size like '20 GB'"
                self.wrong(f"{where}.pack_bytes", section["pack_bytes"], expected)
            else:
                limits["n_bytes"] = n_bytes
        return limits

    def _showing(self, section: Mapping[str, Any]) -> Showing:
        snippets = section.get("snippets", "on")
        if snippets not in ("on", "off"):
            self.wrong("report.snippets", snippets, "'on' or 'off'")
        numbers = {name: section[name] for name in ("context", "most_pairs") if name in section}
        for name, value in numbers.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                self.wrong(f"report.{name}", value, "a whole number of 0 or more")
        return Showing(snippets=snippets == "on", **numbers)

    def _policy(self, section: Mapping[str, Any]) -> Policy | None:
        tokenizer = section.get("tokenizer_str")
        if isinstance(tokenizer, str) and tokenizer.endswith(".json"):
            section = {**section, "tokenizer_str": str(self._folder / tokenizer)}
        try:
            return Policy.from_mapping(section, where=f"{self._path}: policy")
        except ConfigError as error:
            for problem in error.problems:
                where = problem.where.removeprefix(f"{self._path}: ")
                self.problems.append(replace(problem, where=f"{self._path}: {where}"))
            return None

    def _clears(self, value: object) -> tuple[str, ...]:
        """An empty list is allowed: verdicts are then only notes."""
        if value == []:
            return ()
        return self.named_choices("review.clears", value, CLEARING)

    def _sources(self, entries: object) -> tuple[Source, ...]:
        if not isinstance(entries, list) or not entries:
            self.wrong("corpus.source", entries, "at least one [[corpus.source]]")
            return ()
        sources = [
            source
            for number, entry in enumerate(entries)
            if (source := self._source(f"corpus.source[{number}]", entry))
        ]
        self.named_tables("corpus.source", [source.name for source in sources], what="source")
        return tuple(sources)

    def _source(self, where: str, entry: object) -> Source | None:
        before = len(self.problems)
        if not isinstance(entry, dict):
            self.wrong(where, entry, "a table")
            return None
        self.unknown(where, entry, _SOURCE_KEYS | _PACKING_KEYS)
        for key in ("name", "path"):
            if not isinstance(entry.get(key), str):
                self.wrong(f"{where}.{key}", entry.get(key), "a string")
        if entry.get("path") == "":
            self.wrong(f"{where}.path", "''", "a path or a pattern")
        for key in sorted(entry.keys() & {"messages", "id"}):
            if not _is_name(entry[key]):
                self.wrong(f"{where}.{key}", repr(entry[key]), "the name of a field")
        if isinstance(entry.get("text"), list):
            self.names(f"{where}.text", entry["text"])
        elif "text" in entry and not _is_name(entry["text"]):
            expected = "the name of a field, or a list of them"
            self.wrong(f"{where}.text", repr(entry["text"]), expected)
        if ("text" in entry) == ("messages" in entry):
            found = "both" if "text" in entry else "neither"
            self.wrong(where, found, "either 'text' or 'messages': the field with the content")
        if "roles" in entry:
            self.names(f"{where}.roles", entry["roles"])
            if "messages" not in entry:
                self.wrong(f"{where}.roles", "no 'messages'", "the field whose turns have roles")
        if len(self.problems) > before:
            return None
        return Source(**{key: entry[key] for key in entry if key in _SOURCE_KEYS})


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


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


def bytes_of(size: object) -> int | None:
    """Parse a number of bytes or a size such as "20 GB" or "1.5 GiB"; None if invalid."""
    if isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())):
        number, prefix, is_binary = match.groups()
        size = int(float(number) * (1024 if is_binary else 1000) ** _POWERS.index(prefix))
    is_count = isinstance(size, int) and not isinstance(size, bool) and size >= 1
    return size if is_count and isinstance(size, int) else None
