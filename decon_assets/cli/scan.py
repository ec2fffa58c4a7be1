"""`decon-assets scan`: scan any folder, without Dagster.

Here options are declared and results printed; what an option does is in
`decon_core/library/scan.py` (`Request`).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from itertools import compress
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from decon_assets.cli.scan_estimates import say_estimates
from decon_assets.cli.scan_options import (
    pin_recipes,
    policy_from,
    require_apart,
    require_layout,
    sample_from,
    verdicts_from,
    with_recipes,
)
from decon_assets.cli.serve import export_engine
from decon_assets.terminal.options import (
    AllowSkipped,
    EngineOption,
    PolicyFile,
    argument,
    flag,
    nonempty,
    nonempty_path,
    option,
    optional,
    repeatable,
)
from decon_assets.terminal.output import say, say_next, say_rows, warn
from decon_assets.terminal.progress import ShardProgress
from decon_core.config import detector_registry as registry
from decon_core.config.policy import Policy, without_effect
from decon_core.config.sources import ONLY_SOURCE, Sketch, Source
from decon_core.config.validation import bytes_of
from decon_core.decisions.not_read import OPTIONS, Account
from decon_core.errors import InputError, Problem, format_problems
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT, blind_spots
from decon_core.storage.paths import is_url
from decon_core.storage.store import Store
from decon_core.wording import contain, counted, have, of_checkable, percent, said_by_rows, size

if TYPE_CHECKING:
    from decon_core.library.results import Outcome

_MOST_ORIGINS_LISTED = 5


def scan(
    corpus: str = argument(
        "the training data: a folder (read recursively), a file, a quoted glob or a URL, such as "
        "hf://datasets/ORG/NAME",
        "CORPUS",
        parser=nonempty,
    ),
    *,
    evals: Path = option(
        "benchmarks: a recipe file (.yaml), data files, or sets and names of the catalog "
        "(@frontier, @math,gsm8k); for data files and the catalog, recipes are written to "
        "OUT/evals.yaml",
        "PATH",
        parser=nonempty_path,
    ),
    out: Path | None = optional(
        "the output folder (default: NAME-scan in the current folder, where NAME is the name of "
        "the dataset or folder)",
        "DIR",
    ),
    policy: PolicyFile = None,
    preset: Literal["reference"] | None = optional(
        "a named set of defaults, which --policy overrides; reference: AI2's decon as "
        "published, with normalize_unicode, strip_markup and keep_no_answer off"
    ),
    verdicts: Path | None = optional(
        "verdicts from a manual review (docs/review.md), which override scores", "FILE"
    ),
    detectors: str | None = optional(
        f"detectors, comma-separated: {', '.join(registry.names())} (default: the policy's, "
        f"{', '.join(Policy().detectors)}); docs/detectors.md helps you choose",
        "NAMES",
    ),
    workers: int = option(
        "number of processes, or threads for small inputs (default 1)", "N", min=1, default=1
    ),
    engine: EngineOption = None,
    execution: Path | None = optional(
        "TOML file with an [execution] table of engine settings (docs/configuration.md)",
        "FILE",
    ),
    text: list[str] = repeatable(
        "read only this field and everything below it, such as metadata.text or "
        "messages[].content; several (--text prompt --text chosen) form one document (default: all "
        "text of a row)",
        "PATH",
    ),
    messages: str | None = optional(
        "read only the conversation in this field, instead of --text", "PATH"
    ),
    layout: str | None = optional(
        "read all rows in this layout, such as openai_chat (docs/layouts.md); by default, the "
        "layout of each row is recognized",
        "NAME",
    ),
    ignore: list[str] = repeatable("allow text at this path to stay unread", "PATH"),
    role: list[str] = repeatable("with --messages: read only turns of this role", "ROLE"),
    id_field: str = option(
        "field with the document id (default: id)", "FIELD", "--id", default="id"
    ),
    sample: str | None = optional(
        "scan only a sample, and estimate the leak rates of the corpus: 1% searches 1 % of the "
        "documents in every shard; 20shards downloads and searches only 20 complete shards "
        "(docs/studies/sampling.md)",
        "SHARE|Nshards",
    ),
    sample_seed: int | None = optional("with --sample: random seed (default 0)", "N", min=0),
    compat: bool = flag(
        "--compat",
        "also write OUT/compat/: reports in the format of AI2's decon, one file per shard",
    ),
    clean_evals: bool = flag(
        "--clean-evals",
        "also write OUT/clean/: the benchmarks without their leaked items, and a manifest",
    ),
    no_page: bool = flag(
        "--no-page", "do not write report.html and card.md; this saves a few seconds"
    ),
    sketch: bool = flag(
        "--sketch",
        "record in OUT/.store which n-grams occur where; a later scan with other benchmarks then "
        "reads only text that may contain a match (docs/sketch.md)",
    ),
    fail_on_leak: bool = flag(
        "--fail-on-leak", "exit with code 3 if anything leaked; no-answer items are not leaks"
    ),
    allow_unreadable: bool = flag(
        "--allow-unreadable", "do not exit with code 4 if individual rows are unreadable"
    ),
    allow_unread: bool = flag(
        "--allow-unread", "do not exit with code 4 if some fields with text were not read"
    ),
    allow_skipped: AllowSkipped = False,
    max_row_bytes: str = option(
        "do not read files that contain a longer row, to limit memory use (default 1 GB)",
        "SIZE",
        default="1 GB",
    ),
) -> int:
    """Search a folder of training data for benchmark items, without Dagster or a configuration.

    The command writes these files to OUT:
      report.html         a page that shows which benchmarks leaked, and where,
                          with the matching texts
      card.md             the result as a section for a dataset card
      matches.parquet     every match at or above the lowest recorded score, with
                          its score and whether it is a leak
      ledger.jsonl        the number of rows read in each shard, and unreadable
                          rows
      not_read.jsonl      everything that was not read, and why
      visibility.parquet  which items each detector can find, and why it cannot
                          find the others
      common.parquet      n-grams that are too common in the corpus to be evidence
                          of a leak
      summary.json        the totals

    Finished work is kept in OUT/.store, so a second scan reads only new shards, or the rest after a
    stopped run. A scan with other benchmarks reads everything again, because every score changes;
    if both scans use --sketch, it reads only text that may contain a match.

    Examples:
      decon-assets scan shards/ --evals evals.yaml --out found
      decon-assets scan hf://datasets/you/traces --evals @frontier      writes traces-scan/
      decon-assets scan 'hf://datasets/you/web@main/en/*.parquet' --evals @math --sample 20shards
      decon-assets scan chats/ --evals evals.yaml --messages messages --role user
      decon-assets scan ... --fail-on-leak            in a test: exit code 3 if anything leaked
      decon-assets scan ... --sample 1%               estimates from one document in a hundred
      duckdb -c "FROM 'found/matches.parquet' WHERE is_contaminated"

    Benchmarks of the catalog (`decon-assets catalog` lists them) are downloaded once, to
    ~/.cache/decon-assets/benchmarks. Benchmarks that cannot be downloaded, such as gated benchmarks
    without a token, are skipped and listed.

    Without --text, --messages and --layout, all text of a row is read, at any depth; text that the
    model does not see, such as reference answers, is recognized in published layouts and marked as
    "hidden" (docs/layouts.md). With one of these options, only the chosen text is read; other text
    of at least 8 words is counted as not read.

    Everything that is not a shard is listed in OUT/skipped.jsonl, with the reason.
    docs/configuration.md lists which files are skipped, and which skipped files affect the exit
    code.

    With --sample 1%, everything is read (and downloaded) but only 1 % of the documents are
    searched. With --sample 20shards, 20 random shards are read and searched, and no other shard is
    opened. OUT/sample.csv contains estimates for the whole corpus, with 95 % intervals. Because the
    scan is incomplete, no item is called clean. A later scan without --sample searches every
    document.

    Exit codes (the first that applies):
      2  invalid input; nothing was scanned
      1  a file, or every row in it, could not be read (all other files were
         scanned); or no document is long enough to be searched
      3  something leaked (only with --fail-on-leak)
      6  the chosen detectors cannot find any of the items, so it is unknown
         whether any of them leaked
      4  some rows or some text of the rows were not read, or a shard has no text,
         or files, folders, links or benchmarks were skipped; --allow-unreadable,
         --allow-unread and --allow-skipped accept this; or there is no document
      0  every row (with --sample: of the sample) was scanned, with or without
         leaks

    The line above the next steps in the output sums up what was not scanned; OUT/not_read.jsonl
    lists all of it.
    """
    from decon_core.execution.choice import load_engine_tables, open_engine, require_engine
    from decon_core.library.results import CLEAN_FOLDER, COMPAT_FOLDER, STORE_FOLDER
    from decon_core.library.scan import Request, list_corpus, output_for, scan_folder

    readings = {"--text": text, "--messages": messages, "--layout": layout}
    given = [name for name, value in readings.items() if value]
    if len(given) > 1:
        found = " and ".join(given)
        raise InputError(Problem("scan", found, "at most one of them (none: all text is read)"))
    require_layout(layout)
    if role and not messages:
        raise InputError(Problem("--role", "no --messages", "--messages with --role"))
    settings = policy_from(policy, preset, detectors)
    drawn = sample_from(sample, sample_seed)
    allowed = [*compress(OPTIONS, (allow_unreadable, allow_unread, allow_skipped))]
    out = out or output_for(corpus)
    export_engine(engine)
    engines = load_engine_tables(execution) if execution else {}
    require_engine(engines)
    chosen = open_engine(engines, Store(out / STORE_FOLDER))
    if (n_bytes := bytes_of(max_row_bytes)) is None:
        raise InputError(Problem("--max-row-bytes", repr(max_row_bytes), "a size like '1 GB'"))
    source = Source(
        name=ONLY_SOURCE,
        path=corpus,
        text=(text[0] if len(text) == 1 else tuple(text)) if text else None,
        messages=messages,
        roles=tuple(role),
        layout=layout,
        ignore=tuple(ignore),
        id=id_field,
        max_row_bytes=n_bytes,
    )
    if not is_url(corpus):
        require_apart([corpus], [evals])
        list_corpus(corpus, out)  # before anything is written
    recipes = with_recipes(evals, out)
    with ShardProgress(sys.stderr, chosen) as progress:
        outcome = scan_folder(
            Request(
                evals=recipes,
                source=source,
                out=out,
                policy=settings,
                workers=workers,
                sketch=Sketch() if sketch else None,
                has_compat=compat,
                has_clean_evals=clean_evals,
                allowed=allowed,
                has_page=not no_page,
                verdicts=verdicts_from(verdicts),
                sample=drawn,
            ),
            on_step=progress.step,
            on_progress=progress.update,
            engine=chosen,
        )
    if recipes != evals:
        pin_recipes(recipes, outcome.revisions)
    if outcome.sample:
        say(f"found in a {outcome.sample.words}, not in the entire corpus:\n")
    _say_table(outcome)
    for line in _result_lines(outcome, out, has_no_answer=settings.keep_no_answer):
        say(line)
    if outcome.sample:
        say_estimates(outcome, outcome.sample, out)
    if compat:
        say(f"reports in AI2 decon's format: {out / COMPAT_FOLDER}")
    account = outcome.not_read
    accepted = account.accepting(*allowed)
    if clean_evals:
        why = _why_nothing_is_clean(outcome, accepted)
        say(f"clean benchmarks: {f'not written, because {why}' if why else out / CLEAN_FOLDER}")
    for problem in (*without_effect(settings), *outcome.split_scripts):
        warn(problem)
    if outcome.failed:
        warn(f"\nnot read: {format_problems(outcome.failed)}")
    for what, _, _, told in account.lines("the documents"):
        if what == "short":
            warn(f"\n{told}; check --text, --messages or --layout")
        elif what in ("text", "no text"):
            say(f"\n{told}")
    if paths := account.to_ignore(ONLY_SOURCE):
        options = " ".join(f"--ignore {shlex.quote(path)}" for path in paths)
        to_read = "to read it, omit --text and --messages; " if source.paths else ""
        say(f"{to_read}to leave it unread, add:\n{options}\n")
        for advice in account.advice(ONLY_SOURCE):
            say(f"to read {advice}")
    for rate in outcome.rates[:1]:
        if rate.high and not outcome.n_leaks:
            may = counted(rate.high, rate.of.removesuffix("s"))
            say(f"no leak in the sample, but up to {may} may contain one")
    say(_format_coverage(outcome))
    say_next(*_next_commands(outcome, recipes, corpus, out))
    if account.exit_code == 1:
        return 1
    if fail_on_leak and outcome.n_leaks:
        return 3
    if outcome.finds_nothing:
        warn("the chosen detectors cannot find any item, so it is unknown whether any leaked")
        return 6
    is_lacking = bool(outcome.unavailable) and not allow_skipped
    return 4 if is_lacking or not outcome.n_documents else accepted.exit_code


def _why_nothing_is_clean(outcome: Outcome, accepted: Account) -> str | None:
    """Return why no clean benchmarks were written, with the options that would change that."""
    lines = [*accepted.lines("the documents")]
    if not lines:
        return None if outcome.n_documents else "no document was searched"
    of_all = [*accepted.accepting(*OPTIONS).lines("the documents")]
    if of_all:  # no option accepts them
        return f"some input was not read: {', '.join(line.text for line in of_all)}"
    lacking = ", ".join(line.amount for line in lines)
    names = [name for name, kinds in OPTIONS.items() if accepted.open(*kinds)]
    remedy = f" (to write them anyway: {' '.join(names)})" if outcome.n_documents else ""
    nothing = "" if outcome.n_documents else "no document was searched, and "
    return f"{nothing}some input was not read: {lacking}{remedy}"


def _say_table(outcome: Outcome) -> None:
    """Print per benchmark what leaked, and what each detector found."""
    has_many_detectors = len(outcome.n_unseen) > 1
    rows = []
    for count in sorted(outcome.benchmarks, key=lambda count: -(count.leak_rate or 0)):
        by_detector = {**count.n_items_by_detector, "all detectors": count.n_items_by_all}
        n_leaked, n_checkable = count.n_leaked_checkable_items, count.n_checkable_items
        rows.append(
            {
                "benchmark": count.benchmark,
                "items": count.n_items,
                "leaked": count.n_leaked_items,
                "of checkable": of_checkable(n_leaked, n_checkable, n_items=count.n_items),
                "rate": percent(count.leak_rate),
                **(by_detector if has_many_detectors else {}),
                "no answer": count.n_no_answer_items,
                "review": count.n_review_items,
                "leaks": count.n_leaks,
                "documents": count.n_documents,
            }
        )
    say_rows(rows, spare=("leaks", "all detectors", "no answer", "review", "of checkable"))


def _result_lines(outcome: Outcome, out: Path, *, has_no_answer: bool) -> Iterator[str]:
    from decon_core.library import results
    from decon_core.library.page import PAGE_FILE

    noun = "sampled document" if outcome.sample else "document"
    n, n_documents = outcome.n_contaminated_documents, counted(outcome.n_documents, noun)
    yield f"\n{n:,} of {n_documents} {contain(n)} a leak"
    if n := outcome.n_no_answer_documents:
        yield f"{n:,} more {contain(n)} a question without its answer: neither a leak nor clean"
    if n := outcome.n_review_documents:
        documents = counted(n, "more document")
        yield f"{documents} {contain(n)} only similar text that nobody has reviewed yet"
    yield from map(said_by_rows, outcome.origins[:_MOST_ORIGINS_LISTED])
    if n := outcome.n_too_short:
        yield f"{counted(n, 'document')} too short to be checked"
    if not has_no_answer:
        yield f"questions without their answer: {QUESTIONS_LEFT_OUT}"
    ledger = out / results.LEDGER_FILE
    if n := outcome.n_unreadable:
        yield f"{counted(n, 'row')} could not be read: see {ledger}"
    if n := outcome.n_invalid_utf8:
        not_utf8 = "invalid UTF-8 bytes, scanned as U+FFFD"
        yield f"{counted(n, 'document')} {have(n)} {not_utf8}: see {ledger}"
    if n := len(outcome.not_read.open("shard")):
        yield f"{n:,} of {counted(outcome.n_shards, 'shard')} could not be read"
    if any(outcome.n_unseen.values()):
        counts = ", ".join(f"{name} {n:,}" for name, n in outcome.n_unseen.items() if n)
        yield f"items that a detector cannot find: {counts}; see {out / results.VISIBILITY_FILE}"
    for benchmark, n_found in outcome.checkable_by_others.items():
        name, n = max(n_found.items(), key=itemgetter(1))
        add = f"--detectors {','.join([*outcome.n_unseen, name])}"
        yield f"{n:,} more {'item' if n == 1 else 'items'} of {benchmark} can be found with {add}"
    n_unknown = sum(count.n_items - count.n_known_items for count in outcome.benchmarks)
    yield blind_spots(outcome.n_unseen, n_unknown)
    if outcome.n_common:
        n_common = f"{outcome.n_common:,}; see {out / results.COMMON_FILE}"
        where = "sample" if outcome.sample else "corpus"
        yield f"n-grams too common in the {where} to be evidence: {n_common}"
    if missing := outcome.not_covered:
        n = len(outcome.benchmarks)
        yield f"searched for items of {n:,} of {counted(n + len(missing), 'benchmark')}; not of:"
        for entry in missing:
            yield f"  {entry.benchmark}: {entry.reason}"
    yield f"matches: {out / results.MATCHES_FILE}"
    if (out / PAGE_FILE).is_file():
        yield f"page: {out / PAGE_FILE}"


def _next_commands(outcome: Outcome, evals: Path, corpus: str, out: Path) -> Iterator[str]:
    from decon_core.library.page import PAGE_FILE

    if (out / PAGE_FILE).is_file():
        yield f"open {shlex.quote(str(out / PAGE_FILE))} in a browser"
    if outcome.n_leaks and not is_url(corpus):  # init reads local files
        paths = f"--corpus {shlex.quote(corpus)} --evals {shlex.quote(str(evals))}"
        yield f"decon-assets init {paths}  (to remove the leaks)"


def _format_coverage(outcome: Outcome) -> str:
    """Return the last line: how much of the input was scanned, and what was not."""
    from decon_core.library.results import NOT_READ_FILE, SKIPPED_FILE

    left_out = [line.amount for line in outcome.not_read.lines()]
    if unavailable := outcome.unavailable:
        named = ", ".join(entry.benchmark for entry in unavailable)
        left_out.append(f"{counted(len(unavailable), 'benchmark')}: {named}")
    n_read = outcome.n_shards - len(outcome.not_read.open("shard")) - len(outcome.not_drawn)
    shards = f"{n_read:,} of {counted(outcome.n_shards, 'shard')}"
    done = f"scanned {counted(outcome.n_documents, 'document')} in {shards}"
    if outcome.sample:
        n_documents = counted(outcome.n_not_sampled, "document")
        n_shards = counted(len(outcome.not_drawn), "shard")
        n_bytes = size(sum(shard.n_bytes for shard in outcome.not_drawn))
        others = f"{n_shards} ({n_bytes})" if outcome.not_drawn else n_documents
        left_out.insert(0, f"{others} not in the sample")
        done = f"{outcome.sample.words}: {done}"
    if left_out:
        whole = f"{done}; NOT scanned: {', '.join(left_out)}"
    else:
        whole = f"{done}: {'complete' if outcome.n_documents else 'nothing can be called clean'}"
    n_ignored = sum(file.is_on_purpose for file in outcome.skipped)
    ignored = f"; {n_ignored:,} ignored on purpose, listed in {SKIPPED_FILE}" if n_ignored else ""
    if amounts := outcome.not_read.ignored():
        ignored += f"; ignored on purpose: {', '.join(amounts)}, listed in {NOT_READ_FILE}"
    return f"{whole}{ignored}"
