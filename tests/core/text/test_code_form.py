"""Which text of a record is its program, and which lines of a document are a function."""

import pytest

from decon_core.text.code_form import ProgramText, fingerprints, function_around, program_of

PROMPT = 'def add_up(values):\n    """Add up all values that are positive."""\n'
BODY = "    return sum(value for value in values if value > 0)\n"
JAVA = """
int addUp(int[] values) {
    int total = 0;
    for (int value : values) {
        if (value > 0) { total += value; }
    }
    return total;
}
"""
SCRIPT = "function f(a) { const n = a.length; return a.map((x) => x * n).join('-'); }"
RUST = "fn f(xs: &[i32]) -> i32 { let mut t = 0; for x in xs.iter() { t += x; } t }"
GO = """
func F(xs []int) int {
\tn := 0
\tfor _, x := range xs {
\t\tn += x
\t}
\treturn n
}
"""


@pytest.mark.parametrize(
    ("question", "answer", "program"),
    [
        (PROMPT, BODY, ProgramText(PROMPT + BODY, True, True)),
        ("Add up what is positive.", PROMPT + BODY, ProgramText(PROMPT + BODY, False, True)),
        ("Add up what is positive.", JAVA, ProgramText(JAVA, False, True)),
        (
            f"What does this print?\n\n```python\n{PROMPT}{BODY}```\n",
            "6",
            ProgramText(PROMPT + BODY, True, False),
        ),
        (f"Complete it.\n\n    {PROMPT}", None, None),
        ("Is f(x) = x (for x > 0) continuous? Let x = 1; then f(x) = 1.", "Yes", None),
        ("[asy]\npair A;\nA = (3,1);\ndraw(A--(0,0));\ndot(A);\n[/asy]\nIs A (here)?", "Yes", None),
        ("Compute 3 + 4.", "x = 3 + 4", None),
        ("Who wrote it (in 1820)?", "Nobody(s)", None),
        ("", "", None),
    ],
)
def test_the_program_of_a_record(question, answer, program):
    assert program_of(question, answer) == program


def similarity(one, other, size=5):
    first, second = fingerprints(one, size)[0], fingerprints(other, size)[0]
    return len({*first.tolist()} & {*second.tolist()}) / first.size


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (JAVA, JAVA.replace("values", "v").replace("total", "s").replace("addUp", "plus")),
        (JAVA, JAVA.replace("int total", "// what is added\n int  /* one\n number */ total")),
        (SCRIPT, SCRIPT.replace("const n", "const\n  k").replace(" n)", " k)").replace("'", '"')),
        (
            RUST,
            RUST.replace("mut t", "mut sum_").replace("t += x", "sum_ += x").replace("t }", "q }"),
        ),
        (GO, GO.replace("n := 0", "total := 0 // all").replace("xs", "v").replace(" n", " total")),
        (PROMPT + BODY, "def plus(v):\n  # add up\n  pass\n  return sum(e for e in v if e > 0)"),
    ],
)
def test_names_comments_layout_and_quotes_do_not_count(one, other):
    assert similarity(one, other) == 1


def test_division_and_comments_are_told_apart():
    python = "def half(n):\n    if n:\n        return n // 2 + 1\n"
    assert similarity(python, python.replace(" + 1", "")) < 1
    braces = "int half(int n) {\n    n = n / 2;\n    return n; // 2 + 1\n}\n"
    assert similarity(braces, braces.replace("2 + 1", "half of it")) == 1


PYTHON = """\
import os


class Box:
    size = 3

    def first(self):
        return self.size

    @property
    def second(self):
        if self.size:

            return 1
        return 2

def third(x):
    return x
# the end
"""


@pytest.mark.parametrize(
    ("start", "stop", "first", "last"),
    [
        ("return self.size", "return self.size", "    def first", "@property"),
        ("if self.size", "return 1", "    def second", "def third"),
        ("return self.size", "return 1", "    def first", "def third"),
        ("return 2", "return x", "class Box", "# the end"),
        ("import os", "def first", "class Box", "def third"),
        ("return x", "return x", "def third", "# the end"),
    ],
)
def test_the_functions_around_a_range(start, stop, first, last):
    document = f"Look at this:\n\n```python\n{PYTHON}```\nIt is short.\n".encode()
    begin = document.index(start.encode())
    end = document.index(stop.encode()) + len(stop)
    found = document[slice(*function_around(document, begin, end))].decode()
    assert found.startswith(first)
    assert (
        found.strip()
        == document[document.index(first.encode()) : document.index(last.encode())].decode().strip()
    )


def test_without_a_function_the_lines_themselves():
    document = b"one\nx = f(1)\ny = f(2)\nfour\n"
    assert document[slice(*function_around(document, 6, 14))] == b"x = f(1)\ny = f(2)"


def test_a_function_that_is_too_long_is_none():
    assert function_around(b"def f():\n" + b"    x = 1\n" * 10_000, 0, 20) is None
