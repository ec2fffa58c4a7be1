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

    [store]
    path = ".decon"

Relative paths start at the folder of the file.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decon_core.errors import ConfigError, DeconError, Problem
from decon_core.names import check_names
from decon_core.policy import RULES, Policy
from decon_core.variants import Mixture, read_mixtures

_SECTIONS = {
    "evals": {"recipes", "benchmarks", "required", "least_indexable_share"},
    "idf": {"snapshot"},
    "corpus": {"pack_shards", "source"},
    "policy": None,
    "mixture": None,
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


class _Reader:
    """Takes a parsed file apart and collects what is wrong on the way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._problems: list[Problem] = []

    def config(self, values: Mapping[str, Any]) -> Config:
        self._unknown("", values, _SECTIONS)
        sections: dict[str, Mapping[str, Any]] = {}
        for name, keys in _SECTIONS.items():
            if name == "mixture":  # a list of tables
                continue
            section = values.get(name, {})
            if not isinstance(section, dict):
                self._wrong(name, section, "a table")
                section = {}
            if keys is not None:
                self._unknown(name, section, keys)
            sections[name] = section
        evals, corpus = sections["evals"], sections["corpus"]
        recipes = self._strings("evals.recipes", evals.get("recipes"), required=True)
        benchmarks = self._strings("evals.benchmarks", evals.get("benchmarks"))
        required = self._strings("evals.required", evals.get("required")) or ()
        share = evals.get("least_indexable_share", 0.5)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            self._wrong("evals.least_indexable_share", share, "a number from 0 to 1")
        snapshot = self._strings("idf.snapshot", sections["idf"].get("snapshot"))
        pack_shards = corpus.get("pack_shards", 64)
        if not isinstance(pack_shards, int) or isinstance(pack_shards, bool) or pack_shards < 1:
            self._wrong("corpus.pack_shards", pack_shards, "a whole number of 1 or more")
        store = sections["store"].get("path", ".decon")
        if not isinstance(store, str):
            self._wrong("store.path", store, "a path")
        sources = self._sources(corpus.get("source", []))
        policy = self._policy(sections["policy"])
        mixtures, problems = read_mixtures(
            values.get("mixture"),
            where=str(self._path),
            sources=[source.name for source in sources],
            rules=policy.detectors if policy else RULES,
        )
        self._problems += problems
        if self._problems or policy is None:
            raise ConfigError(self._problems)
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
            store=self._folder / store,
        )

    def _policy(self, section: Mapping[str, Any]) -> Policy | None:
        tokenizer = section.get("tokenizer_str")
        if isinstance(tokenizer, str) and tokenizer.endswith(".json"):
            section = {**section, "tokenizer_str": str(self._folder / tokenizer)}
        try:
            return Policy.from_mapping(section, where=f"{self._path}: policy")
        except ConfigError as error:
            for problem in error.problems:
                place = problem.where.removeprefix(f"{self._path}: ")
                self._problems.append(replace(problem, where=f"{self._path}: {place}"))
            return None

    def _sources(self, entries: object) -> tuple[Source, ...]:
        if not isinstance(entries, list) or not entries:
            self._wrong("corpus.source", entries, "at least one [[corpus.source]]")
            return ()
        sources = [
            source
            for number, entry in enumerate(entries)
            if (source := self._source(f"corpus.source[{number}]", entry))
        ]
        names = [source.name for source in sources]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self._wrong("corpus.source", f"{name!r} more than once", "a name of its own for each")
        try:
            check_names(names, what=f"{self._path}: source")
        except DeconError as error:
            self._problems.extend(error.problems)
        return tuple(sources)

    def _source(self, where: str, entry: object) -> Source | None:
        before = len(self._problems)
        if not isinstance(entry, dict):
            self._wrong(where, entry, "a table")
            return None
        self._unknown(where, entry, _SOURCE_KEYS)
        for key in ("name", "path"):
            if not isinstance(entry.get(key), str):
                self._wrong(f"{where}.{key}", entry.get(key), "a text")
        for key in ("messages", "id"):
            if not isinstance(entry.get(key, ""), str):
                self._wrong(f"{where}.{key}", entry[key], "the name of a field")
        if isinstance(entry.get("text"), list):
            self._strings(f"{where}.text", entry["text"])
        elif not isinstance(entry.get("text", ""), str):
            self._wrong(f"{where}.text", entry["text"], "the name of a field, or a list of them")
        if ("text" in entry) == ("messages" in entry):
            found = "both" if "text" in entry else "neither"
            self._wrong(where, found, "either 'text' or 'messages': the field with the content")
        if "roles" in entry:
            self._strings(f"{where}.roles", entry["roles"])
            if "messages" not in entry:
                self._wrong(f"{where}.roles", "no 'messages'", "the field whose turns have roles")
        if len(self._problems) > before:
            return None
        return Source(**entry)

    def _strings(
        self, where: str, value: object, *, required: bool = False
    ) -> tuple[str, ...] | None:
        if value is None and not required:
            return None
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not is_list or not value:
            self._wrong(where, value, "a list of one or more names in quotes")
            return None
        names = tuple(value) if isinstance(value, list) else ()
        for name in sorted({name for name in names if names.count(name) > 1}):
            self._wrong(where, f"{name!r} more than once", "each name once")
        return names

    def _unknown(self, where: str, found: Iterable[str], known: Iterable[str]) -> None:
        for key in sorted(set(found) - set(known)):
            close = difflib.get_close_matches(key, sorted(known), n=1)
            remedy = f"did you mean {close[0]!r}?" if close else ""
            self._wrong(where or "top level", f"unknown key {key!r}", "a known key", remedy)

    def _wrong(self, where: str, found: object, expected: str, remedy: str = "") -> None:
        text = found if isinstance(found, str) else "nothing" if found is None else repr(found)
        self._problems.append(Problem(f"{self._path}: {where}", text, expected, remedy))
