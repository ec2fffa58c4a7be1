"""What a Python program computes from what does not depend on how it is written down."""

import ast
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.text.python_flow import features

PRICES = '''
def cheapest(prices, limit):
    """Return the cheapest price above a limit."""
    best = None
    for price in prices:
        if price > limit and (best is None or price < best):
            best = price
    return best
'''


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y = len(x)\nprint(y + 1)", "print(len(x) + 1)"),
        ("a = len(x)\nb = sum(x)\nprint(a / b)", "b = sum(x)\na = len(x)\nprint(a / b)"),
        ("if a > b:\n    print(a)", "if b < a:\n    print(a)"),
        (
            "def f(x):\n    return x * 2",
            "def g(n: int) -> int:\n    '''Double.'''\n    return n * 2",
        ),
        ("def f(x):\n    x += 1\n    return x", "def f(x):\n    x = x + 1\n    return x"),
        ("import math\nprint(math.sqrt(x))", "from math import sqrt\nprint(sqrt(x))"),
        ("def f(x):\n    pass\n    return [*x]", "def f(x):\n    return [*x]  # all"),
        ("for i, x in enumerate(xs):\n    print(x)", "for i in range(len(xs)):\n    print(xs[i])"),
        (
            "def f(xs):\n    for i in range(0, n):\n        print(i)",
            "def f(xs):\n    for i in range(n):\n        print(i)",
        ),
        (
            "def f(xs):\n    for i in range(len(xs)):\n        print(xs[i])",
            "def f(xs):\n    i = 0\n    while i < len(xs):\n        print(xs[i])\n        i += 1",
        ),
    ],
)
def test_two_ways_to_write_the_same_share_most_features(one, other):
    first, second = features(one), features(other)
    assert len(first & second) / len(first) > 0.6


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    return x[1:]", "def f(x):\n    return x[:1]"),
        ("def f(x):\n    return max(x)", "def f(x):\n    return min(x)"),
        ("def f(x):\n    return x % 2", "def f(x):\n    return x % 3"),
    ],
)
def test_other_operations_and_numbers_are_other_features(one, other):
    assert features(one) != features(other)


@pytest.mark.parametrize("text", ["def f(:", "x = = 1", "\x00", "(" * 3000, "1 + " * 100_000 + "1"])
def test_what_is_not_python_or_too_deep_has_no_features(text):
    assert features(text) is None


def renamed(program, seed):
    """Give all names of parameters and local variables other names."""
    tree, chosen = ast.parse(program), random.Random(seed)
    names = sorted(
        {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        | {
            one.id
            for one in ast.walk(tree)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
    )
    others = chosen.sample([f"{letter}_{n}" for letter in "abcxyz" for n in range(9)], len(names))
    table = dict(zip(names, others, strict=True))
    for one in ast.walk(tree):
        if isinstance(one, ast.Name):
            one.id = table.get(one.id, one.id)
        if isinstance(one, ast.arg):
            one.arg = table[one.arg]
    return ast.unparse(tree)


@given(st.integers())
def test_prop_names_and_layout_change_no_feature(seed):
    assert features(renamed(PRICES, seed)) == features(PRICES)


LINES = ["a = len(xs)", "b = sum(xs)", "c = max(xs)", "d = xs[0]", "e = sorted(xs)"]


@given(st.permutations(LINES))
def test_prop_the_order_of_independent_statements_changes_no_feature(lines):
    def program(these):
        body = "\n    ".join([*these, "return [a, b, c, d, e]"])
        return f"def f(xs):\n    {body}"

    assert features(program(lines)) == features(program(LINES))


LOOPS = ("for x in y:\n    ", "while x < 3:\n    x += 1\n", "while i <= n:\n    ", "i = i + 1\n")
BLOCKS = (
    "with x as y:\n    ",
    "try:\n    ",
    "except E as e:\n    ",
    "match x:\n    case 1:\n        ",
)
SCOPES = ("def f(*a, **k):\n  ", "class A(B):\n    ", "async def f():\n    ", "lambda: 0\n")
WRITES = ("x = 1\n", "x[0] = x.y\n", "(a, *b) = c\n", "x: int = 3\n", "x += [y]\n", "x = x\n")
OTHERS = ("x, y = y, x\n", "(x := y)\n", "a < b > c\n", "await x\n", "yield x\n", "del x\n")
VALUES = (
    "[x for x in y if x]\n",
    "{x: y for x, y in z}\n",
    "x = -y if z else {**w}\n",
    "f'{x!r:>{y}}'\n",
)
ANY = st.sampled_from(
    [*LOOPS, *BLOCKS, *SCOPES, *WRITES, *OTHERS, *VALUES, "    pass\n", "global x\n"]
)


@given(st.lists(ANY, max_size=8).map("".join))
def test_prop_every_program_that_parses_has_features(text):
    try:
        ast.parse(text)
    except SyntaxError:
        assert features(text) is None
    else:
        assert features(text) is not None
