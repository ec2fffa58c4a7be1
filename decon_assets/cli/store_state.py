"""What `run`, `register` and `status` print of a store: what was not read, what is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from decon_assets.terminal.options import flag
from decon_assets.terminal.output import Say, say
from decon_core.config.load import Config
from decon_core.config.open_store import writable_store
from decon_core.corpus.registration import changed_shards, forget_stamps, list_packs
from decon_core.decisions.not_read import SETTINGS, Account, What
from decon_core.errors import Problem
from decon_core.feature import feature_entries
from decon_core.planner import Plan
from decon_core.quality.integrity import remove_damaged, to_remove, verify_store
from decon_core.storage.listing import Skipped
from decon_core.storage.mirror import Mirror
from decon_core.storage.store import Store
from decon_core.wording import counted

AllowUnread = flag(
    "--allow-unread",
    "do not exit with code 4 if there is text in fields that no source reads, or rows without "
    "text; the code is still 4 if an output was not built because of them",
)

_MOST_LISTED = 5


def accepting_settings(config: Config) -> list[str]:
    """Return the settings of a configuration that accept what was not read."""
    is_set = config.policy.unreadable == "drop", config.corpus.unread == "report"
    return [*compress(SETTINGS, is_set)]


def say_not_read(plan: Plan, skipped: Sequence[Skipped]) -> Account:
    """Print what was not read of the shards; return the account that the settings leave open."""
    account = plan.not_read(skipped)
    in_mixtures = {
        "row": 'mixtures leave them out, because [policy] has unreadable = "drop"'
        if plan.config.policy.unreadable == "drop"
        else 'mixtures of their packs are not built unless [policy] has unreadable = "drop"',
        "shard": "mixtures of their packs are not built",
        "short": "check `text`, `messages` or `layout` of the source",
    }
    for line in account.lines():
        if line.what != "file":
            say(f"\n{line.text}")
            leave = "to leave it unread on purpose, add to its [[corpus.source]]"
            say(in_mixtures.get(line.what, f"{leave}:  {account.setting(line.source)}"))
            for advice in account.advice(line.source) if line.what == "text" else ():
                say(f"to read {advice}")
    tables: Mapping[What, str] = {"row": "unreadable", "shard": "not_scanned"}
    for what, table in tables.items():
        if account.open(what) and plan.store.report.is_file():
            say(f'to list all {what}s: decon-assets report --query "FROM {table}"')
    return account.accepting(*accepting_settings(plan.config))


def code_with(account: Account, code: int, allowed: Iterable[str]) -> int:
    """Return the exit code of a command that ends with a code if everything was read.

    A stage that needs what was not read fails, and no option of the command changes that.
    """
    if code and account.open("row", "text", "no text"):
        return account.exit_code
    return code or account.accepting(*allowed).exit_code


def say_skipped(skipped: Sequence[Skipped], store: Store | None = None) -> None:
    """Print what lies beside the shards: all of it, or with a store a few and where the rest is."""
    for is_on_purpose, what in ((False, "not read"), (True, "not read, on purpose")):
        named = [file for file in skipped if file.is_on_purpose == is_on_purpose]
        for file in named[:_MOST_LISTED] if store else named:
            say(f"{what}: {file}")
        if store and len(named) > _MOST_LISTED:
            say(f"{what}: {len(named):,} files, folders and links, all listed in {store.skipped}")


def remove_damaged_files(config: Config, say: Say) -> None:
    """Remove the damaged files of the store, or fetch them again; have changed shards hashed."""
    with writable_store(config) as store:
        removed = remove_damaged(store, damaged_files(store, say))
        if removed and config.kept is not None:  # some may be intact behind the URL
            mirror = Mirror(config.store, config.kept)
            mirror.pull()
            fetched = {path for path in removed if path.exists()}
            damaged = remove_damaged(store, damaged_files(store, say)) if fetched else []
            mirror.discard(to_remove(store, damaged))
            for path in sorted(fetched - {*damaged}):
                say(f"  fetched again: {path}")
            removed = [path for path in removed if path not in fetched or path in damaged]
        forget_stamps(store, {problem.where for problem in changed_shards_of(store, say)})
    made_by_command = feature_entries("folders").keys() - feature_entries("products").keys()
    for path in removed:
        if path.exists():
            say(f"  restored from its copy: {path}")
            continue
        folder = path.relative_to(store.root).parts[0]
        remedy = f"; `decon-assets {folder}` rebuilds it" if folder in made_by_command else ""
        say(f"  removed: {path}{remedy}")


def damaged_files(store: Store, say: Say) -> list[Problem]:
    """Read every file of a store; print and return the problems of damaged files."""
    return _say_problems(verify_store(store), "file", "in the store read, {} damaged", say)


def changed_shards_of(store: Store, say: Say) -> list[Problem]:
    """Read every shard; print and return the problems of changed ones."""
    found = changed_shards(list_packs(store))
    return _say_problems(found, "shard", "in the corpus read, {} changed", say)


def _say_problems(
    results: Iterable[Problem | None], noun: str, summary: str, say: Say
) -> list[Problem]:
    """Print how many files were read, and each problem; return the problems."""
    every = [*results]
    problems = [problem for problem in every if problem]
    say(f"{counted(len(every), noun)} {summary.format(len(problems))}")
    for problem in problems:
        say(f"  {problem.where}: {problem.found}")
    return problems
