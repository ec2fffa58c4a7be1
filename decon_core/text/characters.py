"""Tables of characters and mark-up that canonical text drops or folds, and the settings for it.

The tables are facts of Unicode and HTML. Both the oracle and the stages read them, but each
implements their use independently.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from html.entities import html5
from importlib.resources import files
from unicodedata import category, normalize


@dataclass(frozen=True, kw_only=True)
class Form:
    """The settings for canonical text."""

    punctuation: str
    normalize_unicode: bool = False
    strip_markup: bool = False


# Unicode ------------------------------------------------------------------------------------------

N_CASED = 0x20000  # code points; all cased scripts are among them

# The property Default_Ignorable_Code_Point: invisible characters.
_IGNORABLE_RANGES = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
HIDDEN = "".join(f"{chr(first)}-{chr(last)}" for first, last in _IGNORABLE_RANGES)  # in patterns
IGNORABLE = {point: None for first, last in _IGNORABLE_RANGES for point in range(first, last + 1)}

# Signs and letters that look like an ASCII one, by that one. They are folded everywhere, even if
# NFKC would decompose them (an acute accent becomes a space and a combining mark). In Turkish, the
# upper case of a dotless i is I. The strokes of the other letters are accents to who omits them.
_SIGNS = {
    "-": "\u02d7\u2010\u2011\u2012\u2013\u2015\u2043\u2212",
    "'": "\u00b4\u02b9\u02bb\u02bc\u02bd\u02ca\u201b\u2032\u2035\u2039\u203a",
    '"': "\u00ab\u00bb\u201e\u201f\u2033\u2036\u300c\u300d\u300e\u300f\u301d\u301e\u301f",
    ",": "\u201a\u3001",
    ".": "\u3002\u30fb",
    "(": "\u3008\u300a\u3010\u3014\u3016",
    ")": "\u3009\u300b\u3011\u3015\u3017",
    "/": "\u2044\u2215",
    ":": "\u2236\ua789",
    "*": "\u2217",
    "~": "\u223c\u301c",
    "|": "\u2223",
    "d": "\u0111",
    "i": "\u0131",
    "l": "\u0142",
    "o": "\u00f8\u01ff",
}
SIGNS = {ord(sign): ascii_sign for ascii_sign, signs in _SIGNS.items() for sign in signs}

# Lower-case letters that look like a Latin one, in lower or upper case: Cyrillic, Greek, Armenian
# and two phonetic letters. They are folded in words with an ASCII letter.
_LETTERS = (
    ("\u0430\u0432\u0435\u0455\u0456\u0458\u043a\u043c\u043d\u043e\u0440\u0441", "abesijkmhopc"),
    ("\u0442\u0443\u0445\u04bb\u0501\u051b\u051d\u0475\u04cf", "tyxhdqwvl"),
    ("\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5", "abezhikvoptu"),
    ("\u03c7\u03f3", "xj"),
    ("\u0585\u057d\u0570\u0578\u0566\u0581", "ouhnqg"),
    ("\u0251\u0261", "ag"),
)
LOOK_ALIKES = {
    ord(letter): latin
    for letters, latins in _LETTERS
    for letter, latin in zip(letters, latins, strict=True)
}

# Accents: combining marks that are dropped. Letters from a to z also lose those that are part of
# their character.
ACCENTS = {
    point: None
    for first, last in ((0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF))
    for point in range(first, last + 1)
}

# Vowel signs of Arabic and Hebrew, which most texts leave out. In other scripts, vowel signs stay.
_VOWEL_SIGNS = (
    (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
    (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC), (0x06DF, 0x06E4),
    (0x06E7, 0x06E8), (0x06EA, 0x06ED), (0x08CA, 0x08E1), (0x08E3, 0x08FF),
)  # fmt: skip
_TATWEEL = 0x0640  # lengthens Arabic words

# Arabic and Cyrillic letters that are often written as another letter: alef with hamza or madda,
# alef maksura and the Persian yeh, the Persian kaf, teh marbuta and other letters heh; yo, and
# vowels with a stress mark.
_VARIANTS = {
    "\u0627": "\u0622\u0623\u0625\u0671",
    "\u064a": "\u0649\u06cc",
    "\u0643": "\u06a9",
    "\u0647": "\u0629\u06c0\u06c1\u06c2\u06c3\u06d5",
    "\u0435": "\u0450\u0451",
    "\u0438": "\u045d",
}

# Greek letters lose their accents, which upper case leaves out.
_GREEK = {
    point: parts[0]
    for first, last in ((0x370, 0x3FF), (0x1F00, 0x1FFF))
    for point in range(first, last + 1)
    if (parts := normalize("NFD", chr(point)))[0].islower()
    and len(parts) > 1
    and ACCENTS.keys() >= {*map(ord, parts[1:])}
}


def _simplified() -> dict[int, str]:
    """Return the simplified form of each character of Traditional Chinese."""
    content = files(__package__).joinpath("simplified.toml").read_text("utf-8")
    pairs = "".join(tomllib.loads(content)["pairs"].split())
    return {ord(char): simple for char, simple in zip(pairs[::2], pairs[1::2], strict=True)}


# Letters, by code point, with the letter that canonical text has instead; marks with None.
PLAIN_LETTERS = {
    **ACCENTS,
    **{point: None for first, last in _VOWEL_SIGNS for point in range(first, last + 1)},
    _TATWEEL: None,
    **_GREEK,
    **_simplified(),
    **{ord(one): letter for letter, variants in _VARIANTS.items() for one in variants},
}

# Scripts without spaces between words, from one character to another: if Unicode is normalized,
# each of their characters is a word, with the voicing marks of kana behind it.
UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
)
VOICING_MARKS = "\u3099\u309a"

# Vowel signs and other marks within words, which are no word characters of regular expressions.
MARKS = "".join(char for char in map(chr, range(0x300, 0x1200)) if category(char) in ("Mn", "Mc"))

# HTML ---------------------------------------------------------------------------------------------

# Inline elements: their tags are removed. Every other tag is replaced by a space.
_INLINE = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q ruby s samp
    small span strike strong sub sup time tt u var wbr
"""
_BLOCK = """
    address applet area article aside audio base basefont blockquote body br button canvas caption
    center col colgroup datalist dd details dialog dir div dl dt embed fieldset figcaption figure
    footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input label
    legend li link main map marquee menu meta meter nav noframes noscript object ol optgroup option
    output p param picture pre progress rp rt script search section select slot source style summary
    svg table tbody td template textarea tfoot th thead title tr track ul video
"""
# All lower or all upper case; `<Object>` and the like are types in source code.
TAGS = {
    spelled: between
    for names, between in ((_INLINE, ""), (_BLOCK, " "))
    for name in names.split()
    for spelled in (name, name.upper())
}

# Entities by name, without `&` and `;`. Those whose text is longer than their spelling are left
# out: text must never grow.
ENTITIES = {
    name[:-1]: text
    for name, text in html5.items()
    if name.endswith(";") and len(text.encode()) <= len(name) + 1
}

# Numeric entities that browsers read as Windows-1252.
WINDOWS_1252 = {
    number: ord(text)
    for number in range(0x80, 0xA0)
    if (text := bytes([number]).decode("cp1252", errors="ignore"))
}

# Control characters that are not white space are dropped. Those that browsers read as Windows-1252
# are its characters: U+0092 is an apostrophe.
CONTROLS = {
    point: chr(WINDOWS_1252[point]) if point in WINDOWS_1252 else None
    for first, last in ((0, 8), (0x0E, 0x1F), (0x7F, 0x84), (0x86, 0x9F))
    for point in range(first, last + 1)
}

# Markdown, LaTeX and escape sequences -------------------------------------------------------------

_FORMATTING = """
    textbf textit texttt textrm textsf textsc textsl textup textmd textnormal text mbox emph
    underline
"""
_ENVIRONMENTS = """
    abstract center description document enumerate example exercise flushleft flushright itemize
    lemma problem proof question quotation quote solution theorem
"""
# Commands of LaTeX, with what follows the name, and what replaces them.
COMMANDS = {
    **{f"{name}{{": "" for name in _FORMATTING.split()},
    **{f"{edge}{{{name}}}": " " for name in _ENVIRONMENTS.split() for edge in ("begin", "end")},
    "item": " ",
}

# Commands of LaTeX that begin like the escape sequences `\n` and `\t`.
_LIKE_ESCAPES = """
    nabla natural nearrow ne neg neq newcommand newenvironment newline newpage newtheorem nexists
    ngeq ngeqslant ngtr ni nleftarrow nleq nleqslant nless nmid nobreak nocite noindent nolimits
    nonumber norm normalfont normalsize not notag notin nparallel nprec npreceq nrightarrow
    nsim nsubseteq nsucc nsucceq nsupseteq ntriangleleft ntriangleright nu null numberwithin nwarrow
    tableofcontents tag tan tanh tau tbinom text textbf textcolor textit textmd textnormal textrm
    textsc textsf textsl textstyle texttt textup textwidth tfrac thanks the therefore theta
    thickapprox thicksim thinspace tilde times tiny title to top triangle triangledown triangleleft
    trianglelefteq triangleq triangleright trianglerighteq tt twoheadrightarrow
"""
LIKE_ESCAPES = frozenset(_LIKE_ESCAPES.split())
