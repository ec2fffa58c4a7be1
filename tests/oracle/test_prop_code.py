"""The kernels of `code` equal its oracle: tokens, weights, and the best window of each program."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.detectors.code import WindowSearch, arrays_of, weighted_programs
from decon_core.kernels.code.lexer import NAME, STRING, digest_of_bytes, write_tokens
from decon_core.text.code_form import ProgramText, names_table
from tests.oracle import code
from tests.uncompiled import fewer

SIZE = 3

_PIECES = (
    *(
        "def ",
        "return",
        "pass",
        "append",
        "x",
        "total",
        "für",
        "f",
        "Rb",
        "len",
        "1",
        "0x1F",
        "3.5",
    ),
    *(" ", " ", "\n", "\n    ", "\t", "(", ")", "[", "]", ":", ".", ",", "{", "}", ";", "@", "$"),
    *("+", "==", "//", "/*", "*/", "/", "%", "#", "'", '"', "'''", '"""', "\\", "é", "`", "//="),
)
PIECES = st.sampled_from(_PIECES)
TEXTS = st.lists(PIECES, max_size=40).map("".join)
WORDS = st.sampled_from(["for", "x", "in", "len", "(", ")", "1", "2", "+", "return", "[", "]"])
PROGRAMS = st.lists(WORDS, min_size=1, max_size=20).map(" ".join)


def as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def digests(text: str) -> list[int]:
    content, room = as_bytes(text), np.empty(len(text.encode()) + 1, np.uint64)
    return room[: write_tokens(content, 0, content.size, names_table(), room)].tolist()


def digest(token: str) -> int:
    if token in ("name", "string"):
        return int(NAME if token == "name" else STRING)
    content = as_bytes(token.removeprefix("=") if token[1:2].isalpha() else token)
    return int(digest_of_bytes(content, 0, content.size))


@settings(max_examples=fewer(100))
@given(TEXTS)
def test_prop_tokens_are_those_of_the_oracle(text: str) -> None:
    assert digests(text) == [
        digest(one.text.encode("latin-1").decode(errors="surrogateescape"))
        for one in code.tokens(text.encode())
    ]


@settings(max_examples=fewer(100))
@given(
    st.lists(PROGRAMS, min_size=1, max_size=5, unique=True),
    TEXTS,
    st.lists(WORDS, max_size=40),
    st.integers(1, 30),
)
def test_prop_the_best_window_of_each_program_is_that_of_the_oracle(
    texts: list[str], around: str, words: list[str], span: int
) -> None:
    document = f"{around}\n{' '.join(words)}\n{texts[0]}".encode()
    of = code.weights([text.encode() for text in texts], SIZE)
    programs = weighted_programs(
        [(ProgramText(text, False, True), [row]) for row, text in enumerate(texts)], SIZE
    )
    assert [one.tokens.total for one in programs] == [sum(one.values()) for one in of]
    index = arrays_of(programs)
    index = index._replace(spans=np.full_like(index.spans, span))
    expected = {
        number: code.best_window(document, each, SIZE, span) for number, each in enumerate(of)
    }
    search = WindowSearch(index, SIZE, 0.4)
    for _ in range(2):  # the second search finds clean scratch arrays
        found = search.windows_in(np.frombuffer(document, np.uint8))
        assert {number: code.Window(*rest) for number, *rest in found.tolist()} == {
            number: window
            for number, window in expected.items()
            if window and window.weight >= 0.4 * sum(of[number].values())
        }
