"""Every layout of published_layouts.yaml, as published and with other names, read or asked."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes
from decon_core.discovery.benchmarks import survey_benchmarks

LAYOUTS = yaml.load(
    Path(__file__).with_name("published_layouts.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)["benchmarks"]
CASES = [(name, is_renamed) for name in LAYOUTS for is_renamed in (False, True)]
CASES = [(name, renamed) for name, renamed in CASES if not renamed or "renamed" in LAYOUTS[name]]


def write(folder, layout, *, is_renamed):
    names = layout["renamed"] if is_renamed else {}
    columns = {names.get(name, name): values for name, values in layout["columns"].items()}
    form = layout.get("as", "jsonl")
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if form == "jsonl":
        lines = (
            json.dumps({key: value for key, value in row.items() if value is not None})
            for row in rows
        )
        (folder / "quiz.jsonl").write_text("\n".join(lines), encoding="utf-8")
        return
    is_tab = form == "headless_tsv"
    with (folder / f"quiz.{'tsv' if is_tab else 'csv'}").open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if is_tab else ",")
        writer.writerows([] if form.startswith("headless") else [columns])
        writer.writerows(row.values() for row in rows)


def texts(value):
    return set() if value is None else set(value) if isinstance(value, list) else {value}


def outcome(folder, layout, *, is_renamed):
    """Return what is wrong with the guessed recipe, the guess, and whether it asks."""
    write(folder, layout, is_renamed=is_renamed)
    (draft,) = survey_benchmarks([folder]).drafts
    (guess,) = draft.guesses
    if guess.is_open:
        return "" if layout.get("asked") else "asked", guess
    if layout.get("asked"):
        return "guessed", guess
    draft.path.write_text(draft.text, encoding="utf-8")
    records = normalize(load_recipes(draft.path)["quiz"], base=folder).to_pylist()
    return mistakes(records, layout, is_renamed=is_renamed), guess


def mistakes(records, layout, *, is_renamed):
    """Return what is wrong with the first row whose records are not those of the layout."""
    passages = (is_renamed and layout.get("renamed_passage")) or layout.get("passage")
    for number, question in enumerate(layout["question"]):
        of_row = [one for one in records if one["instance_index"] == number]
        if layout.get("is_translation"):
            of_row = [one for one in of_row if one["question"] == question]
        if {one["question"] for one in of_row} != texts(question):
            return f"question {[one['question'] for one in of_row]}"
        right = {one["answer"] for one in of_row if one["is_correct"] is not False} - {None}
        if right != texts(layout["right"] and layout["right"][number]):
            return f"answers {right}"
        if passages and {one["passage"] for one in of_row} != {passages[number]}:
            return "passage"
    return ""


@pytest.mark.parametrize(("name", "is_renamed"), CASES)
def test_a_published_layout_is_read_or_asked(tmp_path, name, is_renamed):
    wrong, guess = outcome(tmp_path, LAYOUTS[name], is_renamed=is_renamed)
    assert not wrong, "\n".join((*guess.why, *guess.doubts, *guess.lines))
