"""The `code` detector finds programs in other names, comments, layout and order, and no others."""

import json
from itertools import permutations

import duckdb
import pytest

from bench import code_pairs
from decon_core.config.load import load_policy
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.library.scan import Request, scan_folder

RUNS = '''def longest_run(values):
    """Return the length of the longest run of equal values."""
    best = current = 0
    last = None
    for value in values:
        current = current + 1 if value == last else 1
        last = value
        best = max(best, current)
    return best
'''
ROMAN = """def to_roman(number):
    table = [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    parts = []
    for value, sign in table:
        while number >= value:
            parts.append(sign)
            number -= value
    return "".join(parts)


def is_roman(text):
    return bool(text) and all(letter in "IVX" for letter in text.strip().upper())
"""
BALANCE_PROMPT = '''def is_balanced(text: str) -> bool:
    """Tell whether every bracket in a text is closed by one of its kind."""
'''
BALANCE = """    open_ones = []
    pairs = {")": "(", "]": "["}
    for sign in text:
        if sign in pairs.values():
            open_ones.append(sign)
        elif sign in pairs and (not open_ones or open_ones.pop() != pairs[sign]):
            return False
    return not open_ones
"""
JAVA = """static int countVowels(String text) {
    int found = 0;
    for (char letter : text.toLowerCase().toCharArray()) {
        if ("aeiou".indexOf(letter) >= 0) {
            found++;
        }
    }
    return found;
}
"""
ITEMS = [
    ("Write a function that measures the longest run.", RUNS),
    ("Write functions for Roman numbers.", ROMAN),
    (BALANCE_PROMPT, BALANCE),
    ("Count the vowels, in Java.", JAVA),
    ("How many legs have three spiders? Explain your answer (briefly).", "24: 3 x 8 legs(all)."),
    ("Double a number.", "def twice(n):\n    return 2 * n\n"),
]

RENAMED = """def q(z):
        # first the counters
        a = b = 0; c = None
        for x in z:
                b = b + 1 if x == c else 1
                c = x
                a = max(a, b)
        return a
"""
REORDERED = """class Numerals:
    def valid(self, s): return bool(s) and all(c in 'IVX' for c in s.strip().upper())

    def convert(self, n: int) -> str:
        out = []
        digits = [(10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]
        for size, name in digits:
            while n >= size:
                out.append(name)
                n -= size
        return ''.join(out)
"""
RENAMED_JAVA = """
    // how many?
    public static int vowelsIn(String s)
    {
        int n = 0;
        for (char c : s.toLowerCase().toCharArray())
        {
            if ("aeiou".indexOf(c) >= 0)
            {   /* one more */
                n++;
            }
        }
        return n;
    }
"""
OTHER_TASKS = '''import sys


def longest_word(words):
    """Return the longest of some words."""
    best = None
    for word in words:
        if best is None or len(word) > len(best):
            best = word
    return best


def count_letters(text):
    counts = {}
    for letter in text.lower():
        counts[letter] = counts.get(letter, 0) + 1
    return counts


def main(arguments):
    numbers = [int(one) for one in arguments if one.isdigit()]
    print(sum(numbers) / max(len(numbers), 1), file=sys.stderr)
    return 0
'''
PROSE = "The committee (founded in 1820) met twice a year; its minutes were printed. " * 5


def documents(renamed=RENAMED):
    return {
        "renamed": f"Été: so I wrote this.\n\n```python\n{renamed}```\n\nIt works (mostly).\n",
        "reordered": f"Mine:\n\n{REORDERED}",
        "java": RENAMED_JAVA,
        "completed": BALANCE_PROMPT.replace("text", "s") + BALANCE.replace("text", "s"),
        "others": OTHER_TASKS,
        "prose": PROSE,
        "broken": RENAMED.replace("return a", "return a)"),
    }


def scanned(tmp_path, texts, settings=""):
    items = [
        {
            "eval_key": "tasks",
            "split": "test",
            "eval_instance_index": n,
            "question": question,
            "answer": answer,
        }
        for n, (question, answer) in enumerate(ITEMS)
    ]
    write(tmp_path / "tasks.jsonl", items)
    (tmp_path / "corpus").mkdir(exist_ok=True)
    rows = [{"id": name, "text": text} for name, text in texts.items()]
    write(tmp_path / "corpus/web.jsonl", rows)
    settings = f'detectors = ["code"]\ntokenizer_str = "words"\n{settings}'
    (tmp_path / "policy.toml").write_text(settings)
    request = Request(
        evals=tmp_path / "tasks.jsonl",
        source=Source(name="corpus", path=str(tmp_path / "corpus"), id="id"),
        out=tmp_path / "found",
        policy=load_policy(tmp_path / "policy.toml"),
    )
    scan_folder(request)
    return rows_of(tmp_path, "matches")


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def rows_of(tmp_path, table):
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM '{tmp_path / 'found' / table}.parquet'")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


ROMAN_IN_JAVASCRIPT = """// numerals
function toRoman(number) {
    const table = [[10, "X"], [9, "IX"], [5, "V"], [4, "IV"], [1, "I"]];
    return table.reduce((parts, [value, sign]) => {
        const times = Math.floor(number / value); number = number % value;
        return parts + sign.repeat(times);
    }, "");
}
function isRoman(text) { return text.split("").every(letter => "IVX".includes(letter)); }
"""


OTHER_NAMED = "function toRoman(x) { return lookup(x); }\nfunction other(y) { return y + 1; }\n"


def in_other_orders():
    """The same program with its first three statements in every other order."""
    statements = ["        a = 0\n", "        b = 0\n", "        c = None\n"]
    for order in [*permutations(range(3))][1:]:
        yield RENAMED.replace(
            "        a = b = 0; c = None\n", "".join(statements[n] for n in order)
        )


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    """One scan of documents, which do not influence each other: its folder and its matches."""
    folder = tmp_path_factory.mktemp("code")
    texts = documents() | {"translated": ROMAN_IN_JAVASCRIPT, "other": OTHER_NAMED}
    orders = {f"order {n}": documents(body)["renamed"] for n, body in enumerate(in_other_orders())}
    return folder, scanned(folder, texts | orders)


def test_it_finds_copies_and_no_other_programs(scan):
    found = [row for row in scan[1] if row["doc_id"] in documents()]
    assert {(row["doc_id"], row["instance_index"]) for row in found} == {
        ("renamed", 0),
        ("reordered", 1),
        ("java", 3),
        ("completed", 2),
        ("broken", 0),
    }
    assert all(row["base_score"] > 0.6 for row in found)


def test_the_order_of_independent_statements_does_not_count(scan):
    found = [row for row in scan[1] if row["doc_id"].startswith("order")]
    assert [row["instance_index"] for row in found] == [0] * 5
    assert len({*in_other_orders(), RENAMED}) == 6
    assert all(row["base_score"] > 0.6 for row in found)


def test_places_are_the_characters_of_the_function(scan):
    found = {row["doc_id"]: row for row in scan[1]}
    row = found["renamed"]
    assert row["question_char_start"] is None
    place = slice(row["answer_char_start"], row["answer_char_stop"])
    assert documents()["renamed"][place].strip() == RENAMED.strip()
    row = found["completed"]  # question and answer are one program
    assert row["question_char_start"] == row["answer_char_start"] == 0


def test_a_program_in_another_language_is_a_candidate_by_its_names(scan):
    (row,) = (row for row in scan[1] if row["doc_id"] in ("translated", "other"))
    assert (row["doc_id"], row["instance_index"], row["kind"]) == ("translated", 1, "names")
    assert row["base_score"] >= Policy().code_threshold
    calls = {name: row[name] for name in ("is_contaminated", "needs_review")}
    assert calls == {"is_contaminated": False, "needs_review": True}


def test_items_without_a_program_are_not_visible(scan):
    visible = {
        row["instance_index"]: (row["is_visible"], row["reason"])
        for row in rows_of(scan[0], "visibility")
    }
    assert visible == {
        **dict.fromkeys(range(4), (True, None)),
        4: (False, "no program"),
        5: (False, "program too short"),
    }


def test_its_floor_and_its_least_length_decide_what_is_kept(tmp_path):
    settings = "code_lowest_recorded = 0.99\ncode_threshold = 0.99\ncode_min_tokens = 5\n"
    exact = {"exact": RUNS, "short": "def doubled(x):\n    return 2 * x\n"}
    found = scanned(tmp_path, documents() | exact, settings)
    assert {(row["doc_id"], row["instance_index"]) for row in found} >= {("exact", 0), ("short", 5)}
    assert all(row["base_score"] >= 0.99 for row in found)


def test_the_measurement_reads_labelled_pairs_and_refuses_other_files(tmp_path, capsys):
    programs = [RUNS, ROMAN, BALANCE_PROMPT + BALANCE, OTHER_TASKS]
    pairs = [
        {"item": 2 * n, "original": one, "reworded": one.replace("text", "s")}
        for n, one in enumerate(programs)
    ]
    write(tmp_path / "pairs.jsonl", [*pairs, {"item": 8, "original": RUNS, "reworded": ""}])
    (tmp_path / "other.py").write_text(OTHER_TASKS)
    assert code_pairs.main([str(tmp_path / "pairs.jsonl"), "--unrelated", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "4 rows, 1 without a program left out" in said
    assert "| 0.45 | 1.000 | 0.000% |" in said
    write(tmp_path / "others.jsonl", [{"question": "Why?"}])
    assert code_pairs.main([str(tmp_path / "others.jsonl")]) == 2
    assert "rows with original and reworded" in capsys.readouterr().err
