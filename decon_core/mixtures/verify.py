"""A mixture held to its account: the bytes, the counts, and a scan of what is in it.

The shards of a mixture are scanned like those of a corpus, into the same store: those that are as
they were have their tiles already, and a mixture that was verified once is verified in no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from decon_core.config.load import Source
from decon_core.config.mixtures import Mixture
from decon_core.corpus.packs import Pack, shard_at
from decon_core.errors import CorpusError, Problem
from decon_core.mixtures.build import Builder
from decon_core.mixtures.card import CARD
from decon_core.mixtures.choice import Sizes, is_only_questions, leaks_of
from decon_core.mixtures.layouts import ID, LAYOUTS, TEXT
from decon_core.mixtures.manifest import MANIFEST, REMOVED_FILE, manifest_faults
from decon_core.scan.scanner import Progress, scan_packs
from decon_core.storage.checksums import sealed_page
from decon_core.storage.store import Store, read_json, read_parquet
from decon_core.storage.verification import Inspection, inspect_changed, stamp_of_files

_MOST_TOLD = 20


@dataclass
class Verdict:
    """What is wrong with a mixture; nothing, if all is as it says."""

    problems: list[Problem] = field(default_factory=list)
    n_documents: int = 0
    n_tokens: int = 0
    n_leaks: int = 0  # documents that hold one
    n_question_only: int = 0  # documents with a question without its answer, and no leak


def verify(
    builder: Builder,
    mixture: Mixture,
    *,
    workers: int = 1,
    on_progress: Progress | None = None,
) -> Verdict:
    """Check every pack of a mixture: that it is there, whole, of today, and free of leaks."""
    found = Verdict()
    standing: list[Pack] = []
    for pack in builder.packs:
        problems = [*_of_pack(builder, mixture, pack)]
        found.problems += problems
        if not problems and mixture.write != "attributes":  # they hold no text to be scanned
            standing.append(_as_shards(builder, mixture, pack))
    if mixture.write == "parquet" and standing and not found.problems:
        found.problems += _of_card(builder, mixture)
    if mixture.take == "control" and not found.problems:
        found.problems += _of_draw(builder, mixture)
    packs = [pack for pack in standing if pack.shards]
    problems = scan_again(builder, packs, workers=workers, on_progress=on_progress)
    if problems:
        found.problems += problems
        return found
    for pack in packs:
        _look_into(builder, mixture, pack, found)
    return found


def changed_damage(store: Store, mixtures: Sequence[Mixture], packs: Sequence[Pack]) -> Inspection:
    """What does not add up in what was built, or was touched, since it was looked at last."""
    shares = [f"{one.name}/{pack.name}" for one in mixtures for pack in packs]
    folders = {share: store.mixture(*share.split("/")) for share in shares}
    stamps = {
        share: stamp_of_files(folder, MANIFEST)
        for share, folder in folders.items()
        if (folder / MANIFEST).is_file()
    }
    return inspect_changed(store, "mixtures", stamps, lambda share: manifest_faults(folders[share]))


def scan_again(
    builder: Builder, packs: Sequence[Pack], *, workers: int, on_progress: Progress | None
) -> list[Problem]:
    """Scan what was written, like shards of a corpus; what of it could not be read."""
    try:
        scan_packs(
            builder.store,
            packs,
            builder.versions,
            builder.policy,
            workers=workers,
            on_progress=on_progress,
        )
    except CorpusError as error:
        return list(error.problems)
    return []


def _of_pack(builder: Builder, mixture: Mixture, pack: Pack) -> Iterator[Problem]:
    folder = builder.store.mixture(mixture.name, pack.name)
    if not (folder / MANIFEST).is_file():
        yield Problem(str(folder), "no manifest", "a mixture", "`decon-assets run` builds it")
    elif not builder.stands(mixture, pack):
        yield Problem(
            str(folder),
            "a mixture of other shards, benchmarks or settings",
            "one of today's",
            "`decon-assets run` builds it anew",
        )
    else:
        yield from manifest_faults(folder)


def _of_card(builder: Builder, mixture: Mixture) -> Iterator[Problem]:
    path = builder.store.mixtures(mixture.name) / CARD
    if path.read_bytes() != sealed_page(builder.card(mixture)):
        yield Problem(
            str(path),
            "another text",
            "what the manifests of the packs give",
            "remove it; `decon-assets run` writes it anew",
        )


def _of_draw(builder: Builder, mixture: Mixture) -> Iterator[Problem]:
    """Whether a control leaves out, over all packs, what it says that it drew."""
    drawn: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    told: dict[str, dict[str, Any]] = {}
    for pack in builder.packs:
        folder = builder.store.mixture(mixture.name, pack.name)
        for matched in read_json(folder / MANIFEST)["control"] or ():
            told[matched["source"]] = matched  # all packs of a source say the same
        rows = read_parquet(folder / REMOVED_FILE, columns=["why", "n_tokens"])
        left_out = rows.filter(pc.field("why") == "control")["n_tokens"]
        drawn[pack.source.name] += len(left_out)
        tokens[pack.source.name] += pc.sum(left_out).as_py() or 0
    for source, one in told.items():
        if (drawn[source], tokens[source]) != (one["n_drawn"], one["n_drawn_tokens"]):
            yield Problem(
                f"{mixture.name}, source {source!r}",
                f"{drawn[source]} documents and {tokens[source]} tokens left out",
                f"{one['n_drawn']} and {one['n_drawn_tokens']}, as drawn",
            )


def _as_shards(builder: Builder, mixture: Mixture, pack: Pack) -> Pack:
    """What a mixture has of a pack, as a pack of its own."""
    folder = builder.store.mixture(mixture.name, pack.name)
    names = [shard["file"] for shard in read_json(folder / MANIFEST)["shards"]]
    source = pack.source
    if mixture.write in LAYOUTS:
        source = Source(name=source.name, path=source.path, text=TEXT, id=ID)
    shards = tuple(shard_at(source, folder / name, folder) for name in names)
    return replace(pack, source=source, shards=shards)


def _look_into(builder: Builder, mixture: Mixture, pack: Pack, found: Verdict) -> None:
    """Counts and leaks of what was scanned."""
    reader = builder.reader
    # Whatever it takes, what counts as a leak there; and what is question-only, which may stay.
    counting = replace(mixture.leaks, question_only="remove")
    with_questions = replace(mixture, take="clean", leaks=counting)
    folder = builder.store.mixture(mixture.name, pack.name)
    accounts = read_json(folder / MANIFEST)["shards"]
    for shard, account in zip(pack.shards, accounts, strict=True):
        ledger = read_json(reader.store.ledger(reader.scan, shard.fingerprint))
        found.n_documents += ledger["n_documents"]
        n_tokens = int(Sizes.of(reader.store, shard, reader.scan).n_tokens.sum())
        found.n_tokens += n_tokens
        there = (ledger["n_documents"], n_tokens, len(ledger["unreadable"]))
        if there != (account["n_documents_out"], account["n_tokens_out"], 0):
            found.problems.append(
                Problem(
                    shard.path,
                    "{} documents, {} tokens, {} rows unread".format(*there),
                    f"{account['n_documents_out']} and {account['n_tokens_out']}, all of it read",
                )
            )
        every = leaks_of(reader, shard, with_questions, source=pack.source.name)
        counted = {row: [*filter(mixture.leaks.counts, own)] for row, own in every.items()}
        leaks = {row: entries for row, entries in counted.items() if entries}
        n_question_only = sum(map(is_only_questions, every.values()))
        found.n_question_only += n_question_only
        found.n_leaks += len(every) - n_question_only
        if mixture.take == "leaks" and len(leaks) != ledger["n_documents"]:
            found.problems.append(
                Problem(
                    shard.path,
                    f"{ledger['n_documents'] - len(leaks)} documents without a leak",
                    "leaks alone",
                )
            )
        if mixture.take != "clean":
            continue
        for row, entries in sorted(leaks.items())[:_MOST_TOLD]:
            entry = entries[0]
            item = f"{entry['benchmark']} {entry['split']} {entry['instance_index']}"
            what = "the question alone" if entry["is_question_only"] else "a leak"
            found.problems.append(
                Problem(Path(shard.path).name + f": row {row}", f"{what} of {item}", "none")
            )
