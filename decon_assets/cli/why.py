"""`decon-assets why`: explain what happened to one document, and in which runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_assets.cli.options import ConfigPath, argument, flag, option, repeatable
from decon_assets.cli.terminal.output import say, warn
from decon_core.config.load import Config, load_config
from decon_core.config.mixtures import mixture_named
from decon_core.config.open_store import open_store
from decon_core.errors import Problem
from decon_core.storage.store import Store
from decon_core.wording import counted

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from decon_core.mixtures.build import Builder

JsonObject = dict[str, Any]

_MOST_MATCHES = 5  # in the terminal
_MOST_DOCUMENTS = 100  # of a pair, in the terminal
_MOST_TEXT = 400  # characters of each text
_CLOCK_SECONDS = 0.05  # by which the clocks of files and of events may differ


def why(
    document: str = argument("the document's id, or SHARD:ROW", "DOC_ID"),
    *,
    shard: str | None = option("look in this shard only", "NAME", default=None),
    mixture: list[str] = repeatable("show this mixture, in place of all declared mixtures", "NAME"),
    everywhere: bool = flag("--everywhere", "read all rows, to find every document with this id"),
    as_json: bool = flag("--json", "print everything as JSON"),
    config: ConfigPath,
) -> int:
    """Explain what happened to one document, and in which runs.

    It shows the matches in the document, and for each mixture whether the document was kept,
    removed or cut: by which detector, for which item, with which score; the benchmark version,
    shard, settings and idf snapshot; and the Dagster runs that made the tile and the mixture. Every
    match has the key of its pair, with the command to overrule it; a near miss shows what it lacks
    to be a leak.

    The command reads tiles, lists of removals and manifests, and needs no report. An id is looked
    up among documents with matches, then in all rows of all shards (with --shard, of one shard).

    Examples:
      decon-assets why page-17
      decon-assets why shelf-0001.jsonl.gz:393          by shard and row, counted from 0
      decon-assets why page-17 --mixture decontaminated --json
      decon-assets why page-17 --everywhere             all rows with this id

    Exit codes: 0 found, 1 there is no such document, 2 an input is wrong.
    """
    from decon_core.inventory import stale_benchmarks
    from decon_core.report.why import account, places_of

    loaded = load_config(config)
    mixtures = [mixture_named(loaded.mixtures, name) for name in mixture] or loaded.mixtures
    blends = () if mixture else loaded.blends
    builder = _builder(loaded, open_store(loaded))
    unread: list[Problem] = []
    accounts: list[JsonObject] = []
    with _history(loaded, config) as instance:
        for place in places_of(
            builder, document, shard=shard, is_everywhere=everywhere, on_unread=unread.append
        ):
            one = account(builder, place, mixtures=mixtures, blends=blends, showing=loaded.showing)
            if one["document"]["is_there"]:
                _add_runs(one, instance, place.pack.name)
                accounts.append(one)
    if not accounts:
        warn(_not_found(builder, document, shard))
    for problem in unread:
        warn(f"note: not searched completely: {problem}")
    if not accounts:
        return 1
    if as_json:
        say(json.dumps(accounts, indent=1, ensure_ascii=False))
        return 0
    for one in accounts:
        for line in _lines(one):
            say(line)
    if stale_benchmarks(loaded, builder.store):
        say("\nnote: benchmarks changed since they were normalized: see `decon-assets status`")
    return 0


def _builder(config: Config, store: Store) -> Builder:
    """Return a builder for what is in the store, even if source files have moved since."""
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


def _not_found(builder: Builder, document: str, shard: str | None) -> Problem:
    n_shards = sum(len(pack.shards) for pack in builder.packs)
    where = f"shard {shard!r}" if shard else f"{n_shards} registered shards"
    name, _, row = document.rpartition(":")
    known = {name for _, shard in builder.shards for name in (shard.name, shard.path)}
    remedy = "the field `id` of its source in decon.toml holds the ids"
    if name and row.isdecimal() and name not in known:
        remedy = f"no shard is registered as {name!r}; if it was renamed, use the new name"
    return Problem(
        f"document {document!r}",
        f"no document with this id in {where}",
        "the id of a document, or SHARD:ROW",
        remedy,
    )


# Which run ----------------------------------------------------------------------------------------


def _add_runs(account: JsonObject, instance: DagsterInstance | None, pack: str) -> None:
    """Add to each match and mixture the run that made its tile or share."""
    from decon_assets.partitions import cell, share

    for entry in account["found"]:
        key = cell(pack=pack, benchmark=entry["benchmark"])
        entry["run"] = _run(instance, "scan", str(key), entry["made"])
    for one in account["mixtures"]:
        key = share(pack=pack, mixture=one["mixture"])
        one["run"] = one["made"] and _run(instance, "mixture", str(key), one["made"])


@contextmanager
def _history(config: Config, config_path: Path) -> Iterator[DagsterInstance | None]:
    """Open the Dagster instance, only to read it; None if there is none.

    Also None for a store behind a URL: the times of fetched files are those of the download.
    """
    from decon_assets.instance.home import home_for

    home = home_for(config_path)
    if config.kept is not None or not (home / "dagster.yaml").is_file():
        yield None
        return
    from dagster import DagsterInstance

    with DagsterInstance.from_config(str(home.resolve())) as instance:
        yield instance


def _run(instance: DagsterInstance | None, asset: str, key: str, made: str) -> JsonObject:
    """Return the run that materialized the asset when the file was written.

    Of several concurrent runs, it is the first that reported the partition: the others found the
    file.
    """
    written = Path(made).stat().st_mtime
    at = datetime.fromtimestamp(written, UTC)
    run: JsonObject = {"id": None, "at": at.isoformat(timespec="seconds"), "partition": key}
    if instance is None:
        return run
    active = _active_runs(instance, asset, at)
    if len(active) > 1:
        active &= {_first_to_report(instance, asset, key, written)}
    return {**run, "id": next(iter(active), None)}


def _active_runs(instance: DagsterInstance, asset: str, at: datetime) -> set[str | None]:
    from dagster import AssetKey, RunsFilter

    margin = timedelta(seconds=_CLOCK_SECONDS)
    then = RunsFilter(created_before=at + margin, updated_after=at - margin)
    runs = instance.get_runs(then)
    return {run.run_id for run in runs if AssetKey(asset) in (run.asset_selection or ())}


def _first_to_report(instance: DagsterInstance, asset: str, key: str, written: float) -> str | None:
    from dagster import AssetKey, AssetRecordsFilter

    wanted = AssetRecordsFilter(
        asset_key=AssetKey(asset),
        asset_partitions=[key],
        after_timestamp=written - _CLOCK_SECONDS,
    )
    found = instance.fetch_materializations(wanted, limit=1, ascending=True).records
    return found[0].run_id if found else None


# As text ------------------------------------------------------------------------------------------


def _lines(account: JsonObject) -> Iterator[str]:
    one = account["document"]
    size = "" if one["n_tokens"] is None else f", {counted(one['n_tokens'], 'token')}"
    yield f"{one['id'] or 'a row without an id'}: row {one['row']} of {one['shard']}{size}"
    yield f"  pack {one['pack']}, source {one['source']}, shard {one['shard_fingerprint']}"
    if one["why_unreadable"]:
        yield f"  could not be read: {one['why_unreadable']}"
    yield ""
    yield from _lines_of_matches(account)
    yield ""
    yield "mixtures:"
    for mixture in account["mixtures"]:
        yield from _lines_of_mixture(mixture)
    blends = [blend for blend in account["blends"] if blend["is_built"]]
    if blends:
        yield "blends:"
        yield from map(_line_of_blend, blends)
    settings = account["settings"]
    yield ""
    yield f"settings: scan {settings['scan']}, idf snapshot {settings['idf_snapshot']}"
    yield ""


def _lines_of_matches(account: JsonObject) -> Iterator[str]:
    if account["not_scanned_against"]:
        why = account["why_not_scanned"]
        yield f"not scanned against {', '.join(account['not_scanned_against'])}: {why}"
    matches = account["found"]
    if not matches:
        yield _line_of_no_match(account)
        return
    yield _call_of_document(matches)
    for entry in matches[:_MOST_MATCHES]:
        yield from _lines_of_entry(entry)
    if len(matches) > _MOST_MATCHES:
        yield f"  … and {len(matches) - _MOST_MATCHES} more (--json has all)"


def _line_of_no_match(account: JsonObject) -> str:
    if not account["not_scanned_against"]:
        settings = account["settings"]
        floor = f"{settings['evidence_floor']:g}"
        if settings["policy"]["keep_question_only"]:
            floor += f", or {floor} for the question alone"
        return f"no match at or above the evidence floor ({floor})"
    unknown = "no result for these benchmarks"
    return f"{unknown}; no match in the others" if account["scanned_against"] else unknown


def _call_of_document(found: Sequence[JsonObject]) -> str:
    if any(entry["is_contaminated"] for entry in found):
        return "matches:"
    if any(entry["is_question_only"] for entry in found):
        return "neither a leak nor clean: it holds a question without its answer (question-only):"
    return "no leak; closest matches:"


def _call(entry: JsonObject) -> str:
    if entry["is_contaminated"]:
        return "leak"
    return "question-only" if entry["is_question_only"] else "no leak"


def _lines_of_entry(entry: JsonObject) -> Iterator[str]:
    call = _call(entry)
    item = f"{entry['benchmark']} {entry['split']} {entry['instance_index']}"
    score = f"score {entry['score']:.3f} (threshold {entry['threshold']:g})"
    yield f"  {call}: {item}, by {entry['detector']}, {score}"
    places = [_place(entry, part) for part in entry["characters"]]
    if places:
        yield f"    {'; '.join(places)}"
    if entry["is_question_only"]:
        yield "    the document holds its question, verbatim or nearly so, without its answer"
    if entry["missing"]:
        yield f"    missing for a leak by score: {'; '.join(entry['missing'])}"
    if entry["said"]:
        verdict = entry["said"]
        reviewer = f" by {verdict['by']}" if verdict["by"] else ""
        yield f"    verdict{reviewer}: {verdict['verdict']}{_noted(verdict['note'])}"
    if len(entry["documents"]) > 1:
        yield f"    {_documents(entry)}"
    yield f"    pair {entry['pair']}; to overrule: {_overruling_command(entry)}"
    yield f"    benchmark version {entry['benchmark_version']}; {_in_run('scanned', entry['run'])}"
    texts = entry["texts"]
    if texts:
        first = min(start for start, _ in entry["characters"].values()) - texts["from_character"]
        yield f"    document: {_short(texts['document'][first:])}"
        item_texts = (texts["item"][part] for part in ("question", "answer", "passage"))
        yield f"    item:     {_short(' / '.join(filter(None, item_texts)))}"


def _place(entry: JsonObject, part: str) -> str:
    start, stop = entry["characters"][part]
    within = f" of {entry['parts'][part]}" if entry["parts"][part] else ""
    overlap = entry[f"{part}_overlap"]
    share = "" if overlap is None else f" ({overlap:.2f})"
    return f"{part}{share} at characters {start}-{stop}{within}"


def _documents(entry: JsonObject) -> str:
    """List the documents with this pair, including this one."""
    documents = entry["documents"]
    named = [_document_name(one) for one in documents[:_MOST_DOCUMENTS]]
    n_more = len(documents) - len(named)
    more = f", and {n_more:,} more (--json has all)" if n_more else ""
    return f"the same pair is in {counted(len(documents), 'document')}: {', '.join(named)}{more}"


def _document_name(one: JsonObject) -> str:
    place = f"{one['shard']}:{one['row']}"
    return f"{one['id']} ({place})" if one["id"] else place


def _overruling_command(entry: JsonObject) -> str:
    """Return the command that clears a leak, or makes another match a leak."""
    verdict = "template" if entry["is_contaminated"] else "leak"
    return f"decon-assets review set {entry['pair']} {verdict}"


def _noted(note: str) -> str:
    return f" ({_short(note)})" if note else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


def _in_run(what: str, run: JsonObject) -> str:
    if run["id"] is None:
        return f"{what} {run['at']}, in a run that this Dagster instance does not know"
    return f"{what} in run {run['id']} ({run['at']})"


def _lines_of_mixture(one: JsonObject) -> Iterator[str]:
    yield f"  {one['mixture']}: {one['state']}"
    for reason in one["reasons"]:
        yield f"    {_reason(reason)}"
    if one["run"]:
        age = "" if one["is_todays"] else "; out of date: inputs or settings changed since"
        yield f"    {_in_run('built', one['run'])}{age}"


def _reason(reason: JsonObject) -> str:
    if reason["why"] not in ("leak", "question only"):
        return ": ".join(filter(None, (reason["why"], reason.get("detail"))))
    item = f"{reason['benchmark']} {reason['split']} {reason['instance_index']}"
    more = f"; {reason['detail']}" if reason.get("detail") else ""
    return f"{reason['why']} of {item}, by {reason['detector']}, score {reason['score']:.3f}{more}"


def _line_of_blend(one: JsonObject) -> str:
    parts = [f"included {_times(one['n_texts'])}" if one["n_texts"] else "not included"]
    if one["n_replaced"]:
        parts.append(f"replaced by a test item {_times(one['n_replaced'])}")
    return f"  {one['blend']}: {'; '.join(parts)}"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
