"""The tokens that hold given characters, compared with the bytes in the vocabulary."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.errors import ConfigError
from decon_core.text.trainer_tokens import byte_ranges, load_trainer_tokenizer
from tests.core.trainer_tokenizers import TEXTS, byte_level, bytes_of, word_piece


def load(name, *, special=False):
    return load_trainer_tokenizer(name, add_special_tokens=special, where="here")


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    return {
        "trimmed": byte_level(folder / "trimmed.json"),
        "whole": byte_level(folder / "whole.json", trim=False),
        "words": word_piece(folder / "words.json"),
    }


# Pieces of which a vocabulary knows some, and characters of one to four bytes.
PIECES = st.sampled_from(
    [" ", "\n", "  ", "w12", "crabs", "naïve", "東", "京", "😀", "é", "e\u0301", "x"]
)
DOCUMENTS = st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=25).map("".join)


@st.composite
def marked(draw):
    """A text, disjoint spans of it, and places at which it is cut into sections."""
    text = draw(DOCUMENTS | st.sampled_from(TEXTS))
    places = st.lists(st.integers(0, len(text)), max_size=8)
    edges = sorted(set(draw(places)))
    spans = [*pairwise(edges)][::2]
    return text, spans, sorted(draw(places))


def overlaps(one, other):
    return one[0] < other[1] and other[0] < one[1]


@pytest.mark.parametrize("name", ["trimmed", "whole"])
@given(case=marked())
def test_prop_masked_tokens_are_those_that_hold_a_byte_of_a_span(paths, name, case):
    text, spans, cuts = case
    tokenizer, content = load(paths[name]), bytes_of(paths[name])
    encoded = tokenizer.encode(text, cuts)
    ids = encoded.pieces.ids.tolist()
    # What each token holds, by the vocabulary alone.
    assert b"".join(content[one] for one in ids) == text.encode()
    ranges = [*pairwise(accumulate([len(content[one]) for one in ids], initial=0))]
    wanted = [(len(text[:a].encode()), len(text[:b].encode())) for a, b in spans]
    assert [*byte_ranges(text, spans)] == wanted
    touching = encoded.touching(spans).tolist()
    assert [any(overlaps(one, span) for span in wanted) for one in ranges] == touching
    assert tokenizer.decode(ids) == text


@given(case=marked())
def test_prop_a_word_piece_is_masked_if_and_only_if_it_covers_a_masked_character(paths, case):
    text, spans, _ = case
    encoded = load(paths["words"]).encode(text)
    touching = encoded.touching(spans).tolist()
    pieces = encoded.pieces
    covered = [*zip(pieces.starts.tolist(), pieces.stops.tolist(), strict=True)]
    wanted = [*byte_ranges(text, spans)]
    assert touching == [any(overlaps(one, span) for span in wanted) for one in covered]
    for start, stop in spans:
        for at in range(start, stop):
            if text[at].isascii() and text[at].isalnum():  # no token holds white space
                (place,) = byte_ranges(text, [(at, at + 1)])
                holders = [
                    mask
                    for one, mask in zip(covered, touching, strict=True)
                    if overlaps(one, place)
                ]
                assert holders
                assert all(holders)


@given(case=marked())
def test_prop_the_tokens_of_a_section_are_those_of_its_text_alone(paths, case):
    text, _, cuts = case
    tokenizer = load(paths["trimmed"], special=True)
    encoded = tokenizer.encode(text, cuts)
    plain = load(paths["trimmed"])
    sections = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
    alone = [plain.encode(section).pieces.ids.tolist() for section in sections]
    edges = encoded.section_edges
    assert [encoded.pieces.ids[a:b].tolist() for a, b in pairwise(edges)] == alone
    assert (edges[0], encoded.pieces.ids.size - edges[-1]) == (1, 1)
    # Special tokens are around the whole, once, and hold no character.
    assert encoded.touching([(0, len(text))])[[0, -1]].tolist() == [False, False]


def test_names_of_special_tokens_in_a_text_are_text(paths):
    tokenizer = load(paths["trimmed"], special=True)
    ids = tokenizer.encode("a <|end|> b").pieces.ids.tolist()
    assert (ids[0], ids[-1]) == (0, 1)
    assert not {0, 1} & {*ids[1:-1]}


def test_a_bundled_vocabulary_holds_bytes_too():
    text, tokenizer = "naïve 👩‍👩‍👧 w12", load("cl100k")
    encoded = tokenizer.encode(text)
    masked = encoded.pieces.ids[encoded.touching([(6, 7)])].tolist()
    assert tokenizer.decode(encoded.pieces.ids.tolist()) == text
    assert tokenizer.decode(masked).lstrip().startswith("👩")


def test_a_tokenizer_that_no_trainer_can_use_is_refused(tmp_path):
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(
        ConfigError, match=r"here: found .*empty.json \(.*expected a tokenizer.json"
    ):
        load(str(tmp_path / "empty.json"))
    with pytest.raises(ConfigError, match=r"here: found 'words'.*vocabulary"):
        load("words")
    with pytest.raises(ConfigError, match="puts no special tokens"):
        load("cl100k", special=True)
    with pytest.raises(ConfigError, match="here: found 'gpt9'"):
        load("gpt9")
