"""Checks before a mixture is built: all that it needs was read, found and judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from decon_core.benchmarks.records import Version
from decon_core.config.detector_registry import get
from decon_core.config.mixtures import Mixture
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shard_head import no_row_read
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.not_read import UnreadRule, account_of, has_no_row, ledgers_of
from decon_core.errors import IncompleteError, MissingError, Problem, StaleError
from decon_core.feature import feature_entries
from decon_core.storage.paths import parse_path


def require_unchanged(mixture: Mixture, pack: Pack, gone: Collection[str]) -> None:
    """Raise `StaleError` if shards of the pack are among those that were changed or removed.

    `mixture`: a control has the sources of its treatment (`Builder.effective`).
    """
    taken = pack.shards if mixture.has_source(pack.source.name) else ()
    StaleError.raise_for(
        Problem(shard.path, "changed or removed since it was registered", "", _REGISTER)
        for shard in taken
        if shard.path in gone
    )


def require_readable(reader: MatchReader, pack: Pack) -> None:
    """Raise `IncompleteError` if rows could not be read and the policy does not allow that.

    A shard without any readable row always raises: a wrong field name is more likely than a shard
    to leave out.
    """
    problems = []
    source = pack.source
    is_whole = not any(reader.ledger(shard)["n_documents"] for shard in pack.shards)
    # The other shards of the source are read as it says, so the setting is right for them.
    where = f" (source {source.name!r})" if is_whole else " (in its own [[corpus.source]])"
    for shard in pack.shards:
        ledger = reader.ledger(shard)
        unreadable, invalid = ledger["unreadable"], ledger["invalid_utf8"]
        if has_no_row(ledger):
            first = f"the first: {unreadable[0]['reason']} ({unreadable[0]['detail']})"
            path = parse_path(shard.path)
            problems.append(no_row_read(path, source, len(unreadable), first, remedy=where))
        elif reader.policy.unreadable == "block":
            problems += [
                Problem(_place(shard, row), f"{row['reason']} ({row['detail']})", *_A_DOCUMENT)
                for row in unreadable
            ]
        if reader.policy.invalid_utf8 == "block":
            problems += [
                Problem(_place(shard, row), f"bytes that are not UTF-8 ({row['detail']})", *_UTF8)
                for row in invalid
            ]
    IncompleteError.raise_for(problems)


def require_read(reader: MatchReader, pack: Pack, rule: UnreadRule) -> None:
    """Raise `IncompleteError` if text of the pack was not read, and that is not allowed."""
    if not rule.is_blocking:
        return
    account = account_of(ledgers_of(reader, [pack]), rule)
    setting = account.setting(pack.source.name)
    remedy = (
        f"read it, or set `{setting}` under [[corpus.source]] to leave it unread; "
        '`unread = "report"` under [corpus] allows all unread text'
    )
    IncompleteError.raise_for(
        Problem(f"pack {pack.name!r}", line.text, remedy=remedy)
        for line in account.lines()
        if line.what in ("text", "no text")
    )


def require_searched(ledgers: Iterable[Mapping[str, Any]]) -> None:
    """Raise `IncompleteError` if no document was searched: then nothing was found in none."""
    if not any(ledger["n_documents"] for ledger in ledgers):
        found = "no document was searched, so no item can be called clean"
        remedy = "check the paths under [[corpus.source]], and whether the files are empty"
        raise IncompleteError(Problem("corpus", found, remedy=remedy))


def require_nominated(reader: MatchReader, mixture: Mixture) -> None:
    """Raise `MissingError` if a mixture names a nominator whose places were not found yet."""
    made = {nomination.detector for nomination in reader.nominations}
    where = f"mixture {mixture.name!r}: leaks.detectors"
    MissingError.raise_for(
        Problem(where, f"the asset `{name}` is not built", remedy=_RUN)
        for name in mixture.leaks.detectors
        if name in feature_entries("nominations") and name not in made
    )


def require_calibrated(reader: MatchReader, mixture: Mixture, versions: Sequence[Version]) -> None:
    """Raise `MissingError` if too few judged pairs are behind a probability that a mixture uses."""
    leaks = mixture.leaks
    if leaks.min_probability is None:
        return
    chosen = leaks.detectors or reader.policy.detectors
    names = [name for name in chosen if not get(name).acts(reader.policy.leak)]
    problems = []
    for name in names:
        lacking = [
            version.benchmark
            for version in versions
            if not reader.calibration.curve_for(name, version.benchmark, leaks.min_judged)
        ]
        if lacking:
            found = f"{reader.calibration.n_judged(name):,} judged pairs of {name}"
            expected = f"at least {leaks.min_judged:,} (min_judged)"
            where = f"mixture {mixture.name!r}: leaks.min_probability"
            problems.append(Problem(where, found, expected, _JUDGE_MORE))
    MissingError.raise_for(problems)


_RUN = "`decon-assets run` builds it, or says why it cannot"
_REGISTER = "`decon-assets run` registers and scans it, and builds the mixture"
_JUDGE_MORE = (
    "judge more with `decon-assets judge` or `decon-assets review`; without min_probability, the "
    "mixture acts only on verdicts"
)

# What is expected of a row, and the remedy.
_A_DOCUMENT = (
    "a document",
    'repair the file, or set policy.unreadable = "drop" to leave such rows out',
)
_UTF8 = (
    "UTF-8",
    (
        'repair the file, or set policy.invalid_utf8 = "replace" to write such rows with '
        'replacement characters, or "drop" to leave them out'
    ),
)


def _place(shard: Shard, row: dict[str, Any]) -> str:
    # Lines are counted from one, as in editors; rows of tables from zero, as in libraries.
    is_line = row["offset"] is not None
    return f"{shard.path}: line {row['row'] + 1}" if is_line else f"{shard.path}: row {row['row']}"
