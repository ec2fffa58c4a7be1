"""Reports of matched texts and findings, made by hand: for the tests of reviews."""

import json
from dataclasses import asdict

import duckdb

from decon_core.config.policy import Policy
from decon_core.storage.checksums import seal_database
from tests.core.report import reports


def key(number):
    return f"{number:016x}"


def matched_text(number, **values):
    score = values.get("score", 0.9)
    return {
        "text_id": key(number),
        "fingerprint": key(number + 1000),
        "benchmark": "quiz",
        "config": None,
        "split": "test",
        "instance_index": number,
        "detectors": "decon",
        "score": score,
        "is_by_score": score >= 0.8,
        "is_contaminated": score >= 0.8,
        "verdict": None,
        "n_documents": 1,
        "n_matches": 1,
        "source": "web",
        "shard_name": "a.jsonl",
        "row": number,
        "doc_id": f"doc-{number}",
        "question_overlap": score,
        "answer_overlap": None,
        "passage_overlap": None,
        "question": f"What is the number {number}?",
        "answer": None,
        "passage": None,
        "question_marks": [{"start": 0, "stop": 18, "part": "question"}],
        "answer_marks": None,
        "passage_marks": None,
        "text": f"Somebody asked: what is the number {number}, and went.",
        "text_marks": [{"start": 16, "stop": 34, "part": "question"}],
        **values,
    }


_OF_FINDING = ("source", "shard_name", "row", "doc_id", "benchmark", "config", "split")
_OF_BOTH = ("instance_index", "score", "is_by_score", "verdict", "is_contaminated", "text_id")


def finding(of_text, **values):
    """A finding whose best match is a matched text, in the document that it is shown in."""
    named = {name: of_text[name] for name in (*_OF_FINDING, *_OF_BOTH)}
    detectors = of_text["detectors"].split(", ")
    return {**named, "detectors": detectors, "detectors_by_score": detectors, **values}


def write_report(path, matched_texts, findings=None, *, policy=None):
    """Decisions follow from matches; here they are said, and take the place of none."""
    settings = json.dumps(asdict(policy or Policy()))
    reports.write_report(path, matched_texts=matched_texts, runs=[{"policy": settings}])
    with duckdb.connect(str(path)) as connection:
        for row in findings or [*map(finding, matched_texts)]:
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            query = f"INSERT INTO findings ({names}) VALUES ({marks})"
            connection.execute(query, [*row.values()])
    seal_database(path)
    return path
