"""Rows of any shape with keys of published layouts, and sources that read them differently."""

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st

from decon_core.config.layouts import EVERYTHING, known_layouts
from decon_core.config.sources import Source
from decon_core.corpus.fields import LABELS, ORIGINS, RANKS, SPLITS

_PUBLISHED = sorted(
    {
        path
        for layout in known_layouts().values()
        for paths in (*layout.marks, *layout.visible, *layout.hidden)
        for path in paths.split(" + ")
        if path != EVERYTHING
    }
)
_NAMES = ("a", "b", "content", "text", "value", "parts", "é", "a.b", "d[]", "type", "k" * 40)
_NAMES_OF_TOKENS = ("input_ids", "prompt_token_ids", "tokens", "tokens.npy", "attention_mask")
KEYS = st.one_of(
    st.sampled_from(_NAMES_OF_TOKENS),
    st.sampled_from(_NAMES),
    st.sampled_from(sorted({*RANKS, *LABELS})),
    st.sampled_from([path for path in _PUBLISHED if path.isidentifier()]),
)
# Keys and strings for which the compiled readers leave a row to Python.
ODD_KEYS = st.sampled_from(
    [
        *("", "*", "[0]", "[role=user]", 'q"', "back\\", "\ud800", "?", "\ufffd", "new\nline"),
        "A key of so many words that it is itself a text of the row",
    ]
)
SENTENCES = (
    "Nine words of plain text stand in this sentence.",
    "Nine words of plain text stand in that sentence.",
    "Слова другого письма тоже разделены пробелами, как и эти слова.",
    "山水木火土金石田力口日月目手足犬牛羊鳥山水木火土金石田力口日月",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำและข้อความนี้ยาวพอ",
)
_ENCODED = base64.b64encode(bytes(range(120))).decode()
_ENCODED_TEXT = base64.b64encode(b" ".join([SENTENCES[0].encode()] * 3)).decode()
SHORT = (
    *("", "x", "user", "assistant", "seven words are no text of any"),
    *("ünï", "{", "[]", "{}", "[1, 2]", '{"a": 1}', '{"a": 1, "a": "one key, twice"}'),
    _ENCODED_TEXT,
    *(_ENCODED, f"{_ENCODED}\n{_ENCODED}=", f"{_ENCODED} and", "a" * 63, "1/2 " * 30),
    *("words_that_are_joined_by_a_sign_of_base64_are_no_base64_but_a_text", "long" * 15 + "-+/_-"),
)
_JOINED = "https://a.b/?q=" + quote_plus(f"{SENTENCES[0]} {SENTENCES[1]}")
ENCODED = (  # texts, joined as in a URL, with base64 in them, or otherwise encoded
    *(_JOINED, quote(SENTENCES[3]), "-".join(SENTENCES[1].split() * 2), _JOINED[:70]),
    *(f"echo {_ENCODED_TEXT} | base64 -d", f"a\n{_ENCODED_TEXT}\r\n{_ENCODED_TEXT}\nb"),
    *(f"echo {_ENCODED}", _ENCODED_TEXT[:60], SENTENCES[0].encode().hex() * 2),
    base64.b64encode((SENTENCES[0] * 3).encode("utf-16-le")).decode(),
    str([*range(300, 3960, 61), *[11] * 6]),  # like token ids
    *(str([*range(900, 917)]), " ".join(map(str, range(250, 266))), "900 901\n902", "900"),
    *("".join(f"&#{ord(one)};" for one in SENTENCES[3]), json.dumps(SENTENCES[3])[1:-1]),
)
SCALARS = st.one_of(
    st.sampled_from(ENCODED),
    st.sampled_from(SENTENCES),
    st.sampled_from(SENTENCES),
    st.sampled_from(SHORT),
    st.text(max_size=40),
    st.sampled_from([None, True, 0, -1.5, 2**70]),
)
ODD_SCALARS = st.sampled_from(
    [
        *("data:", "data:image/png;base64,aGk=", "\ud800", 10**50),
        *(f"data:text/plain;base64,{_ENCODED_TEXT}", f"data:image/png;base64,{_ENCODED}"),
        "data: words behind a colon, which are a text like any other",
        "a lone \ud800 surrogate between words of a text that is long enough",
    ]
)

QUOTED = ("a\nb", "", '"', SENTENCES[0], f"{SENTENCES[0]}\n{SENTENCES[3]}", "\ud800\\", '"x')
# Numbers in lists: token ids, bytes of a text, others.
NUMBERS = st.one_of(
    st.lists(st.integers(0, 50_000), min_size=14, max_size=18),
    st.sampled_from([[*(f"{SENTENCES[at]} " * 2).encode()] for at in (0, 2, 4)]),
    st.sampled_from([[1] * 70, [*range(256)], [32, 65, 66] * 30, [32, 65, -1, 0.5] * 16]),
    st.sampled_from([[7.0] * 16, [[5] * 9] * 2, [[5] * 16, [6] * 9, [6] * 9], ["700"] * 16]),
    st.sampled_from([[{"id": 5}] * 16, [{"id": 5, "text": "x"}] * 16]),
)


def _as_json(value):
    """Return JSON in a string, in several forms."""
    forms = [json.dumps(value), json.dumps(value, ensure_ascii=False)]
    return st.sampled_from([*forms, f" \n{json.dumps(value, indent=1)}\t"])


def _values_of(keys, scalars):
    def containers(inner):
        objects = st.dictionaries(keys, inner, max_size=4)
        lists = st.one_of(st.lists(inner, max_size=3), NUMBERS)
        roles = st.sampled_from(["user", "tool", None, 5])
        turns = st.lists(st.fixed_dictionaries({"role": roles, "content": inner}), max_size=3)
        once = st.one_of(objects, lists).flatmap(_as_json)
        twice = once.flatmap(lambda text: _as_json([text, {"text": text}]))
        quoted = st.one_of(once, st.sampled_from(QUOTED)).flatmap(_as_json)
        return st.one_of(objects, lists, turns, once, twice, quoted)

    return st.recursive(scalars, containers, max_leaves=6)


# What may name a dataset and its split, at most 64 bytes of it, and values that name none.
NAMED = st.dictionaries(
    st.sampled_from([*sorted({*ORIGINS, *SPLITS}), "extra_info.split"]),
    st.one_of(
        st.sampled_from(
            ["openai/gsm8k", "test", "é\n", "é" * 32, "é" * 33, "a" * 64, "[]", '["a"]']
        ),
        st.sampled_from(["A 1 b 2 c 3 d 4 e", None, 5, ["test"], *SHORT]),
    ),
    max_size=4,
)
VALUES = _values_of(KEYS, SCALARS)
ODD_VALUES = _values_of(st.one_of(KEYS, ODD_KEYS), st.one_of(SCALARS, ODD_SCALARS))


@st.composite
def rows_for(draw, source):
    """A row with text at some paths of the source and of a published layout."""
    row = {}
    layout = known_layouts()[draw(st.sampled_from([*known_layouts()]))]
    mark = draw(st.sampled_from(layout.alternatives))
    paths = st.sampled_from([*mark, *layout.visible, *layout.hidden])
    chosen = [*(source.paths or mark), *draw(st.lists(paths, max_size=3))]
    for path in draw(st.permutations(chosen)):
        put(row, path, draw(VALUES))
    row |= draw(NAMED)
    if draw(st.integers(0, 2)) == 0:
        row["extra_info"] = draw(NAMED)
    if draw(st.integers(0, 4)) == 0:
        row |= draw(st.dictionaries(ODD_KEYS, ODD_VALUES, max_size=2))
        return row | {draw(st.sampled_from(["text", "messages", "zz"])): draw(ODD_VALUES)}
    return row | draw(st.dictionaries(KEYS, VALUES, max_size=2))


def put(row, path, value):
    """Put a value where a path leads to; the place may hold something else already."""
    key, is_nested, rest = path.replace("*", "any").partition(".")
    name = key.replace("[]", "")
    if is_nested:
        inner = row.get(name)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        value = put(inner if isinstance(inner, dict) else {}, rest, value)
    for _ in range(key.count("[]")):
        value = [value, value] if value == SENTENCES[0] else [value]
    row[name] = value
    return row


PATHS = st.sampled_from(
    [
        *(
            "text",
            "messages",
            "messages[].content",
            "a",
            "a.b",
            "*",
            "*.content",
            "messages[].*.text",
        ),
        *(
            "conversations[].value",
            "prompt[]",
            "text[].text",
            "content.parts[]",
            "é",
            "messages[][]",
        ),
    ]
)
IGNORE = st.sampled_from([(), (), ("*",)])
SOURCES = st.one_of(
    st.builds(lambda ignore: Source(name="rows", path="", ignore=ignore), IGNORE),
    st.builds(
        lambda layout: Source(name="rows", path="", layout=layout),
        st.sampled_from([*known_layouts()]),
    ),
    st.builds(
        lambda text, ignore: Source(name="rows", path="", text=text, ignore=ignore), PATHS, IGNORE
    ),
    st.builds(
        lambda text, ignore: Source(name="rows", path="", text=tuple(text), ignore=ignore),
        st.lists(PATHS, min_size=2, max_size=3, unique=True),
        IGNORE,
    ),
    st.builds(
        lambda roles, ignore: Source(
            name="rows", path="", messages="messages", roles=roles, ignore=ignore
        ),
        st.sampled_from([(), ("user",)]),
        IGNORE,
    ),
)
