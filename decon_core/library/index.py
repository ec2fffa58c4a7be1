"""An index of benchmarks, and the comparison of texts in memory with it."""

from __future__ import annotations

import logging
import os
import shutil
import warnings
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decon_core.benchmarks.fields import describe
from decon_core.config.layouts import covers_any
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch, Block
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.string_kinds import kind_at
from decon_core.errors import ConfigError, InputError, Problem
from decon_core.execution.jobs import in_threads, wanted_workers
from decon_core.library.evals import Evals, records_of
from decon_core.library.findings import FINDINGS, Finding, Findings, findings_in
from decon_core.library.stored_index import StoredIndex, open_folder, write_folder
from decon_core.library.texts import (
    Paths,
    TextOrRow,
    Texts,
    blocks_of,
    is_conversation,
    paths_of,
)
from decon_core.scan.blocks import Scanner, compilation_notice
from decon_core.scan.matches import Columns
from decon_core.wording import counted

_BLOCKS_AT_ONCE = 4  # whose matches are decided together: a call takes as long as scanning 1 MB
_NO_SHARD = "memory"
_Folder = str | os.PathLike[str]


def build_index(
    evals: Evals,
    *,
    policy: Policy | Mapping[str, Any] | None = None,
    folder: _Folder | None = None,
    name: str = "evals",
    recipe: Mapping[str, Any] | None = None,
) -> Index:
    """Index benchmarks, so that texts can be compared with them.

    `evals`: a recipe file (.yaml); a file or folder of records; or rows, as a list of dictionaries
    or a table, with `question` and optionally `answer` and `passage`. Rows may name their
    `benchmark` and `split`; otherwise, they belong to the benchmark `name` and the split "test".
    `recipe`: for rows with other fields, the keys of a recipe that name these fields, such as
    `{"prompt": "problem", "answer": "solution"}` (docs/recipes.md).
    `policy`: settings as in `[policy]` of decon.toml; None: the defaults.
    `folder`: where the index is kept, for `open_index`. If the folder already contains the same
    index, that index is opened. None: a temporary folder, which is removed with the index.

    Warns if a detector cannot find some items, for example because they are too short. Raises
    `InputError` if no detector can find any.
    """
    chosen = _policy_of(policy) or Policy()
    tables = records_of(evals, name=name, recipe=recipe)
    stored = write_folder(None if folder is None else Path(folder), tables, chosen)
    index = Index(stored, is_temporary=folder is None)
    _warn_of_invisible(stored)
    return index


def open_index(folder: _Folder, *, policy: Policy | Mapping[str, Any] | None = None) -> Index:
    """Open an index that `build_index` wrote.

    `policy`: thresholds to use instead of those it was built with. Raises `StaleError` if the
    policy differs in a setting that affects what is found.
    """
    return Index(open_folder(Path(folder), _policy_of(policy)))


def _policy_of(policy: object) -> Policy | None:
    """Return the settings; raise `ConfigError` if they need a whole corpus."""
    if isinstance(policy, Mapping):
        policy = Policy.from_mapping(policy)
    if policy is not None and not isinstance(policy, Policy):
        expected = "a Policy, or a dictionary with its settings"
        raise InputError(Problem("policy", describe(policy), expected))
    if policy and policy.leave_out_common:
        remedy = "Scan the corpus: `decon-assets scan`."
        expected = "false, because how common an n-gram is depends on the whole corpus"
        raise ConfigError(Problem("policy.leave_out_common", "true", expected, remedy))
    return policy


def _warn_of_invisible(stored: StoredIndex) -> None:
    """Warn of items that no detector can find, and refuse an index of nothing else."""
    items = stored.visibility.group_by(["benchmark", "split", "instance_index"])
    seen = items.aggregate([("is_visible", "any"), ("reason", "min")])
    lost = seen.filter(pc.invert(seen["is_visible_any"]))
    if not lost.num_rows:
        return
    counts = pc.value_counts(lost["reason_min"]).to_pylist()
    reasons = "; ".join(f"{count['values']}: {count['counts']:,}" for count in counts)
    if lost.num_rows == seen.num_rows:
        found = f"none of {counted(stored.n_items, 'item')} checkable ({reasons})"
        expected = f"an item that a detector can find ({', '.join(stored.policy.detectors)})"
        remedy = "see docs/detectors.md for what each detector needs."
        raise InputError(Problem("evals", found, expected, remedy))
    warnings.warn(
        f"no detector can find {lost.num_rows:,} of {counted(stored.n_items, 'item')} "
        f"({reasons}). Checks say nothing about them; `invisible()` lists them.",
        stacklevel=3,
    )


class Index:
    """Benchmarks that texts are compared with; made by `build_index` or `open_index`.

    Several threads may use it. It can be pickled: another process then opens it again. A process
    that was forked after an index found matches cannot use any index, and gets an `InputError`.
    """

    def __init__(self, stored: StoredIndex, *, is_temporary: bool = False) -> None:
        self._stored = stored
        self._reader = stored.reader()  # reads no scan results: matches are given to it
        self._free: SimpleQueue[Scanner] = SimpleQueue()
        self._first, self._is_compiled = Lock(), False
        if is_temporary:
            weakref.finalize(self, _remove_own, self.folder.parent, os.getpid())

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[object, ...]]:
        # The fingerprint enters the caches of those who hash what they call, as `datasets` does.
        return _reopen, (self.folder, self.policy, self._stored.fingerprint)

    @property
    def folder(self) -> Path:
        """The folder of the index."""
        return self._stored.store.root

    @property
    def policy(self) -> Policy:
        """The settings that determine how texts are compared and which matches are leaks."""
        return self._stored.policy

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The names of the benchmarks."""
        return tuple(version.benchmark for version in self._stored.versions)

    @property
    def n_items(self) -> int:
        """The number of items in the benchmarks."""
        return self._stored.n_items

    def check(self, text: TextOrRow) -> Findings:
        """Compare one text, row (a dictionary) or conversation (a list of messages)."""
        given: object = text
        if not isinstance(given, str | Mapping) and not is_conversation(given):
            expected = "a string, a row (a dictionary) or a conversation (a list of messages)"
            remedy = "For several texts, call `check_all`."
            raise InputError(Problem("text", describe(given), expected, remedy))
        return self._check_blocks([*blocks_of([text])])[0]

    def check_all(
        self,
        texts: Texts,
        *,
        column: Paths = None,
        ignore: Paths = None,
        threads: int | None = None,
    ) -> Iterator[Findings]:
        """Compare texts or rows with the benchmarks, and yield the findings of each, in order.

        `texts`: an iterable of strings, rows (dictionaries) and conversations (lists of messages);
        an Arrow array or polars series of strings, of structs (rows) or of lists (conversations);
        or a table or a dataset of the Hugging Face library. Some 16 MB are read and compared at a
        time, so the data may be larger than memory. A null yields findings with `unreadable`. All
        strings of a row are read, as in a scan.
        `column`: read only these fields of the rows: a path such as "text" or
        "messages[].content", or several paths. Other text is listed in `unread`, not called clean.
        `ignore`: paths of text that may stay unread; "*": all.
        `threads`: number of threads; None: `$DECON_WORKERS`, or one per usable core.
        """
        n_threads = wanted_workers() if threads is None else threads
        if n_threads < 1:
            raise InputError(Problem("threads", repr(threads), "1 or more"))
        blocks = blocks_of(texts, column=column, ignore=ignore)
        groups = iter(lambda: [*islice(blocks, _BLOCKS_AT_ONCE)], [])
        check = partial(self._check_blocks, ignore=paths_of(ignore, "ignore"))
        if n_threads == 1:
            checked: Iterator[list[Findings]] = map(check, groups)
        else:
            checked = in_threads(check, groups, threads=n_threads)
        return (findings for group in checked for findings in group)

    def keep(self, text: TextOrRow) -> bool:
        """Return whether a clean mixture keeps a text: nothing leaked, no question without answer.

        Use it with functions like `datasets.filter`. For short texts, `keep_all` is much faster.
        """
        return self.check(text).is_kept

    def keep_all(
        self,
        texts: Texts,
        *,
        column: Paths = None,
        ignore: Paths = None,
        threads: int | None = None,
    ) -> list[bool]:
        """Return for each text or row whether a clean mixture keeps it.

        Raises `IncompleteError` at a null; with `unreadable="drop"` in the policy, a null is not
        kept. Also raises it at a row with unread text that `ignore` does not allow.
        """
        checked = self.check_all(texts, column=column, ignore=ignore, threads=threads)
        return [findings.is_kept for findings in checked]

    def table(
        self,
        texts: Texts,
        *,
        column: Paths = None,
        ignore: Paths = None,
        threads: int | None = None,
    ) -> pa.Table:
        """Return all findings in texts or rows as a table; `row` is the position of the text.

        Raises `IncompleteError` like `keep_all`; with `unreadable="drop"` in the policy, a null
        has no row.
        """
        checked = self.check_all(texts, column=column, ignore=ignore, threads=threads)
        # `is_leaked` raises for a null.
        tables = [findings.to_arrow() for findings in checked if findings.is_leaked or findings]
        return pa.concat_tables([FINDINGS.empty_table(), *tables])

    def record(self, finding: Finding) -> dict[str, Any]:
        """Return the benchmark record of a finding: question, answer, passage and labels."""
        records = self._stored.records(finding.benchmark)
        record: dict[str, Any] = records.slice(finding.record, 1).to_pylist()[0]
        return record

    def invisible(self) -> pa.Table:
        """Return the items that a detector cannot find in any text, with the reasons.

        Nothing is known about these items, so no text can be called clean of them.
        """
        return self._stored.invisible

    def __repr__(self) -> str:
        names = counted(len(self.benchmarks), "benchmark")
        detectors = ", ".join(self.policy.detectors)
        n_lost = Counter(self.invisible()["detector"].to_pylist())
        lost = [f"{counted(n, 'item')} that {name} cannot find" for name, n in n_lost.items()]
        items = counted(self.n_items, "item")
        return f"<Index: {names}, {items}; {'; '.join([detectors, *lost])}; in {self.folder}>"

    @contextmanager
    def _scanner(self) -> Iterator[Scanner]:
        """Lend a scanner to a thread; the first one compiles the kernels."""
        _require_own_threads()
        try:
            scanner = self._free.get_nowait()
        except Empty:
            scanner = self._stored.scanner()
        try:
            with self._first:  # threads wait: each would compile the same
                if not self._is_compiled:
                    # A program without logging shows warnings, and this takes half a minute.
                    with compilation_notice(logging.WARNING):
                        scanner.compile()
                    self._is_compiled = True
            yield scanner
        finally:
            self._free.put(scanner)

    def _check_blocks(
        self, blocks: Sequence[Block], ignore: tuple[str, ...] = ()
    ) -> list[Findings]:
        """Compare the texts of blocks with the benchmarks; return findings for each row."""
        checked: list[Findings] = []
        matches: list[Columns] = []
        texts: list[Callable[[int], Any]] = []  # reads a row again, by block
        with self._scanner() as scanner:
            for block in blocks:
                batch = block.read()
                scanned = scanner.scan_batch(batch, block)
                # Counts are of a corpus, which texts in memory are not.
                scanner.detectors.take_counts()
                matches += scanned.matches
                unreadable = {row.row: _why(row) for row in scanned.unreadable}
                invalid = {row.row for row in scanned.invalid}
                rows = range(block.place.row, block.place.row + block.place.n_rows)
                unread = _unread_of_rows(batch, rows, ignore)
                checked += [
                    Findings(
                        row, None, unreadable.get(row), row in invalid, unread.get(row, {}), self
                    )
                    for row in rows
                ]
                texts += [batch.reread]
            entries = self._entries(scanner, matches)
        if not entries.num_rows:
            return checked
        first_rows, at = [block.place.row for block in blocks], 0
        by_row = zip(entries["row"].to_pylist(), findings_in(entries), strict=True)
        for row, group in groupby(by_row, itemgetter(0)):
            pairs = [pair for _, pair in group]
            found, is_removed = zip(*pairs, strict=True)
            document = texts[bisect_right(first_rows, row) - 1](row)
            checked[row - first_rows[0]] = replace(
                checked[row - first_rows[0]],
                text=document.text,
                _found=found,
                _is_removed=any(is_removed),
                _parts=document.parts,
                _entries=entries.slice(at, len(found)),
            )
            at += len(found)
        return checked

    def _entries(self, scanner: Scanner, matches: list[Columns]) -> pa.Table:
        """Decide matches as those of a shard."""
        numbers = sorted({number for columns in matches for number in columns["part"].tolist()})
        results = [
            (scanner.search.versions[number], scanner.scan_result(matches, number, _NO_SHARD))
            for number in numbers
        ]
        results.sort(key=lambda result: result[0].benchmark)
        if results:
            _deciding.add(os.getpid())
        return self._reader.decide(results, source=_NO_SHARD)


# The processes that decided matches: polars then has threads, which no forked process inherits.
_deciding: set[int] = set()


def _require_own_threads() -> None:
    """Raise in a fork of a process that decided matches: polars would wait for ever."""
    if _deciding - {os.getpid()}:
        failure = "This process was forked from a process in which an index had found matches"
        remedy = (
            'Spawn processes: `multiprocess.set_start_method("spawn")` for datasets, '
            '`multiprocessing.get_context("spawn")` for pools. Or check texts only after the fork.'
        )
        raise InputError(Problem("", failure, remedy=remedy))


def _why(row: Unreadable) -> str:
    is_null = row.reason == "field is null" or row.detail == type(None).__name__
    return "None" if is_null else f"{row.reason}: {row.detail}"


def _unread_of_rows(
    batch: Batch, rows: Iterable[int], ignore: tuple[str, ...]
) -> dict[int, dict[str, tuple[int, int]]]:
    """Return what was not read of each row, and may not stay so."""
    left = {
        path
        for path, (n, _) in batch.unread.items()
        if (kind_at(path).is_blocking or not n) and not covers_any(ignore, path)
    }
    unread = {}
    for document in map(batch.reread, rows if left else ()):
        if isinstance(document, Document) and left & document.unread.keys():
            counts = document.unread.items()
            unread[document.row] = {path: (n, size) for path, (n, size) in counts if path in left}
    return unread


def _reopen(folder: Path, policy: Policy, fingerprint: str) -> Index:
    """Open a pickled index; raise `StaleError` if its folder has another one now."""
    return Index(open_folder(folder, policy, fingerprint=fingerprint))


def _remove_own(root: Path, process: int) -> None:
    """Remove a temporary folder; a forked process does not own it."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)
