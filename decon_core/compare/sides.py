"""What people name, as the databases that are compared."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa

from decon_core.config import Showing, load_config
from decon_core.errors import InputError, MissingError, Problem, StaleError
from decon_core.exchange.folder import is_scan, read_folder
from decon_core.folder_scan import load_policy
from decon_core.mixtures.build import Builder
from decon_core.mixtures.choice import Sight
from decon_core.mixtures.needs import require_scanned
from decon_core.policy import DECISION_FIELDS, Policy
from decon_core.registry import builder_of
from decon_core.report.database import write_database
from decon_core.report.gather import at_hand, settings, write_matches
from decon_core.store import Store
from decon_core.tiles import scan_fingerprint

_NO_TEXTS = Showing(snippets=False)


def database_of(named: Path, work: Path) -> Path:
    """The database of a side; where it has none, one is written to `work`."""
    if named.suffix == ".toml":
        return Store(load_config(named).store).report
    if not named.is_dir():
        return named
    if not is_scan(named):
        expected = "a report's database, a decon.toml, or a folder of `decon-assets scan`"
        raise InputError(Problem(str(named), "a folder of something else", expected))
    read_folder(named, work)
    return work


def policy_in(path: Path, *, like: Policy) -> Policy:
    """The policy of a decon.toml; or of a file of settings, which has the others from `like`."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        values = {}  # what is wrong with it is said by whoever reads it next
    return load_config(path).policy if "corpus" in values else load_policy(path, like=like)


def judge_twice(config_path: Path, other: Path, works: Sequence[Path]) -> None:
    """Write what one scan comes to by the policy of a configuration, and by another one."""
    config = load_config(config_path)
    builder = builder_of(config, Store(config.store))
    if not builder.packs:
        expected = "a corpus that was scanned"
        raise MissingError(Problem(str(config_path), "no pack", expected, "`decon-assets run`"))
    policy = policy_in(other, like=config.policy)
    _require_same_scan(builder, policy, other)
    for one, work in zip((config.policy, policy), works, strict=True):
        _judge(replace(builder, policy=one), work)


def _require_same_scan(builder: Builder, policy: Policy, path: Path) -> None:
    store = builder.store
    if scan_fingerprint(store, policy) == scan_fingerprint(store, builder.policy):
        return
    changed = [
        field.name
        for field in fields(Policy)
        if field.name not in DECISION_FIELDS
        and getattr(policy, field.name) != getattr(builder.policy, field.name)
    ]
    raise StaleError(
        Problem(
            str(path),
            f"a policy under which nothing was scanned here (other: {', '.join(changed)})",
            "one that differs in what counts as a leak only: thresholds, common n-grams",
            "`decon-assets run` with it, in a configuration with a store of its own; then compare "
            "the two configurations",
        )
    )


def _judge(builder: Builder, database: Path) -> None:
    sight = builder.sight
    for pack in builder.packs:
        require_scanned(sight, pack, sight.versions)
    folder = database.with_suffix(".matches")
    matches = write_matches(sight, builder.packs, folder)
    write_database(database, _tables(sight, builder), {"matches": matches})


def _tables(sight: Sight, builder: Builder) -> dict[str, pa.Table]:
    return {**at_hand(sight, builder.packs), "runs": settings(sight, _NO_TEXTS, "")}
