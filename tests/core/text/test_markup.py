"""Mark-up taken out of texts: kernel and oracle agree, and places cut out the original."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.formats.json_lines import JsonBlock
from decon_core.corpus.formats.lines import blocks_of
from decon_core.kernels import markup
from decon_core.kernels.jit import plain
from decon_core.text.canonical import canonical, canonical_with_offsets, words_with_places
from decon_core.text.markup import Stripper, stripped, stripped_with_offsets
from decon_core.text.word_cache import GrowingVocabulary
from tests.core.text.test_words import encoder, expected, ids_of, joining, packed
from tests.oracle.decon import canonical as canonical_of_oracle
from tests.oracle.text import without_markup
from tests.uncompiled import fewer

PROPERTY = settings(derandomize=True, max_examples=fewer(150))
LESS = settings(PROPERTY, max_examples=fewer(60))
BOTH = Policy(normalize_unicode=True, strip_markup=True)

PIECES = (
    *("<b>", "</b>", "<p>", "<br/>", "<br />", "<BR>", "<Object>", "<b and c>", "<wbr>", "<", ">"),
    *('<a href="x y">', "<a href='q'>", "<a href=x/>", "<a  b = c >", '<img alt="', '">', "<a b"),
    *("<!-- note -->", "<!--", "-->", "<!---->", "<!-->", "<script>", "</script>", "/>", "='", "="),
    *("&amp;", "&lt;", "&nbsp;", "&amp;nbsp;", "&amp;amp;lt;", "&shy;", "&#233;", "&#xE9;", "&no;"),
    *("&#128;", "&#0;", "&#xD800;", "&#99999999;", "&#x1F600;", "&nGt;", "&", "&amp", "amp;", ";"),
    *("%20", "%C3%A9", "%c3", "%F0%9F%98%80", "%E0%80%80", "%00", "%7F", "%2", "%zz", "100%", "%"),
    *("-\n", "-\r\n", "\u00ad\n  ", "\u2010\n\t", "-\n-\n", "-", "\n", "\r", " ", "x y", "#"),
    *("a", "b", "word", "İ", "日本", "\u200b", "A", "1", "!", "-->" * 2, " " * 9, "é" * 40, '"'),
    *("é", "Σ", "'"),
    *("](/", "](#a", "](https://a.b/", "](../", "](x", "](", "(c", ")", "]", "[", ' "t"', " 't'"),
    *("\\textbf{", "\\text{", "\\begin{quote}", "\\end{quote*}", "\\begin{", "\\item", "{", "}"),
    *("\\n", "\\t", "\\r\\n", "\\r", "\\neq", "\\nu", "\\times", "\\", "n", "t", "eq", "- \t\n"),
    *("\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\u0000", "\\u12", "\\u000a"),
    *("\x1b", "\\u001b", "\\u001B", "\\x1b", "\\x1B", "\\033", "\\e", "^", "^[", "[", "[m", "[K"),
    *("\x1b[", "\x1b[0;1m", "[?25l", "[2J", "[3", ";", "?", "H", "\x1b]8;;", "]8;;a:/b", "]", "m"),
    *("\x07", "\\u0007", "\\", "\\\\", "(B", ")0", "(", "B)", "\\0", "\\x1", "0", "8"),
    *(
        "\\\\u5f20",
        "\\\\ud83d\\\\ude00",
        "\\xe5\\xbc\\xa0",
        "\\\\xe5\\\\\\xbc",
        "\\xa0",
        "\\xc3",
        "\\xe0\\x80",
    ),
    *(
        "&#24352;" * 25,
        "&#x5f20;" * 22,
        "\\u5f20" * 21,
        "&#34;" * 30,
        "\\u00e9" * 33,
        "&#",
        "&#9999999",
    ),
)
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=25).map("".join)


@pytest.mark.parametrize(
    ("given_text", "left"),
    [
        ("con<b>tam</b>ination", "contamination"),
        ("con<wbr>tam<span class='x y'>in</span>ation", "contamination"),
        ('see <a href="https://a.b/c?d=e&amp;f">this</a>', "see this"),
        ("<p>one</p><p>two<br/>three</p>", " one  two three "),
        ("con<!-- cut -->tamination", "contamination"),
        ("con&shy;tam&#8203;ination", "con\u00adtam\u200bination"),
        ("fish&nbsp;&amp;&#32;chips", "fish\u00a0& chips"),
        ("&amp;nbsp;&amp;amp;lt;", "\u00a0<"),
        ("What%20is%20the%20caf%C3%A9%3F", "What is the café?"),
        ("contami-\nnation and contami-\r\n  nation", "contamination and contamination"),
        ("contami\u00ad\nnation", "contamination"),
        ("contami- \t\r\nnation", "contamination"),
        ("see [this](https://a.b/c_(d)?e=%20), [that](#x)", "see [this, [that"),
        ("[this](/wiki/A \"A title\") and ![it](../b.png 'c')", "[this and ![it"),
        (r"\textbf{one} \emph{two}, \text{cm}", "one} two}, cm}"),
        (r"\begin{itemize}\item one\end{itemize}", "   one "),
        (r"one\ntwo\n\nThree\r\nfour\tfive", "one\ntwo\n\nThree\nfour\tfive"),
        ("con\x1b[01;31m\x1b[Ktam\x1b[m\x1b[Kination", "contamination"),
        ("\x1b[38;5;231mone\x1b[0m\x1b[?25l\x1b[2;1Htwo\x1b(B\x1b[m", "one  two"),
        ("\x1b]8;;https://a.b/c\x1b\\link\x1b]8;;\x07 \x1b]0;a title\x07", "link "),
        (r"con\u001b[1mtam\u001B[mination", "contamination"),
        (r"\u001b]8;;file:///a\u001b\\link\u001b]8;;\u0007", "link"),
        (r"con\x1b[31mtam\033[0mi\e[1mna\x1B[Kt^[[01;31m^[[Kion^[[m^[[K", "contamination"),
        (r"don\u2019t caf\u00E9 \ud83d\ude00 \u0000", "don’t café 😀 "),
        (r"don\\u2019t caf\\\\u00E9 \\ud83d\\ude00 \\u001b[1m", "don’t café 😀 "),
        (r"b'\xe5\xbc\xa0\xc3\xa9' \\xf0\\x9f\\x98\\x80 \\textbf{b}", "b'张é' 😀 \\b}"),
        (f'<p title="{"&#34;" * 90}">a</p>', " a "),
        (f'<img alt="{"&#24352;" * 22}">', f'<img alt="{"张" * 22}">'),
        (
            f'<p data-a="{"&#x5F20;" * 21}">a<p data-a="{"&#x5F20;" * 22}">',
            f' a<p data-a="{"张" * 22}">',
        ),
        ('<a title="' + r"\u5f20" * 22 + '">b</a>', f'<a title="{"张" * 22}">b'),
    ],
)
def test_markup_is_taken_out_of_words(given_text, left):
    assert stripped(given_text) == without_markup(given_text) == left


@pytest.mark.parametrize(
    "text",
    [
        "100% of 20%20 and 5%",
        "a < b and b > c, a<b && c>d",
        "if a <b and c> d",
        "List<Object> and Map<String, T>",
        "AT&T, R&D; &copy and ?a=1&b=2;",
        "&#xD800; &#0; &#1114112; &unknown;",
        "T-\nshirt, 10-\n20, one -\ntwo, well-\nKnown, a-\n\nb",
        "<!-- not closed, <!-- a > b -->",
        '<img alt="a b c d e f g h i">',
        '<p title="' + "問" * 30 + '">',
        "<!-- one two three four five six seven eight -->",
        "printf('%d%d%02x')",
        "%C3%C3 %E0%80%80 %ED%A0%80 %00%00",
        "f[0](x) a](b/c) [x](y z) [a](/b [c] [d](/e 'f g)",
        '[a](/b "one two three four five six seven eight nine")',
        "pre- and post-war, long- term",
        r"\nabla \neq \ne \nu \not\in \theta \times \tan \to \triangle",
        r"\frac{a}{b} \mathrm{d} \begin{array}{cc} \items \textbf x",
        "a\x1bb \x1b[ 1m \x1b[1 \x1b(B) \x1b(b \x1b]8;; \x1b]8;;a\nb\x07 \x1b]x\x07",
        "\x1b]0;one two three four five six seven eight nine\x07 \x1b]8;;a\x1b",
        r"^[[A ^[[a-z]m ^[m \e[A \x1b[2J \033m \x1c[m \e m",
        r"\ud83d \ude00\ud83d \u12g4 \U0001 \r \x",
        r"\xe5 \xe5\xbc \xe5\xbcx \x41\x80 \xe0\x80\x80 \xed\xa0\x80 \\ud83d \\xi",
    ],
)
def test_what_only_looks_like_markup_or_holds_text_stays(text):
    assert stripped(text) == without_markup(text) == text


@PROPERTY
@given(TEXTS)
@example("<a b='" + "x" * 100)
def test_the_kernel_takes_out_what_the_oracle_does(text):
    assert stripped(text) == without_markup(text)


@LESS
@given(TEXTS)
def test_little_text_is_stripped_in_plain_python_as_by_the_kernels(text):
    compiled = stripped_with_offsets(text)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        for name in ("find_signs", "strip", "original_characters"):
            patch.setattr(markup, name, plain(getattr(markup, name)))
        result = stripped_with_offsets(text)
    assert result.text == compiled.text
    assert (result.starts == compiled.starts).all()
    assert (result.stops == compiled.stops).all()


@PROPERTY
@given(TEXTS)
def test_offsets_are_those_of_the_characters_that_stay(text):
    left = stripped_with_offsets(text)
    assert left.text == stripped(text)
    assert len(left.starts) == len(left.stops) == len(left.text)
    assert (np.diff(left.starts) >= 0).all()
    assert (np.diff(left.stops) >= 0).all()
    for char, start, stop in zip(left.text, left.starts, left.stops, strict=True):
        assert start < stop <= len(text)
        assert stop - start > 1 or text[start] == char  # no change takes a single character away


@PROPERTY
@given(st.lists(TEXTS, max_size=5), st.integers(0, 70))
def test_a_text_is_stripped_in_a_batch_as_by_itself(texts, n_before):
    data, starts, stops = packed(texts)
    data = np.concatenate([np.full(n_before, ord("-"), np.uint8), data])
    found, first, last = Stripper().strip(data, starts + n_before, stops + n_before)
    cut = [found[a:b].tobytes().decode() for a, b in zip(first, last, strict=True)]
    assert cut == [without_markup(text) for text in texts]


SHORT_PIECES = ["a<b>", "&lt;", "%41%42", "a-\na", "a-\r\na", "a\u2010\r\na", "a- \na"]
SHORT_PIECES += ["\\n", "\\u0041", "\\ud83d\\ude00", "\\text{", "\\item{", "](#)", "](/a 'b')"]
SHORT_PIECES += ["\x1b[m", "\\x1b[0m", "^[[K", "\x1b(B", "\x1b]8;;\x07", "\\u001b]8;;\\u001b\\\\"]


@pytest.mark.parametrize("piece", SHORT_PIECES)
def test_markup_at_the_very_end_of_a_batch_is_seen(piece):
    """What comes behind the last text belongs to none, however much room a reader has left."""
    for n_before in range(50, 140):
        text = "x" * n_before + piece
        data, starts, stops = packed([text])
        for n_spare in (0, 1, 8, 64):
            room = np.concatenate([data, np.zeros(n_spare, np.uint8)])
            found, first, last = Stripper().strip(room, starts, stops)
            assert found[first[0] : last[0]].tobytes().decode() == without_markup(text)


def test_a_shard_that_ends_in_markup_has_its_words_and_places():
    one = encoder("cl100k", strip_markup=True)
    for n in range(60, 130):
        text = ("word " * 40)[:n] + "x<br>"
        line = json.dumps({"text": text}).encode() + b"\n"
        (block,) = blocks_of(line, JsonBlock)
        batch = block.batch(Source(name="web", path="web", text="text"))
        tokens = one.encode(batch.text, batch.starts, batch.stops)
        assert one.places(0, text).first_word.size == tokens.lengths[0] > 0


@pytest.mark.parametrize("piece", SHORT_PIECES)
def test_markup_is_seen_wherever_it_stands_in_a_long_text(piece):
    """Many bytes are looked at together: there is an edge in front of, in and behind each piece."""
    for n_before in range(2040, 2060):
        text = "x" * n_before + piece + "x" * 3000
        assert stripped(text) == without_markup(text) != text


def test_texts_are_stripped_wherever_and_in_whatever_order_they_are():
    texts = ["<b>one</b>", "two", "&lt;three", "f%6Fu%72"]
    data, starts, stops = packed(texts)
    order = np.array([2, 0, 3, 1])
    found, first, last = Stripper().strip(data, starts[order], stops[order])
    cut = [found[a:b].tobytes().decode() for a, b in zip(first, last, strict=True)]
    assert cut == ["<three", "one", "four", "two"]


def test_a_batch_without_markup_is_not_copied():
    data, starts, stops = packed(["plain text, 100 %", "a < b - c\nd"])
    data = data.copy()
    assert Stripper().strip(data, starts, stops)[0] is data


@pytest.mark.parametrize(
    "piece",
    [
        *("<", "<a ", "<a b='", "<!--", "<!-- >", "&", "&amp;", "%20", "-\n", "a-\n", "a-   \n"),
        *("](#", "](/(", "](/ '", '](/ "', "\\textbf", "\\begin{", "\\n", "\\ud83d"),
        *("\x1b[", "\x1b[1", "\x1b]8", "\\u001b]8", "\x1b]8;;abc", "^[[1", "\\e[1", "\x1b("),
    ],
)
def test_many_beginnings_without_an_end_take_time_in_proportion(piece):
    # A walk to the end from each of them would take hours.
    text = piece * 400_000
    assert len(stripped(text)) <= len(text)


@LESS
@given(st.lists(TEXTS, max_size=4), st.sampled_from(["words", "cl100k", "joining"]), st.booleans())
def test_tokens_are_those_of_the_text_without_markup(texts, name, is_normalized):
    name = joining() if name == "joining" else name
    vocabulary = GrowingVocabulary()
    form = {"strip_markup": True, "normalize_unicode": is_normalized}
    found = encoder(name, vocabulary=vocabulary, **form).encode(*packed(texts))
    assert ids_of(found, vocabulary) == expected(texts, name, **form)


@LESS
@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(["words", "cl100k", "joining"]))
def test_places_lead_back_to_the_original(texts, name):
    name = joining() if name == "joining" else name
    one = encoder(name, strip_markup=True, normalize_unicode=True)
    lengths = one.encode(*packed(texts)).lengths
    for number, text in enumerate(texts):
        places = one.places(number, text)
        assert places.first_word.size == lengths[number]
        made = canonical_with_offsets(text, BOTH.form)
        if lengths[number]:
            first, last = places.characters(0, int(lengths[number]))
            if name != joining():  # it has no token for some characters
                assert (first, last) == made.original(0, len(made.text))
            assert 0 <= first < last <= len(text)


@PROPERTY
@given(TEXTS)
def test_canonical_text_is_that_of_the_oracle(text):
    assert canonical(text, BOTH.form) == canonical_of_oracle(text, BOTH)
    made = canonical_with_offsets(text, BOTH.form)
    assert made.text == canonical(text, BOTH.form)
    assert [*made.starts] == sorted(made.starts)


def test_a_match_is_cut_out_of_the_original_with_its_markup():
    text = "Before. W<b>h</b>at&nbsp;is co\u200bntami-\nnation? After."
    one = encoder(strip_markup=True, normalize_unicode=True)
    one.encode(*packed([text]))
    start, stop = one.places(0, text).characters(1, 4)
    assert text[start:stop] == "W<b>h</b>at&nbsp;is co\u200bntami-\nnation"


def test_words_are_shown_where_they_stand():
    text = "W<b>h</b>at&nbsp;is ｉt"
    found = [(word, text[a:b]) for word, a, b in words_with_places(text, BOTH.form)]
    assert found == [("what", "W<b>h</b>at"), ("is", "is"), ("it", "ｉt")]
