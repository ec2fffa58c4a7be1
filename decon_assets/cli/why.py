"""`decon-assets why`: explain what happened to one document, and in which runs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_assets.terminal.options import ConfigPath, argument, flag, optional, repeatable
from decon_assets.terminal.output import say, warn
from decon_core.config.load import Config, load_config
from decon_core.config.mixtures import mixture_named
from decon_core.config.open_store import open_store
from decon_core.corpus.registration import all_skipped_in
from decon_core.errors import Problem
from decon_core.feature import feature_objects
from decon_core.planner import Plan
from decon_core.report.why import account, as_text, places_of, wrapped
from decon_core.wording import counted

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from decon_core.mixtures.builder import Builder

JsonObject = dict[str, Any]

_MOST_WIDTH = 100  # Texts are not wrapped wider.
_CLOCK_SECONDS = 0.05  # The clocks of files and of events may differ so much.


def why(
    document: str = argument("the document's id, or SHARD:ROW", "DOC_ID"),
    *,
    shard: str | None = optional("search only this shard", "NAME"),
    mixture: list[str] = repeatable("show only this mixture (default: all declared ones)", "NAME"),
    everywhere: bool = flag("--everywhere", "read all rows to find every document with this id"),
    verbose: bool = flag("--verbose", "also print the runs, versions and settings"),
    as_json: bool = flag("--json", "print everything as JSON"),
    config: ConfigPath,
) -> int:
    """Explain what happened to one document, and in which runs.

    For each match in the document, the command prints the texts of the document and of the item
    (words that differ are in brackets), and the `review` command that overrules the result. If the
    match is not a leak, the command prints the reason. For each mixture, it prints whether the
    document was kept, removed or cut, and the detector, item and score that decided this. --verbose
    adds the benchmark version, shard, settings, term weights and the Dagster runs that made the
    scan result and the mixture.

    The command reads scan results, lists of removals and manifests, and does not need a report. It
    looks up an id first among the documents with matches, then in all rows of all shards (with
    --shard, of this shard).

    Examples:
      decon-assets why page-17
      decon-assets why shelf-0001.jsonl.gz:393          by shard and row, counted from 0
      decon-assets why page-17 --mixture decontaminated --json
      decon-assets why page-17 --everywhere             all rows with this id

    Exit codes: 0 done; 1 there is no such document; 2 invalid input.
    """
    loaded = load_config(config)
    mixtures = [mixture_named(loaded.mixtures, name) for name in mixture] or loaded.mixtures
    plan = Plan(loaded, open_store(loaded))
    builder = plan.builder_of(plan.known_versions)
    unread: list[Problem] = []
    accounts: list[JsonObject] = []
    with _history(loaded, config) as instance:
        for place in places_of(
            builder, document, shard=shard, is_everywhere=everywhere, on_unread=unread.append
        ):
            of_features = {
                key: [] if mixture else account_of(loaded, builder, place)
                for key, account_of in feature_objects("why").items()
            }
            account_of_document = account(
                builder, place, mixtures=mixtures, of_features=of_features, showing=loaded.report
            )
            if account_of_document["document"]["is_there"]:
                _add_runs(account_of_document, instance, place.pack.name)
                accounts.append(account_of_document)
    if not accounts:
        warn(_not_found(builder, document, shard))
    for problem in unread:
        warn(f"note: the search is incomplete: {problem}")
    if not accounts:
        return 1
    if as_json:
        say(json.dumps(accounts, indent=1, ensure_ascii=False))
        return 0
    width = _MOST_WIDTH
    if sys.stdout.isatty():
        width = min(shutil.get_terminal_size().columns, width)
    for account_of_document in accounts:
        for line in as_text(account_of_document, width=width, has_runs=verbose).split("\n"):
            indent = len(line) - len(line.lstrip()) + 2
            say(wrapped(line, width, indent) if sys.stdout.isatty() else line)
    if plan.stale_benchmarks:
        say("\nnote: some benchmarks changed since they were normalized: see `decon-assets status`")
    return 0


def _not_found(builder: Builder, document: str, shard: str | None) -> Problem:
    n_shards = sum(len(pack.shards) for pack in builder.packs)
    where = f"shard {shard!r}" if shard else counted(n_shards, "registered shard")
    name, _, row = document.rpartition(":")
    known = {name for _, shard in builder.shards for name in (shard.name, shard.path)}
    remedy = "The ids are those in the field that `id` names in [[corpus.source]] of decon.toml"
    if name and row.isdecimal() and name not in known:
        remedy = f"No shard is registered as {name!r}; if it was renamed, use the new name"
        for skipped in all_skipped_in(builder.store):
            if f"/{skipped.path}".endswith(f"/{name.lstrip('/')}"):
                remedy = f"The file {name!r} was skipped: {skipped.why}"
    found, expected = f"no document with this id in {where}", "the id of a document, or SHARD:ROW"
    return Problem(f"document {document!r}", found, expected, remedy)


# The run that made a result -----------------------------------------------------------------------


def _add_runs(account: JsonObject, instance: DagsterInstance | None, pack: str) -> None:
    """Add to each match and mixture the run that made its scan result or share."""
    from decon_assets.partitions import scan_key, share

    for entry in account["found"]:
        key = scan_key(pack=pack, benchmark=entry["benchmark"])
        entry["run"] = _run(instance, "scan", str(key), entry["made"])
    for mixture in account["mixtures"]:
        key = share(pack=pack, mixture=mixture["mixture"])
        mixture["run"] = mixture["made"] and _run(instance, "mixture", str(key), mixture["made"])


@contextmanager
def _history(config: Config, config_path: Path) -> Iterator[DagsterInstance | None]:
    """Open the Dagster instance, only to read it; None if there is none.

    Also None for a store behind a URL: runs are found by the times of files, and files that were
    fetched have the time of their download.
    """
    from decon_assets.instance.history_errors import readable_instance
    from decon_assets.instance.home import home_for

    home = home_for(config_path)
    if config.kept is not None or not (home / "dagster.yaml").is_file():
        yield None
        return
    with readable_instance(home) as instance:
        yield instance


def _run(instance: DagsterInstance | None, asset: str, key: str, made: str) -> JsonObject:
    """Return the run that materialized the asset when the file was written.

    Of several concurrent runs, it is the first that reported the partition: the others found the
    file.
    """
    written = Path(made).stat().st_mtime
    at, margin = datetime.fromtimestamp(written, UTC), timedelta(seconds=_CLOCK_SECONDS)
    run: JsonObject = {"id": None, "at": at.isoformat(timespec="seconds"), "partition": key}
    if instance is None:
        return run
    from dagster import AssetKey, AssetRecordsFilter, RunsFilter

    then = RunsFilter(created_before=at + margin, updated_after=at - margin)
    active = {
        run.run_id
        for run in instance.get_runs(then)
        if AssetKey(asset) in (run.asset_selection or ())
    }
    if len(active) > 1:
        wanted = AssetRecordsFilter(
            asset_key=AssetKey(asset),
            asset_partitions=[key],
            after_timestamp=written - _CLOCK_SECONDS,
        )
        found = instance.fetch_materializations(wanted, limit=1, ascending=True).records
        active &= {run.run_id for run in found}
    return {**run, "id": next(iter(active), None)}
