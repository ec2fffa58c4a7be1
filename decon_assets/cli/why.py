"""`decon-assets why`: what became of one document, by what, and which runs made it so."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_assets.cli.command import Command, Say, add_config
from decon_core.config.load import Config, load_config
from decon_core.config.mixtures import mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import Problem
from decon_core.storage.store import Store
from decon_core.wording import counted

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from decon_core.mixtures.build import Builder
    from decon_core.report.why import Place

DESCRIPTION = """\
Tell of a document what was found of it, and for each mixture whether it was kept, removed or cut:
by which rule, for which item, at which score; from which benchmark version, shard, settings and
idf snapshot; and which Dagster runs made the tile and the mixture. Every finding has the name of
its pair, with the command for a reviewer who disagrees; a near miss says what it lacks to be a
leak.

Everything is read off the tiles, lists and manifests of the store: no report has to be there. An id
is looked up among the documents of which anything was found; one that is not among them, in all
rows of all shards (--shard NAME: of that one).
"""

EPILOG = """\
examples:
  decon-assets why page-17
  decon-assets why shelf-0001.jsonl.gz:393          a row, counted from 0
  decon-assets why page-17 --mixture decontaminated --json
  decon-assets why page-17 --everywhere             every row of every shard that has the id

Exit codes: 0 told, 1 there is no such document, 2 an input is wrong.
"""
Told = dict[str, Any]

_MOST_FOUND = 5  # of what was found, in the terminal
_MOST_DOCUMENTS = 100  # of a pair, in the terminal
_MOST_TEXT = 400  # characters of each text
_CLOCK_SECONDS = 0.05  # by which the clocks of files and of events may differ


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", metavar="DOC_ID", help="its id, or SHARD:ROW")
    parser.add_argument("--shard", metavar="NAME", help="look in this shard only")
    parser.add_argument(
        "--mixture",
        action="append",
        default=[],
        metavar="NAME",
        help="tell of this mixture; may be repeated (default: all that are declared)",
    )
    parser.add_argument(
        "--everywhere", action="store_true", help="read all rows, for others of the same id"
    )
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")


def why(options: argparse.Namespace, say: Say) -> int:
    """Run the command."""
    from decon_core.report.why import places_of

    config = load_config(options.config)
    for name in options.mixture:
        mixture_named(config.mixtures, name)
    builder = _builder(config, open_store(config))
    unread: list[Problem] = []
    places = places_of(
        builder,
        options.document,
        shard=options.shard,
        is_everywhere=options.everywhere,
        on_unread=unread.append,
    )
    with _history(config, options.config) as instance:
        told = [_account(config, builder, one, options.mixture, instance) for one in places]
    told = [one for one in told if one["document"]["is_there"]]
    if not told:
        sys.stderr.write(f"{_unknown(builder, options)}\n")
    for problem in unread:
        sys.stderr.write(f"note: not searched to its end: {problem}\n")
    if not told:
        return 1
    if options.json:
        say(json.dumps(told, indent=1, ensure_ascii=False))
        return 0
    for one in told:
        for line in _lines(one):
            say(line)
    if _are_stale(config, builder.store):
        say("\nnote: benchmarks changed since they were normalized: `decon-assets status`")
    return 0


def _builder(config: Config, store: Store) -> Builder:
    """What is in the store, although files may have moved away from it since."""
    from decon_core.benchmarks.records import current_version
    from decon_core.inventory import benchmarks_of, list_packs, verdicts_of
    from decon_core.mixtures.build import Builder

    names = [name for name in benchmarks_of(config) if store.current_records(name).is_file()]
    return Builder(
        store,
        tuple(list_packs(store)),
        tuple(current_version(store, name) for name in names),
        config.policy,
        config.mixtures,
        verdicts=verdicts_of(config),
    )


def _are_stale(config: Config, store: Store) -> bool:
    from decon_core.inventory import stale_benchmarks

    return bool(stale_benchmarks(config, store))


def _unknown(builder: Builder, options: argparse.Namespace) -> str:
    n_shards = sum(len(pack.shards) for pack in builder.packs)
    where = f"shard {options.shard!r}" if options.shard else f"{n_shards} registered shards"
    return str(
        Problem(
            f"document {options.document!r}",
            f"none of that id in {where}",
            "the id of a document, or SHARD:ROW",
            _no_shard(builder, options.document)
            or "ids are those of the field `id` of its source in decon.toml",
        )
    )


def _no_shard(builder: Builder, asked: str) -> str:
    """What to say of a row in a shard that is not registered; nothing of anything else."""
    name, _, row = asked.rpartition(":")
    known = {name for _, shard in builder.shards for name in (shard.name, shard.path)}
    if not name or not row.isdecimal() or name in known:
        return ""
    return f"no shard is registered as {name!r}; one that was renamed goes by its new name"


def _account(
    config: Config,
    builder: Builder,
    place: Place,
    names: Sequence[str],
    instance: DagsterInstance | None,
) -> Told:
    from decon_core.report.why import account

    chosen = [mixture_named(config.mixtures, name) for name in names] or list(config.mixtures)
    blends = () if names else config.blends
    told = account(builder, place, mixtures=chosen, blends=blends, showing=config.showing)
    pack = place.pack.name
    for entry in told["found"]:
        entry["run"] = _run_of_cell(instance, pack, entry)
    for one in told["mixtures"]:
        one["run"] = _run_of_share(instance, pack, one)
    return told


# Which run ----------------------------------------------------------------------------------------


@contextmanager
def _history(config: Config, config_path: Path) -> Iterator[DagsterInstance | None]:
    """The instance, to be asked and nothing else; None where there is none.

    Nor is it asked about a store behind a URL: a file that was fetched is as old as the fetching.
    """
    from decon_assets.instance.home import home_for

    home = home_for(config_path)
    if config.kept is not None or not (home / "dagster.yaml").is_file():
        yield None
        return
    from dagster import DagsterInstance

    with DagsterInstance.from_config(str(home.resolve())) as instance:
        yield instance


def _run_of_cell(instance: DagsterInstance | None, pack: str, entry: Mapping[str, Any]) -> Told:
    from decon_assets.partitions import cell

    return _run(instance, "scan", str(cell(pack=pack, benchmark=entry["benchmark"])), entry["made"])


def _run_of_share(
    instance: DagsterInstance | None, pack: str, one: Mapping[str, Any]
) -> Told | None:
    from decon_assets.partitions import share

    if one["made"] is None:
        return None
    return _run(instance, "mixture", str(share(pack=pack, mixture=one["mixture"])), one["made"])


def _run(instance: DagsterInstance | None, asset: str, key: str, made: str) -> Told:
    """The run that was at work on the asset when the file was written.

    Of several at once it is the one that told of the partition first: others found it there.
    """
    written = Path(made).stat().st_mtime
    at = datetime.fromtimestamp(written, UTC)
    told: Told = {"id": None, "at": at.isoformat(timespec="seconds"), "partition": key}
    if instance is None:
        return told
    at_work = _at_work(instance, asset, at)
    if len(at_work) > 1:
        at_work &= {_first_to_tell(instance, asset, key, written)}
    return {**told, "id": next(iter(at_work), None)}


def _at_work(instance: DagsterInstance, asset: str, at: datetime) -> set[str | None]:
    from dagster import AssetKey, RunsFilter

    margin = timedelta(seconds=_CLOCK_SECONDS)
    then = RunsFilter(created_before=at + margin, updated_after=at - margin)
    runs = instance.get_runs(then)
    return {run.run_id for run in runs if AssetKey(asset) in (run.asset_selection or ())}


def _first_to_tell(instance: DagsterInstance, asset: str, key: str, written: float) -> str | None:
    from dagster import AssetKey, AssetRecordsFilter

    wanted = AssetRecordsFilter(
        asset_key=AssetKey(asset),
        asset_partitions=[key],
        after_timestamp=written - _CLOCK_SECONDS,
    )
    found = instance.fetch_materializations(wanted, limit=1, ascending=True).records
    return found[0].run_id if found else None


# As text ------------------------------------------------------------------------------------------


def _lines(told: Told) -> Iterator[str]:
    one = told["document"]
    size = "" if one["n_tokens"] is None else f", {counted(one['n_tokens'], 'token')}"
    yield f"{one['id'] or 'a row without an id'}: row {one['row']} of {one['shard']}{size}"
    yield f"  pack {one['pack']}, source {one['source']}, shard {one['shard_fingerprint']}"
    if one["why_unreadable"]:
        yield f"  could not be read: {one['why_unreadable']}"
    yield ""
    yield from _lines_of_found(told)
    yield ""
    yield "mixtures:"
    for mixture in told["mixtures"]:
        yield from _lines_of_mixture(mixture)
    blends = [blend for blend in told["blends"] if blend["is_built"]]
    if blends:
        yield "blends:"
        yield from map(_line_of_blend, blends)
    settings = told["settings"]
    yield ""
    yield f"settings: scan {settings['scan']}, idf snapshot {settings['idf_snapshot']}"
    yield ""


def _lines_of_found(told: Told) -> Iterator[str]:
    if told["not_scanned_against"]:
        why = told["why_not_scanned"]
        yield f"not scanned against {', '.join(told['not_scanned_against'])}: {why}"
    found = told["found"]
    if not found:
        yield _line_of_nothing(told)
        return
    yield _call_of_document(found)
    for entry in found[:_MOST_FOUND]:
        yield from _lines_of_entry(entry)
    if len(found) > _MOST_FOUND:
        yield f"  … and {len(found) - _MOST_FOUND} more (--json has all)"


def _line_of_nothing(told: Told) -> str:
    if not told["not_scanned_against"]:
        settings = told["settings"]
        floor = f"{settings['evidence_floor']:g}"
        if settings["policy"]["keep_question_only"]:
            floor += f", or {floor} for the question alone"
        return f"nothing was found of any item, down to the evidence floor ({floor})"
    unknown = "nothing is known of these benchmarks"
    return f"{unknown}; of others nothing was found" if told["scanned_against"] else unknown


def _call_of_document(found: Sequence[Told]) -> str:
    if any(entry["is_contaminated"] for entry in found):
        return "what was found:"
    if any(entry["is_question_only"] for entry in found):
        return "no leak, and not clean: it holds a question without its answer (question-only):"
    return "no leak; what came closest:"


def _call(entry: Told) -> str:
    if entry["is_contaminated"]:
        return "leak"
    return "question-only" if entry["is_question_only"] else "no leak"


def _lines_of_entry(entry: Told) -> Iterator[str]:
    call = _call(entry)
    item = f"{entry['benchmark']} {entry['split']} {entry['instance_index']}"
    score = f"score {entry['score']:.3f} (threshold {entry['threshold']:g})"
    yield f"  {call}: {item}, by {entry['detector']}, {score}"
    places = [_place(entry, part) for part in entry["characters"]]
    if places:
        yield f"    {'; '.join(places)}"
    if entry["is_question_only"]:
        yield "    its question stands here, verbatim or nearly so, without its answer"
    if entry["missing"]:
        yield f"    to be a leak by its score it lacks: {'; '.join(entry['missing'])}"
    if entry["said"]:
        said = entry["said"]
        who = f" by {said['by']}" if said["by"] else ""
        yield f"    a person{who} called it: {said['verdict']}{_noted(said['note'])}"
    if len(entry["documents"]) > 1:
        yield f"    {_documents(entry)}"
    yield f"    pair {entry['pair']}; if you disagree: {_disagreement(entry)}"
    yield f"    benchmark version {entry['benchmark_version']}; {_ran('scanned', entry['run'])}"
    texts = entry["texts"]
    if texts:
        first = min(start for start, _ in entry["characters"].values()) - texts["from_character"]
        yield f"    document: {_short(texts['document'][first:])}"
        item_texts = (texts["item"][part] for part in ("question", "answer", "passage"))
        yield f"    item:     {_short(' / '.join(filter(None, item_texts)))}"


def _place(entry: Told, part: str) -> str:
    start, stop = entry["characters"][part]
    within = f" of {entry['parts'][part]}" if entry["parts"][part] else ""
    overlap = entry[f"{part}_overlap"]
    share = "" if overlap is None else f" ({overlap:.2f})"
    return f"{part}{share} at characters {start}-{stop}{within}"


def _documents(entry: Told) -> str:
    """Every document in which the pair stands, this one among them."""
    documents = entry["documents"]
    named = [_document_name(one) for one in documents[:_MOST_DOCUMENTS]]
    n_more = len(documents) - len(named)
    more = f", and {n_more:,} more (--json has all)" if n_more else ""
    return f"the same stands in {counted(len(documents), 'document')}: {', '.join(named)}{more}"


def _document_name(one: Told) -> str:
    place = f"{one['shard']}:{one['row']}"
    return f"{one['id']} ({place})" if one["id"] else place


def _disagreement(entry: Told) -> str:
    """The command that clears a leak, or makes one of anything else."""
    verdict = "template" if entry["is_contaminated"] else "leak"
    return f"decon-assets review set {entry['pair']} {verdict}"


def _noted(note: str) -> str:
    return f" ({_short(note)})" if note else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


def _ran(what: str, run: Told) -> str:
    if run["id"] is None:
        return f"{what} {run['at']}, in a run that is not known to this instance"
    return f"{what} in run {run['id']} ({run['at']})"


def _lines_of_mixture(one: Told) -> Iterator[str]:
    yield f"  {one['mixture']}: {one['state']}"
    for reason in one["reasons"]:
        yield f"    {_reason(reason)}"
    if one["run"]:
        age = (
            "" if one["is_todays"] else "; inputs or settings changed since: it will be built anew"
        )
        yield f"    {_ran('built', one['run'])}{age}"


def _reason(reason: Told) -> str:
    if reason["why"] not in ("leak", "question only"):
        return ": ".join(filter(None, (reason["why"], reason.get("detail"))))
    item = f"{reason['benchmark']} {reason['split']} {reason['instance_index']}"
    more = f"; {reason['detail']}" if reason.get("detail") else ""
    return f"{reason['why']} of {item}, by {reason['detector']}, score {reason['score']:.3f}{more}"


def _line_of_blend(one: Told) -> str:
    told = [f"in it, {_times(one['n_texts'])}" if one["n_texts"] else "not in it"]
    if one["n_replaced"]:
        told.append(f"a test item took its place, {_times(one['n_replaced'])}")
    return f"  {one['blend']}: {'; '.join(told)}"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


COMMAND = Command(why, (add_arguments, add_config), DESCRIPTION, EPILOG)
