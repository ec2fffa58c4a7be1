"""Reports of pairs and calls, made by hand: for the tests of reviews."""

import json
from dataclasses import asdict

import duckdb

from decon_core.policy import Policy

# The tables as the report declares them, as far as a review looks at them.
_MARKS = 'STRUCT("start" BIGINT, stop BIGINT, part VARCHAR)[]'
_TABLES = f"""
CREATE TABLE runs (policy VARCHAR);
CREATE TABLE pairs (
    pair VARCHAR, fingerprint VARCHAR, benchmark VARCHAR, config VARCHAR, split VARCHAR,
    instance_index BIGINT, rules VARCHAR, score DOUBLE, is_by_score BOOLEAN,
    is_contaminated BOOLEAN, verdict VARCHAR, n_documents BIGINT, n_matches BIGINT,
    source VARCHAR, shard_name VARCHAR, row BIGINT, doc_id VARCHAR, question_overlap DOUBLE,
    answer_overlap DOUBLE, passage_overlap DOUBLE, question VARCHAR, answer VARCHAR,
    passage VARCHAR, question_marks {_MARKS}, answer_marks {_MARKS}, passage_marks {_MARKS},
    text VARCHAR, text_marks {_MARKS});
CREATE TABLE decisions (
    source VARCHAR, shard_name VARCHAR, row BIGINT, doc_id VARCHAR, benchmark VARCHAR,
    config VARCHAR, split VARCHAR, instance_index BIGINT, rules VARCHAR[], score DOUBLE,
    is_by_score BOOLEAN, verdict VARCHAR, is_contaminated BOOLEAN, pair VARCHAR);
"""


def key(number):
    return f"{number:016x}"


def pair(number, **values):
    score = values.get("score", 0.9)
    return {
        "pair": key(number),
        "fingerprint": key(number + 1000),
        "benchmark": "quiz",
        "config": None,
        "split": "test",
        "instance_index": number,
        "rules": "decon",
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


_OF_CALL = ("source", "shard_name", "row", "doc_id", "benchmark", "config", "split")
_OF_BOTH = ("instance_index", "score", "is_by_score", "verdict", "is_contaminated", "pair")


def call(of_pair, **values):
    """A call whose best match is a pair, in the document that it is shown in."""
    named = {name: of_pair[name] for name in (*_OF_CALL, *_OF_BOTH)}
    return {**named, "rules": of_pair["rules"].split(", "), **values}


def write_report(path, pairs, calls=None, *, policy=None):
    with duckdb.connect(str(path)) as connection:
        connection.execute(_TABLES)
        settings = json.dumps(asdict(policy or Policy()))
        connection.execute("INSERT INTO runs VALUES (?)", [settings])
        for table, rows in (("pairs", pairs), ("decisions", calls or [*map(call, pairs)])):
            for row in rows:
                names = ", ".join(row)
                marks = ", ".join("?" * len(row))
                query = f"INSERT INTO {table} ({names}) VALUES ({marks})"
                connection.execute(query, [*row.values()])
    return path
