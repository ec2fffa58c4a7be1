"""Make the two report databases that are compared, from the inputs on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from decon_core.config.load import Report, config_from, load_config, policy_from, read_policy
from decon_core.config.policy import Policy, decision_fields, unknown_benchmarks
from decon_core.decisions.candidates import NO_EVIDENCE
from decon_core.errors import ConfigError, MissingError, Problem, StaleError
from decon_core.index.term_weights import require_counted_under, require_frozen_from
from decon_core.library.page import report_in
from decon_core.mixtures.builder import Builder
from decon_core.planner import Plan
from decon_core.report.database import write_database
from decon_core.report.gather import run_table, small_tables, write_matches
from decon_core.scan.coverage import missing_scan_results, scan_fingerprint
from decon_core.storage.store import Store

_NO_TEXTS = Report(snippets="off")


def database_of(named: Path) -> Path:
    """Return the database of a report, a decon.toml or a folder scan."""
    if named.suffix == ".toml":
        return Store(load_config(named).store).report
    return report_in(named) if named.is_dir() else named


def policy_in(path: Path, *, like: Policy) -> Policy:
    """Read the policy of a decon.toml, or of a policy file; `like` has the settings it omits."""
    values = read_policy(path)  # once: the path may be a pipe
    if "corpus" in values:
        return config_from(values, path).policy
    return policy_from(values, path, like=like)


def judge_twice(config_path: Path, other: Path, works: Sequence[Path]) -> list[str]:
    """Write the report of one scan under the policy of its configuration, and under another policy.

    Returns notes: the shards and benchmarks left out because they were not scanned, and whether
    the other policy changes nothing.
    """
    config = load_config(config_path)
    policy = policy_in(other, like=config.policy)
    plan = Plan(config, Store(config.store))
    builder, notes = _scanned(plan)
    if not builder.packs:
        problem = Problem(str(config_path), "no pack", "a scanned corpus", "Run `decon-assets run`")
        raise MissingError(problem)
    if problems := [*unknown_benchmarks(policy, plan.benchmarks)]:
        raise ConfigError(problems)
    _require_same_scan(builder, policy, other)
    packs, gaps = builder.packs, builder.gaps
    notes += [
        f"left out: shard {gap.shard.name} for {', '.join(gap.lacking)}: {gap.reason}"
        for gap in gaps
    ]
    if policy == config.policy:
        notes.append(f"{other} does not change the policy of {config_path}")
    for policy_of_side, work in zip((config.policy, policy), works, strict=True):
        reader = replace(builder, policy=policy_of_side).reader
        run = run_table(reader, _NO_TEXTS, "", gaps)
        matches = write_matches(reader, packs, work.with_suffix(".matches"), gaps)
        tables = {**small_tables(reader, packs, gaps), "runs": run}
        write_database(work, tables, {"matches": matches})
    return notes


def _scanned(plan: Plan) -> tuple[Builder, list[str]]:
    """Return the scanned part of a configuration, and notes on benchmarks that were not scanned."""
    config, store, results = plan.config, plan.store, plan.scan_results
    require_counted_under(store, config.policy)
    require_frozen_from(store, config.term_weights.benchmarks)
    versions = [
        version
        for version in plan.indexed_versions
        if version.benchmark not in plan.stale_benchmarks
        and len(missing_scan_results(results, plan.packs, [version])) < plan.n_shards
    ]
    why = "not scanned as it is now; `decon-assets run` does, `decon-assets status` says why"
    names = {version.benchmark for version in versions}
    notes = [f"left out: benchmark {name}: {why}" for name in plan.benchmarks if name not in names]
    if not versions:
        found, remedy = "no scanned benchmark", "Run `decon-assets run`"
        raise MissingError(Problem(str(config.path), found, "at least one", remedy))
    return replace(plan.builder_of(versions), evidence=NO_EVIDENCE), notes


def _require_same_scan(builder: Builder, policy: Policy, path: Path) -> None:
    store = builder.store
    if scan_fingerprint(store, policy) == scan_fingerprint(store, builder.policy):
        return
    changed = [
        field.name
        for field in fields(builder.policy)
        if field.name not in decision_fields()
        and getattr(policy, field.name) != getattr(builder.policy, field.name)
    ]
    raise StaleError(
        Problem(
            str(path),
            f"this policy needs a new scan, because it changes {', '.join(changed)}; --policy can "
            "compare only thresholds, kinds and common n-grams",
            remedy="Run `decon-assets run` with this policy in a configuration with its own store, "
            "then compare the two configurations",
        )
    )
