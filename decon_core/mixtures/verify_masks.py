"""Verify files of token ids with loss masks against the documents that they were made from.

Every document is read and encoded again. All tokens that hold a character of a leak must be masked,
no others may be, and what is left of the text is scanned again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.config.mixtures import Mixture
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.decide import counts
from decon_core.errors import Problem
from decon_core.mixtures.builder import Builder, tokenizer_of
from decon_core.mixtures.choice import Sizes, counted_leaks, is_only_questions, leaks_of
from decon_core.mixtures.excise import Rescan, merged
from decon_core.mixtures.layouts import document_in, id_in, rows_of
from decon_core.mixtures.masked_text import MaskedText, Spans, runs_of
from decon_core.mixtures.masks import Tokens, tokens_of
from decon_core.mixtures.verify import MixtureVerification
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet
from decon_core.text.trainer_tokens import TrainerTokenizer

_MOST_LISTED = 20  # problems of a shard
_ROWS_AT_ONCE = 256

Entries = dict[int, list[dict[str, Any]]]  # leaks and matches without the answer, by row
Line = Mapping[str, Any]  # a row of a file of masks


def check_masks(job: tuple[Builder, Mixture, Pack]) -> MixtureVerification:
    """Verify the files of a pack, whose checksums are known to be right.

    Tokens are counted without those that are masked, and leaks beside the masked characters.
    """
    builder, mixture, pack = job
    folder = builder.store.mixture(mixture.name, pack.name)
    gone: dict[str, list[int]] = {}
    list_of_removed = builder.store.removed(mixture.name, pack.name)
    removed = read_parquet(list_of_removed, columns=["shard", "row", "what"])
    for row in removed.filter(pc.field("what") == "document").to_pylist():
        gone.setdefault(row["shard"], []).append(row["row"])
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
                problem = Problem(where, f"a leak of {item} outside the mask", "no leak")
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
                result.problems.append(Problem(f"{file}: {name}", n_held, f"{counted:,}"))
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
        batches = pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE)
        lines = chain.from_iterable(batch.to_pylist() for batch in batches)
        for row, line in zip_longest(rows_of(shard, self._source, rows), lines):
            if row is None or line is None:  # `check` reports the counts
                break
            document = document_in(row)
            spans = [(span["start"], span["stop"]) for span in line["masked"]]
            faults = [*self._faults(document, spans, line, entries.get(row.number, ()))]
            if id_in(row) != line["id"]:
                faults.append(("another id", id_in(row)))
            problems += [Problem(f"{file.name}: {id_in(row)}", *fault) for fault in faults]
            if spans:
                left[row.number] = MaskedText.of(document, spans).remainder
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
            yield "tokens that decode to another text", "the text of the document"
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
