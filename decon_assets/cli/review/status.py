"""Show how far a review has come, and which share of a reviewed sample are real leaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from decon_assets.cli.review.session import Choice, Session
from decon_assets.terminal.output import say, say_table
from decon_core.decisions.verdicts import VERDICTS
from decon_core.report.review.found import ReviewFilter
from decon_core.report.review.sample import estimate, tally
from decon_core.wording import counted

Json = dict[str, Any]


def status_of(session: Session, choice: Choice) -> Json:
    """Count the texts of a choice and their verdicts, and estimate the precision of a sample."""
    now = {text_id: verdict.verdict for text_id, verdict in session.verdicts.by_text.items()}
    texts = session.matched_texts(choice)
    progress = {}
    for name in sorted({matched.benchmark for matched in texts}):
        found = [matched for matched in texts if matched.benchmark == name]
        said = Counter(now[matched.text_id] for matched in found if matched.text_id in now)
        progress[name] = {
            "n_texts": len(found),
            "n_leaks_by_score": sum(matched.is_by_score for matched in found),
            "n_reviewed": said.total(),
            "said": {verdict: said[verdict] for verdict in VERDICTS},
        }
    sample = None
    if choice.sample:
        tallies = [tally(stratum, session.verdicts) for stratum in session.drawn(choice)]
        sample = {
            "n": choice.sample,
            "stratify": choice.strata,
            "seed": choice.seed,
            "strata": [asdict(tally) for tally in tallies],
            "precision": asdict(estimate(tallies)) if tallies else None,
        }
    known = {matched.text_id for matched in session.report.matched_texts(ReviewFilter())}
    return {
        "matched_texts": progress,
        "not_in_report": len(now.keys() - known),
        "not_in_mixtures_yet": sum(
            matched.verdict != now.get(matched.text_id) for matched in texts
        ),
        "sample": sample,
    }


def say_status(status: Json) -> None:
    counts = ("n_texts", "n_leaks_by_score", "n_reviewed")
    rows = [
        (name, *(row[count] for count in counts), *row["said"].values())
        for name, row in status["matched_texts"].items()
    ]
    say_table(("benchmark", "texts", "leaks by score", "reviewed", *VERDICTS), rows)
    if n := status["not_in_report"]:
        say(f"{counted(n, 'verdict')} for texts that are not in this report")
    if n := status["not_in_mixtures_yet"]:
        texts_of = f"{counted(n, 'text')} whose current verdict"
        say(f"{texts_of} is not in the report yet: `decon-assets run` updates it")
    if sample := status["sample"]:
        say()
        _say_sample(sample)


def _say_sample(sample: Json) -> None:
    strata, found = sample["strata"], sample["precision"]
    of_drawn = ("n_leaks", "n_others", "n_unsure", "n_unseen")
    rows = [[stratum[name] for name in of_drawn] for stratum in strata]
    n_drawn, n_findings = sum(map(sum, rows)), sum(stratum["n_findings"] for stratum in strata)
    by = " and ".join(sample["stratify"]) or "none"
    say(f"{n_drawn} of {n_findings} findings drawn, strata: {by}, seed {sample['seed']}\n")
    heads = ("stratum", "findings", "drawn", "leaks", "no leaks", "unsure", "not seen")
    names = [(stratum["stratum"], stratum["n_findings"]) for stratum in strata]
    say_table(heads, [(*name, sum(row), *row) for name, row in zip(names, rows, strict=True)])
    if found is None or found["share"] is None:
        say("\nprecision unknown: no finding in the sample has a verdict yet")
        return
    interval = "95 % interval {low:.3f} to {high:.3f}".format(**found)
    say(f"\nprecision {found['share']:.3f}, {interval}")
    if n := sum(stratum["n_unsure"] + stratum["n_unseen"] for stratum in strata):
        bounds = "{least:.3f} if none of them is a leak, {most:.3f} if all are".format(**found)
        say(f"unsure or not seen, and left out: {counted(n, 'finding')}; precision {bounds}")
