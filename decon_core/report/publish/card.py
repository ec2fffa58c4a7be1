"""A contamination section for a dataset card, in Markdown for the Hugging Face hub.

It contains numbers and names only, no text of the corpus or of a benchmark.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from decon_core.config.detectors import find
from decon_core.config.policy import QUESTIONS_LEFT_OUT, Policy
from decon_core.report.open import incomplete_notice
from decon_core.report.publish.summary import Summary, keeps_question_only, summary_of
from decon_core.wording import render


def card_of(report: Path) -> str:
    """Return the section for a report."""
    return card_from(summary_of(report))


def card_from(summary: Summary) -> str:
    """Return the section for a summary."""
    policy = summary["policy"]
    return render(
        "report/publish/card.md.j2",
        **summary,
        notice=incomplete_notice(len(summary["not_scanned"]), summary["n_shards_in_corpus"]),
        left_out="" if keeps_question_only(policy) else QUESTIONS_LEFT_OUT,
        meanings={one["detector"]: _meaning(one["detector"]) for one in summary["detectors"]},
        settings=_settings(policy) if policy else "",
    )


def _meaning(detector: str) -> str:
    known = find(detector)
    return known.summary if known else ""


def _settings(policy: Summary) -> str:
    """Return the settings that are not the default, and the most important ones, as TOML."""
    defaults = json.loads(json.dumps(asdict(Policy())))
    always = ("detectors", "contamination_score_threshold")
    lines = [
        f"{name} = {_toml(value)}"
        for name, value in sorted(policy.items())
        if name != "benchmark" and (name in always or defaults.get(name) != value)
    ]
    for benchmark, settings in sorted(policy.get("benchmark", {}).items()):
        # TOML: keys after a table's header belong to that table, so tables come last.
        lines += ["", f"[policy.benchmark.{_toml_key(benchmark)}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in sorted(settings.items())]
    return "\n".join(["[policy]", *lines])


def _toml(value: object) -> str:
    """Format a string, number, boolean or list: as JSON, except for the character U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
