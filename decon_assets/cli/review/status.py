"""Show how far a review has come, and which share of a reviewed sample are real leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from decon_assets.cli.review.session import Choice, Session
from decon_assets.terminal.output import say, say_rows, say_table
from decon_core.decisions.verdicts import VERDICTS, read_lines
from decon_core.wording import counted, verdicts_not_found

Json = dict[str, Any]

_ITEM = ("benchmark", "split", "instance_index")


def status_of(session: Session, choice: Choice) -> Json:
    """Count the texts of a choice and their verdicts, and estimate the precision of a sample."""
    from decon_core.report.review.found import ReviewFilter
    from decon_core.report.review.sample import estimate, tally

    now = {text_id: verdict.verdict for text_id, verdict in session.verdicts.by_text.items()}
    texts = session.matched_texts(choice)
    progress = {}
    others = session.report.other_items
    benchmarks = {
        matched.text_id: {
            matched.benchmark,
            *(row["benchmark"] for row in others.get(matched.text_id, ())),
        }
        for matched in texts
    }
    for name in sorted(set(choice.benchmarks) or set().union(*benchmarks.values())):
        found = [matched for matched in texts if name in benchmarks[matched.text_id]]
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
        "not_in_report": _not_in_report(session, now.keys() - known),
        "not_in_mixtures_yet": sum(
            matched.verdict != now.get(matched.text_id) for matched in texts
        ),
        "sample": sample,
    }


def _not_in_report(session: Session, text_ids: Collection[str]) -> list[Json]:
    """Return the verdicts on these texts, with the texts that are now found in their places."""
    lines = read_lines(session.file) if text_ids else []
    return [
        {
            "id": text_id,
            "verdict": line["verdict"],
            "by": line.get("by", ""),
            "item": " ".join(str(line.get(name, "")) for name in _ITEM).strip(),
            "place": f"{line['shard']} row {line.get('row')}" if "shard" in line else "",
            "found there now": ", ".join(session.report.texts_at(line)),
        }
        for text_id, line in {line["pair"]: line for line in lines}.items()
        if text_id in text_ids
    ]


def say_status(status: Json) -> None:
    counts = ("n_texts", "n_leaks_by_score", "n_reviewed")
    rows = [
        (name, *(row[count] for count in counts), *row["said"].values())
        for name, row in status["matched_texts"].items()
    ]
    say_table(("benchmark", "texts", "leaks by score", "reviewed", *VERDICTS), rows)
    if lost := status["not_in_report"]:
        say(f"\n{verdicts_not_found(len(lost)).partition(':')[0]}:")
        say_rows(lost)
        say(f"to withdraw a verdict: decon-assets review set {lost[0]['id']} none\n")
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
