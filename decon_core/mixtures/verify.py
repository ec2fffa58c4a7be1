"""Verify a mixture against its manifest: checksums, counts, and a scan of its content.

The shards of a mixture are scanned like those of a corpus, into the same store. Unchanged shards
already have their scan results, so verifying a mixture again is fast.

Of files of token ids with loss masks, every document is read and encoded again. All tokens that
hold a character of a leak must be masked, no others may be, and what is left of the text is scanned
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.decisions.decide import counts
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import CorpusError, Problem, collecting
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import run_jobs, useful_workers
from decon_core.execution.local import LOCAL
from decon_core.mixtures.build import require_inputs
from decon_core.mixtures.builder import Builder, tokenizer_of
from decon_core.mixtures.card import CARD
from decon_core.mixtures.choice import HIDDEN, Sizes, counted_leaks, is_only_questions, leaks_of
from decon_core.mixtures.excise import Rescan, merged
from decon_core.mixtures.layouts import ID, SUFFIXES, TEXT, id_in, rows_of
from decon_core.mixtures.manifest import (
    REBUILD,
    faults_beside_packs,
    faults_without_pack,
    has_page,
    inspect_products,
    manifest_faults,
    read_manifest,
)
from decon_core.mixtures.masks import MaskedText, Spans, Tokens, runs_of, tokens_of
from decon_core.mixtures.positions import check_attributes, misplaced, misplaced_problem
from decon_core.scan.scanner import Progress, scan_packs
from decon_core.storage.files import read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet
from decon_core.storage.verification import Inspection
from decon_core.text.trainer_tokens import TrainerTokenizer

_MOST_LISTED = 20  # problems of a shard


@dataclass
class Verification:
    """The result of verifying a product. Without problems, it matches its manifest."""

    problems: list[Problem] = field(default_factory=list)
    n_documents: int = 0
    n_tokens: int = 0
    n_leaks: int = 0  # documents with a leak; of a blend, without inserted items

    def scan(
        self,
        builder: Builder,
        packs: Sequence[Pack],
        *,
        workers: int,
        engine: Engine,
        on_progress: Progress | None,
    ) -> bool:
        """Scan written shards like those of a corpus; return whether all could be read."""
        with collecting(self.problems, CorpusError):
            scan_packs(
                builder.store,
                packs,
                builder.versions,
                builder.policy,
                workers=workers,
                engine=engine,
                on_progress=on_progress,
            )
            return True
        return False

    def add_counts(
        self, reader: MatchReader, shard: Shard, n_documents: int, n_tokens: int
    ) -> bool:
        """Add the counts of a scanned shard; return whether they are as expected."""
        ledger = reader.ledger(shard)
        n_found_tokens = int(Sizes.of(reader.documents(shard)).n_tokens.sum())
        found = ledger["n_documents"], n_found_tokens, len(ledger["unreadable"])
        self.n_documents += found[0]
        self.n_tokens += found[1]
        expected = (n_documents, n_tokens, 0)
        if found != expected:
            text = "{} documents, {} tokens, {} unreadable rows"
            problem = Problem(shard.path, text.format(*found), text.format(*expected), REBUILD)
            self.problems.append(problem)
        return found == expected


@dataclass
class MixtureVerification(Verification):
    """The result of verifying a mixture."""

    n_no_answer: int = 0  # documents with a question without its answer, and no leak
    # Tokens of the trainer's tokenizer, of a mixture of loss masks.
    n_input_tokens: int = 0
    n_masked_tokens: int = 0

    def add_masks(
        self,
        builder: Builder,
        mixture: Mixture,
        packs: Sequence[Pack],
        *,
        workers: int,
        engine: Engine,
    ) -> None:
        """Encode the documents of a mixture of loss masks again, and compare."""
        builder = builder.with_calibration()
        sizes = [shard.n_bytes for pack in packs for shard in pack.shards]
        done = run_jobs(
            check_masks,
            [(replace(builder, packs=(pack,)), mixture, pack) for pack in packs],
            workers=useful_workers(workers, sizes, engine=engine),
            engine=engine,
            name_of=lambda job: f"masks of mixture {mixture.name!r}, pack {job[2].name!r}",
        )
        for _, future in done:
            with collecting(self.problems):
                self.add(future.result())

    def add(self, other: MixtureVerification) -> None:
        """Add the result of a part of the mixture."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def verify(
    builder: Builder,
    mixture: Mixture,
    *,
    workers: int = 1,
    engine: Engine = LOCAL,
    on_progress: Progress | None = None,
) -> MixtureVerification:
    """Verify every pack of a mixture: it exists, is intact and current, and holds no leak.

    Of attributes: they are where the leaks are.
    """
    result = MixtureVerification()
    result.problems += faults_without_pack(builder.store, {pack.name for pack in builder.packs})
    result.problems += faults_beside_packs(builder.store.mixtures(mixture.name))
    valid: list[tuple[Pack, Pack]] = []  # of the corpus, and as the mixture has it
    for pack in builder.packs:
        problems: list[Problem] = []
        with collecting(problems):
            problems += _check_pack(builder, mixture, pack)
        result.problems += problems
        if not problems and mixture.write == "attributes":  # these have no text to scan
            with collecting(result.problems):
                faults = check_attributes(builder, mixture, pack)
                result.problems += islice(faults, _MOST_LISTED)
        elif not problems:
            is_text = mixture.write != "mask"
            valid.append((pack, _output_pack(builder, mixture, pack) if is_text else pack))
    card = builder.store.mixtures(mixture.name) / CARD
    if builder.packs and not result.problems and not has_page(card, builder.card(mixture)):
        found = "it does not match the manifests" if card.is_file() else "the file is missing"
        remedy = "`decon-assets run` writes it again"
        remedy = f"remove it; {remedy}" if card.is_file() else remedy
        result.problems.append(Problem(str(card), found, remedy=remedy))
    if mixture.take == "control" and not result.problems:
        result.problems += _check_draw(builder, mixture)
    packs = [written for _, written in valid if written.shards]
    if mixture.write == "mask":
        result.add_masks(builder, mixture, packs, workers=workers, engine=engine)
        return result
    if result.scan(builder, packs, workers=workers, engine=engine, on_progress=on_progress):
        for pack, written in valid:
            if written.shards:
                _check_scan(builder, mixture, pack, written, result)
    return result


def inspect_changed_mixtures(
    store: Store, mixtures: Sequence[Mixture], packs: Sequence[Pack]
) -> Inspection:
    """Verify the mixtures that were built or modified since the last inspection."""
    products = {
        f"{mixture.name}/{pack.name}": (
            store.mixture_manifest(mixture.name, pack.name),
            store.mixture(mixture.name, pack.name),
        )
        for mixture in mixtures
        for pack in packs
    }
    inspection = inspect_products(store, "mixtures", products, manifest_faults)
    inspection.problems += faults_without_pack(store, {pack.name for pack in packs})
    for mixture in mixtures:
        inspection.problems += faults_beside_packs(store.mixtures(mixture.name))
    return inspection


def _check_pack(builder: Builder, mixture: Mixture, pack: Pack) -> Iterator[Problem]:
    folder = builder.store.mixture(mixture.name, pack.name)
    path = builder.store.mixture_manifest(mixture.name, pack.name)
    if not path.is_file():
        require_inputs(builder, builder.effective(mixture), pack)  # says why a run did not build it
        yield Problem(str(folder), "not built", remedy="`decon-assets run` builds it")
    elif (manifest := read_manifest(path)) is None:
        yield Problem(str(path), "the manifest is damaged", remedy=REBUILD)
    elif manifest.get("fingerprint") != builder.fingerprint(mixture, pack):
        found = "built from other shards, benchmarks or settings than the current ones"
        yield Problem(str(folder), found, remedy="`decon-assets run` builds it again")
    else:
        yield from manifest_faults(path, folder)


def _check_draw(builder: Builder, mixture: Mixture) -> Iterator[Problem]:
    """Compare what a control leaves out, over all packs, with its draw."""
    drawn: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    expected: dict[str, dict[str, Any]] = {}
    for pack in builder.packs:
        path = builder.store.mixture_manifest(mixture.name, pack.name)
        for matched in read_json(path)["control"] or ():
            expected[matched["source"]] = matched  # the same for all packs of a source
        removed = builder.store.removed(mixture.name, pack.name)
        rows = read_parquet(removed, columns=["why", "n_tokens"])
        left_out = rows.filter(pc.field("why") == "control")["n_tokens"]
        drawn[pack.source.name] += len(left_out)
        tokens[pack.source.name] += pc.sum(left_out).as_py() or 0
    for source, matched in expected.items():
        n_drawn, n_tokens = matched["n_drawn"], matched["n_drawn_tokens"]
        if (drawn[source], tokens[source]) != (n_drawn, n_tokens):
            found = f"{drawn[source]} documents and {tokens[source]} tokens left out"
            as_drawn = f"{n_drawn} and {n_tokens}, as drawn"
            yield Problem(f"{mixture.name}, source {source!r}", found, as_drawn)


def _output_pack(builder: Builder, mixture: Mixture, pack: Pack) -> Pack:
    """Return the files that a mixture has of a pack as a pack that can be scanned."""
    folder = builder.store.mixture(mixture.name, pack.name)
    manifest = read_json(builder.store.mixture_manifest(mixture.name, pack.name))
    names = [shard["file"] for shard in manifest["shards"]]
    source = pack.source
    if mixture.write in SUFFIXES:
        source = Source(name=source.name, path=source.path, text=TEXT, id=ID)
    shards = tuple(shard_at(source, folder / name, folder) for name in names)
    return replace(pack, source=source, shards=shards)


def _check_scan(
    builder: Builder, mixture: Mixture, pack: Pack, written: Pack, result: MixtureVerification
) -> None:
    """Compare counts and leaks of the scanned output with the manifest; add them to `result`.

    `pack` has the shards of the corpus, `written` those of the mixture.
    """
    reader = builder.reader_for(mixture)
    # Count leaks and questions of any kind of mixture; questions may stay, depending on settings.
    counting = replace(mixture.leaks, no_answer="remove")
    with_questions = replace(mixture, take="clean", leaks=counting)
    accounts = read_json(builder.store.mixture_manifest(mixture.name, pack.name))["shards"]
    has_hidden = any("n_hidden_tokens" in account for account in accounts)
    gone = _gone_rows(builder, mixture, pack) if has_hidden else {}
    for origin, shard, account in zip(pack.shards, written.shards, accounts, strict=True):
        n_before, n_hidden_tokens = result.n_documents, account.get("n_hidden_tokens", 0)
        n_tokens = account["n_tokens_out"] - n_hidden_tokens
        result.add_counts(reader, shard, account["n_documents_out"], n_tokens)
        result.n_tokens += n_hidden_tokens
        by_row = leaks_of(reader, shard, with_questions, source=pack.source.name)
        if n_hidden_tokens:
            hidden = _hidden_leaks(reader, origin, with_questions, pack, gone.get(origin.name, ()))
            by_row = {
                row: by_row.get(row, []) + hidden.get(row, [])
                for row in sorted(by_row.keys() | hidden.keys())
            }
        leaks = {}  # the first that the mixture counts, by row
        for row, entries in by_row.items():
            counted = (
                entry for entry in entries if counts(entry, mixture.leaks, reader.calibration)
            )
            if first := next(counted, None):
                leaks[row] = first
        n_no_answer = sum(map(is_only_questions, by_row.values()))
        result.n_no_answer += n_no_answer
        result.n_leaks += len(by_row) - n_no_answer
        n_clean = result.n_documents - n_before - len(leaks)
        if mixture.take == "leaks" and n_clean:
            found, expected = f"{n_clean} documents without a leak", "only documents with a leak"
            result.problems.append(Problem(shard.path, found, expected))
        if mixture.take != "clean":
            continue
        for row, entry in sorted(leaks.items())[:_MOST_LISTED]:
            item = f"{entry['benchmark']} {entry['split']} {entry['instance_index']}"
            what = "only the question" if entry["is_no_answer"] else "a leak"
            where = f"{Path(shard.path).name}: row {row}"
            result.problems.append(Problem(where, f"{what} of {item}", "no leak"))


def _hidden_leaks(
    reader: MatchReader, shard: Shard, mixture: Mixture, pack: Pack, gone: Sequence[int]
) -> Entries:
    """Return the leaks in hidden text of the documents that are left of a shard.

    They come from the scan of the corpus, by row of the mixture's file: in a layout, hidden text is
    among other fields, where a scan of the file does not read it.
    """
    rows = Sizes.of(reader.documents(shard)).rows
    rows = rows[~np.isin(rows, np.array(gone, np.int64))]
    found: Entries = {}
    for row, entries in leaks_of(reader, shard, mixture, source=pack.source.name).items():
        hidden = [entry for entry in entries if entry["slot_kind"] == HIDDEN]
        if hidden and row in rows:
            found[int(np.searchsorted(rows, row))] = hidden
    return found


def _gone_rows(builder: Builder, mixture: Mixture, pack: Pack) -> dict[str, list[int]]:
    """Return the rows of each shard that a mixture leaves out."""
    gone: dict[str, list[int]] = {}
    list_of_removed = builder.store.removed(mixture.name, pack.name)
    removed = read_parquet(list_of_removed, columns=["shard", "row", "what"])
    for row in removed.filter(pc.field("what") == "document").to_pylist():
        gone.setdefault(row["shard"], []).append(row["row"])
    return gone


_ROWS_AT_ONCE = 256

Entries = dict[int, list[dict[str, Any]]]  # leaks and matches without the answer, by row
Line = Mapping[str, Any]  # a row of a file of masks


def check_masks(job: tuple[Builder, Mixture, Pack]) -> MixtureVerification:
    """Verify the files of a pack, whose checksums are known to be right.

    Tokens are counted without those that are masked, and leaks beside the masked characters.
    """
    builder, mixture, pack = job
    folder = builder.store.mixture(mixture.name, pack.name)
    gone = _gone_rows(builder, mixture, pack)
    checker = _Checker(builder, mixture, pack)
    result = MixtureVerification()
    manifest = read_json(builder.store.mixture_manifest(mixture.name, pack.name))
    accounts = manifest["shards"]  # none of a source that is not taken
    for shard, account in zip(pack.shards, accounts, strict=False):
        file, rows = folder / account["file"], gone.get(shard.name, ())
        result.add(checker.check(shard, file, account, rows))
    return result


class _Checker:
    """Verifies the files of a pack."""

    def __init__(self, builder: Builder, mixture: Mixture, pack: Pack) -> None:
        self._mixture, self._source = mixture, pack.source
        self._tokenizer = tokenizer_of(mixture)
        self._reader = builder.reader_for(mixture)
        self._rescan = Rescan(
            self._reader, self._reader.needed_by(mixture), source=pack.source.name
        )
        # Count questions without answers, too, if the mixture keeps them.
        counting = replace(mixture.leaks, no_answer="remove")
        self._counting = replace(mixture, leaks=counting)

    def check(
        self, shard: Shard, file: Path, account: Mapping[str, Any], gone: Sequence[int]
    ) -> MixtureVerification:
        """Verify the file of a shard; `gone`: the rows that are not in it."""
        sizes = Sizes.of(self._reader.documents(shard))
        rows = sizes.rows[~np.isin(sizes.rows, np.array(gone, np.int64))].tolist()
        entries = leaks_of(self._reader, shard, self._counting, source=self._source.name)
        entries = {row: entries[row] for row in rows if row in entries}
        result = _counts_of(file)
        left = self._compare_rows(shard, file, rows, entries, result.problems)
        # What is still found in the documents without their masked characters.
        matches, new_sizes = self._rescan.scan([*left.values()])
        found: Entries = {}
        for entry in counted_leaks(matches, self._counting, self._reader.calibration):
            found.setdefault(entry["row"], []).append(entry)
        for row, of_row in found.items():
            if leak := next(filter(self._is_leak, of_row), None):
                item = f"{leak['benchmark']} {leak['split']} {leak['instance_index']}"
                where = f"{file.name}: row {row} of the shard"
                problem = Problem(where, f"a leak of {item} outside the mask", "no leak", REBUILD)
                result.problems.append(problem)
        del result.problems[_MOST_LISTED:]
        beside = [*found.values(), *(entries[row] for row in entries if row not in left)]
        result.n_no_answer = sum(map(is_only_questions, beside))
        result.n_leaks = len(beside) - result.n_no_answer
        unmasked = sizes.at([row for row in rows if row not in left])
        result.n_tokens = int(sizes.n_tokens[unmasked].sum())
        result.n_tokens += sum(n_tokens for _, n_tokens in new_sizes.values())
        for name in ("n_documents", "n_tokens", "n_input_tokens", "n_masked_tokens"):
            counted = account.get(name, account.get(f"{name}_out"))
            if getattr(result, name) != counted:
                n_held = f"{getattr(result, name):,}"
                result.problems.append(Problem(f"{file}: {name}", n_held, f"{counted:,}", REBUILD))
        return result

    def _compare_rows(
        self,
        shard: Shard,
        file: Path,
        rows: Sequence[int],
        entries: Entries,
        problems: list[Problem],
    ) -> dict[int, Document]:
        """Compare a file with the rows of its shard; return what masks leave of documents."""
        left: dict[int, Document] = {}
        leaky: list[Document] = []
        batches = pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE)
        lines = chain.from_iterable(batch.to_pylist() for batch in batches)
        for row, line in zip_longest(rows_of(shard, self._source, rows), lines):
            if row is None or line is None:  # `check` reports the counts
                break
            document = row.document.without_hidden
            spans = [(span["start"], span["stop"]) for span in line["masked"]]
            faults = [*self._faults(document, spans, line, entries.get(row.number, ()))]
            if id_in(row) != line["id"]:
                faults.append(("another id", id_in(row)))
            where = f"{file.name}: {id_in(row)}"
            problems += [Problem(where, *fault, REBUILD) for fault in faults]
            if row.number in entries:
                leaky.append(row.document)
            if spans:
                left[row.number] = MaskedText.of(row.document, spans).remainder
        for document, entry in misplaced(self._rescan, leaky, entries):
            problems.append(misplaced_problem(f"{file.name}: row {document.row}", entry))
        return left

    def _faults(
        self, document: Document, spans: Spans, line: Line, entries: Sequence[dict[str, Any]]
    ) -> Iterator[tuple[str, str]]:
        """Yield what is found and expected where a row does not fit its document."""
        tokens = tokens_of(document, spans, self._tokenizer)
        expected = {
            "input_ids": tokens.ids.tolist(),
            "labels": tokens.labels.tolist(),
            "loss_mask": (~tokens.is_masked).astype(int).tolist(),
            "parts": tokens.parts,
        }
        for name, values in expected.items():
            if line[name] != values:
                yield f"different {name}", "those of the document and its masked characters"
        if self._tokenizer.is_lossless and not _is_decoded(document.text, tokens, self._tokenizer):
            yield "tokens that decode to a different text", "the text of the document"
        if leaks := [entry for entry in entries if self._is_leak(entry)]:
            # Separators of parts are never masked.
            leaked = MaskedText.of(document).with_spans(merged(leaks, document.text)).is_masked
            if (leaked & ~MaskedText.of(document, spans).is_masked).any():
                found = f"characters of a leak of {leaks[0]['benchmark']} that are not masked"
                yield found, "a mask"

    def _is_leak(self, entry: Mapping[str, Any]) -> bool:
        return counts(entry, self._mixture.leaks, self._reader.calibration)


def _counts_of(file: Path) -> MixtureVerification:
    """Count the documents and tokens of a file."""
    result = MixtureVerification()
    for batch in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE, columns=["loss_mask"]):
        mask = batch["loss_mask"].flatten().to_numpy()
        result.n_documents += batch.num_rows
        result.n_input_tokens += mask.size
        result.n_masked_tokens += int((mask == 0).sum())
    return result


def _is_decoded(text: str, tokens: Tokens, tokenizer: TrainerTokenizer) -> bool:
    """Return whether the tokens, and each run of masked ones, decode to their part of the text."""
    n_before, n_after = len(tokenizer.before), len(tokenizer.after)
    ids = tokens.ids[n_before : tokens.ids.size - n_after].tolist()
    if tokenizer.decode(ids) != text:
        return False
    content = text.encode()
    for start, stop in runs_of(tokens.is_masked):
        part = content[tokens.starts[start] : tokens.stops[stop - 1]].decode(errors="replace")
        decoded = tokenizer.decode(tokens.ids[start:stop].tolist())
        # The first and the last token may hold a part of a character only.
        is_part = "\ufffd" in decoded and decoded.strip("\ufffd") in part
        if decoded != part and not is_part:
            return False
    return True
