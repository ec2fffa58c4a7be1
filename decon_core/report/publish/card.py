"""A contamination section for a dataset card, in Markdown for the Hugging Face hub.

It contains numbers and names only, no text of the corpus or of a benchmark.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from decon_core.config.detector_registry import find
from decon_core.config.policy import Policy
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT, blind_spots
from decon_core.report.open import Coverage
from decon_core.report.publish.summary import (
    Summary,
    account_in,
    keeps_no_answer,
    n_unknown_in,
    not_scanned_by_reason,
)
from decon_core.storage.checksums import sealed_page
from decon_core.storage.files import atomic_path, write_json
from decon_core.wording import render

CARD = "card.md"
SUMMARY = "summary.json"


def write_published(summary: Summary, folder: Path) -> None:
    """Write card.md and summary.json."""
    write_json(folder / SUMMARY, summary)
    write_card(summary, folder / CARD)


def write_card(summary: Summary, path: Path) -> None:
    """Write the section for a dataset card."""
    with atomic_path(path) as draft:
        draft.write_bytes(sealed_page(card_from(summary)))


def notice_of(summary: Summary) -> str:
    """Return the sentence that marks the summary of an incomplete report, or nothing."""
    not_scanned, not_covered = summary["not_scanned"], summary["not_covered"]
    n_benchmarks = len(summary["benchmarks"]) + len(not_covered)
    return Coverage(not_scanned, summary["n_shards_in_corpus"], not_covered, n_benchmarks).notice


def card_from(summary: Summary) -> str:
    """Return the section for a summary."""
    policy = summary["policy"]
    known = {row["detector"]: find(row["detector"]) for row in summary["detectors"]}
    leak = policy.get("leak", Policy.leak)
    return render(
        "report/publish/card.md.j2",
        **summary,
        notice=notice_of(summary),
        not_scanned_by_reason=not_scanned_by_reason(summary),
        not_read_lines=[line.text for line in account_in(summary).lines()],
        left_out="" if keeps_no_answer(policy) else QUESTIONS_LEFT_OUT,
        meanings={name: found.summary if found else "" for name, found in known.items()},
        without_proof=[name for name, found in known.items() if found and not found.acts(leak)],
        blind_spots=blind_spots(known, n_unknown_in(summary)),
        settings=_settings(policy) if policy else "",
    )


def _settings(policy: Summary) -> str:
    """Return the settings that are not the default, and the detectors' thresholds, as TOML."""
    defaults = json.loads(json.dumps(asdict(Policy())))
    chosen = filter(None, map(find, policy.get("detectors", ())))
    always = {"detectors", *(detector.threshold.setting for detector in chosen)}
    lines = [
        f"{name} = {_toml(value)}"
        for name, value in sorted(policy.items())
        if name != "benchmark" and (name in always or defaults.get(name) != value)
    ]
    for benchmark, settings in sorted(policy.get("benchmark", {}).items()):
        # TOML: keys after a table's header belong to that table, so tables come last.
        is_bare = re.fullmatch(r"[A-Za-z0-9_-]+", benchmark)
        lines += ["", f"[policy.benchmark.{benchmark if is_bare else _toml(benchmark)}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in sorted(settings.items())]
    return "\n".join(["[policy]", *lines])


def _toml(value: object) -> str:
    """Format a string, number, boolean or list: as JSON, except for the character U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
