"""Annotations of pairs by a language model, or from a file."""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="judge",
    requires=("endpoints",),
    tables={"judge": "decon_core.features.judge.settings:Judge"},
    commands={
        "judge": Command(
            function="judge_group",
            group="Results",
            about="have a model judge matches, or import annotations",
            examples=("judge --dry-run              what a language model would be asked",),
            reads_store=True,
        )
    },
    files="decon_core.features.judge.settings:judge_files",
    evidence="decon_core.features.judge.evidence:evidence_of",
)
