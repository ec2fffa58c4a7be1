"""decon.toml: which benchmarks, which corpus, which policy, and where the products go.

    [evals]
    recipes = ["evals.yaml"]            # one or more recipe files
    benchmarks = ["gsm8k", "mmlu"]      # optional: only these
    required = ["gsm8k"]                # optional: of these every chosen rule must see enough items
    least_indexable_share = 0.5         # what is enough; of all others a smaller share is a warning

    [idf]
    snapshot = ["gsm8k", "mmlu"]        # optional: whose frequencies are frozen; default: all

    [corpus]
    pack_shards = 64                    # shards of one source per pack

    [[corpus.source]]
    name = "web"
    path = "corpus/web/**/*.jsonl.gz"   # a glob
    text = "text"                       # or several: ["prompt", "chosen", "rejected"]
    id = "id"                           # optional

    [[corpus.source]]
    name = "chat"
    path = "corpus/chat/*.parquet"
    messages = "messages"               # instead of text: a list of turns
    roles = ["user", "assistant"]       # optional: only the turns of these

    [policy]
    contamination_score_threshold = 0.8

    [[mixture]]                         # optional, and as many as are wanted: see variants.py
    name = "decontaminated"

    [[blend]]                           # optional: see blends.py
    name = "stream"
    of = "decontaminated"

    [review]                            # optional: what people said of findings (docs/review.md)
    verdicts = "verdicts.jsonl"         # the file; nobody has to have written any
    clears = ["template", "common source"]    # what they say of a match that is to be no leak

    [report]
    snippets = "on"                     # or "off": no text of the corpus in database and pages
    context = 300                       # characters shown before and behind what was found
    most_pairs = 50_000                 # pairs of item and passage whose texts are kept
    drift = 0.05                        # by so much a leak rate may differ from the report before

    [store]
    path = ".decon"

Relative paths start at the folder of the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decon_core.blends import Blend, read_blends
from decon_core.errors import ConfigError, Problem
from decon_core.policy import RULES, Policy
from decon_core.settings_reader import SettingsReader
from decon_core.variants import Mixture, read_mixtures
from decon_core.verdicts import CLEARING, DEFAULT_FILE

_SECTIONS = {
    "evals": {"recipes", "benchmarks", "required", "least_indexable_share"},
    "idf": {"snapshot"},
    "corpus": {"pack_shards", "source"},
    "policy": None,
    "mixture": None,
    "blend": None,
    "review": {"verdicts", "clears"},
    "report": {"snippets", "context", "most_pairs", "drift"},
    "store": {"path"},
}
_SOURCE_KEYS = {"name", "path", "text", "messages", "roles", "id"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Shards of one kind, and where in a row the text is. Fields may be nested: `metadata.text`."""

    name: str
    path: str
    text: str | tuple[str, ...] | None = None  # several fields: each a text or a list of messages
    messages: str | None = None
    roles: tuple[str, ...] = ()  # of the messages that are read; none named: all
    id: str | None = None

    def __post_init__(self) -> None:
        # JSON and TOML have lists only; a source that went through them is the same source.
        if self.text is not None and not isinstance(self.text, str):
            object.__setattr__(self, "text", tuple(self.text))
        object.__setattr__(self, "roles", tuple(self.roles))

    @property
    def is_one_text(self) -> bool:
        """Whether a document is one text, or one conversation, rather than several fields."""
        return self.messages is not None or isinstance(self.text, str)


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What of the corpus may stand in a report."""

    snippets: bool = True
    context: int = 300  # characters before and behind what was found
    most_pairs: int = 50_000  # whose texts are kept: leaks first, the best first


@dataclass(frozen=True, kw_only=True)
class Config:
    """A validated decon.toml."""

    folder: Path
    recipes: tuple[Path, ...]
    benchmarks: tuple[str, ...] | None
    required: tuple[str, ...]
    least_indexable_share: float  # of a benchmark's items, for each chosen rule
    snapshot: tuple[str, ...] | None
    sources: tuple[Source, ...]
    pack_shards: int
    policy: Policy
    mixtures: tuple[Mixture, ...]
    blends: tuple[Blend, ...]
    verdicts: Path
    clears: tuple[str, ...]  # verdicts that take a match out of the leaks
    showing: Showing
    drift: float  # of a benchmark's leak rate, from one report to the next
    store: Path


def load_config(path: Path) -> Config:
    """Read and check a decon.toml; everything that is wrong is said in one error."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            Problem(str(path), "no such file", "a decon.toml", "the README shows a short one")
        ) from None
    except OSError as error:
        found = error.strerror or str(error)
        raise ConfigError(Problem(str(path), found, "a decon.toml that can be read")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(str(path), str(error), "valid TOML in UTF-8")) from None
    return _Reader(path).config(values)


class _Reader(SettingsReader):
    """Takes a parsed file apart and collects what is wrong on the way."""

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
        recipes = self.names("evals.recipes", evals.get("recipes"), required=True)
        benchmarks = self.names("evals.benchmarks", evals.get("benchmarks"))
        required = self.names("evals.required", evals.get("required")) or ()
        share = evals.get("least_indexable_share", 0.5)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            self.wrong("evals.least_indexable_share", share, "a number from 0 to 1")
        snapshot = self.names("idf.snapshot", sections["idf"].get("snapshot"))
        pack_shards = corpus.get("pack_shards", 64)
        if not isinstance(pack_shards, int) or isinstance(pack_shards, bool) or pack_shards < 1:
            self.wrong("corpus.pack_shards", pack_shards, "a whole number of 1 or more")
        store = sections["store"].get("path", ".decon")
        if not isinstance(store, str):
            self.wrong("store.path", store, "a path")
        verdicts = sections["review"].get("verdicts", DEFAULT_FILE)
        if not isinstance(verdicts, str) or not verdicts:
            self.wrong("review.verdicts", verdicts, "a path")
        clears = self._clears(sections["review"].get("clears", [*CLEARING]))
        sources = self._sources(corpus.get("source", []))
        showing = self._showing(sections["report"])
        drift = sections["report"].get("drift", 0.05)
        if isinstance(drift, bool) or not isinstance(drift, int | float) or not 0 <= drift <= 1:
            self.wrong("report.drift", drift, "a number from 0 to 1")
        policy = self._policy(sections["policy"])
        mixtures, problems = read_mixtures(
            values.get("mixture"),
            where=str(self._path),
            sources=[source.name for source in sources],
            rules=policy.detectors if policy else RULES,
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
            folder=self._folder,
            recipes=tuple(self._folder / recipe for recipe in recipes or ()),
            benchmarks=benchmarks,
            required=required,
            least_indexable_share=share,
            snapshot=snapshot,
            sources=sources,
            pack_shards=pack_shards,
            policy=policy,
            mixtures=mixtures,
            blends=blends,
            verdicts=self._folder / verdicts,
            clears=clears,
            showing=showing,
            drift=drift,
            store=self._folder / store,
        )

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
                place = problem.where.removeprefix(f"{self._path}: ")
                self.problems.append(replace(problem, where=f"{self._path}: {place}"))
            return None

    def _clears(self, value: object) -> tuple[str, ...]:
        """None is a choice, too: then people only take notes."""
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
        self.unknown(where, entry, _SOURCE_KEYS)
        for key in ("name", "path"):
            if not isinstance(entry.get(key), str):
                self.wrong(f"{where}.{key}", entry.get(key), "a text")
        for key in ("messages", "id"):
            if not isinstance(entry.get(key, ""), str):
                self.wrong(f"{where}.{key}", entry[key], "the name of a field")
        if isinstance(entry.get("text"), list):
            self.names(f"{where}.text", entry["text"])
        elif not isinstance(entry.get("text", ""), str):
            self.wrong(f"{where}.text", entry["text"], "the name of a field, or a list of them")
        if ("text" in entry) == ("messages" in entry):
            found = "both" if "text" in entry else "neither"
            self.wrong(where, found, "either 'text' or 'messages': the field with the content")
        if "roles" in entry:
            self.names(f"{where}.roles", entry["roles"])
            if "messages" not in entry:
                self.wrong(f"{where}.roles", "no 'messages'", "the field whose turns have roles")
        if len(self.problems) > before:
            return None
        return Source(**entry)
