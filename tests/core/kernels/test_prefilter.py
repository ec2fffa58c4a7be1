"""Screening lets no document go that shares an n-gram that opens a comparison, or holds a text."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.detectors.shared_runs import Sharing
from decon_core.index.record_texts import QUESTION, Pool
from decon_core.index.text_index import Verbatim, _arrays, _of_arrays
from decon_core.kernels import prefilter
from decon_core.kernels.instructions import LANES
from decon_core.kernels.word_stream import find_beginnings
from decon_core.text.tokenizers import load_tokenizer
from tests.uncompiled import IS_COMPILED, fewer

SLOW = settings(
    derandomize=True,
    max_examples=fewer(40),
)
SIGNS = [*"aB9_ .,-\n", "é", "字", "😀", "e\u0301", "the ", "train", "station", " of", "12", "?"]
TEXTS = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=25).map("".join)
CL100K = load_tokenizer("cl100k")


def begins_there(content: bytes, at: int) -> bool:
    """A character beyond ASCII, or a word behind a sign or space."""

    def is_of_word(byte: int) -> bool:
        return byte >= 0x80 or chr(byte).isalnum()

    if content[at] >= 0xC0:
        return True
    return at > 0 and is_of_word(content[at]) and not is_of_word(content[at - 1])


def can_be_found(content: bytes) -> bool:
    return any(begins_there(content, at) for at in range(len(content) - prefilter.SHORT + 1))


def grams_of(text: str, size: int) -> list[bytes]:
    """The bytes of every n-gram."""
    content, pieces = text.encode(), CL100K.pieces(text)
    return [
        content[pieces.starts[at] : pieces.stops[at + size - 1]]
        for at in range(pieces.ids.size - size + 1)
    ]


def verbatim_of(texts: list[str], policy: Policy) -> Verbatim:
    pool, versions = Pool(), [Version("one", "", len(texts), len(texts))]
    for number, text in enumerate(texts):
        pool.add(text, 0, number, QUESTION)
    arrays = _arrays(pool, np.empty(0, np.int64), versions, CL100K, policy)
    arrays["use_weight"] = np.zeros(len(texts))
    return _of_arrays(arrays, {"is_screened": "yes"})


def batch_of(documents: list[str], order: list[int], between: bytes) -> Batch:
    """Documents that lie anywhere, with anything between them."""
    text = between
    bounds = {}
    for number in order:
        content = documents[number].encode()
        bounds[number] = (len(text), len(text) + len(content))
        text += content + between
    starts, stops = np.array([bounds[at] for at in range(len(documents))], np.int64).T.copy()
    rows = np.arange(len(documents))
    return Batch(np.frombuffer(text, np.uint8), starts, stops, rows, 0, [], lambda _: None)


@st.composite
def documents_with(draw: st.DrawFn, texts: list[str]) -> list[str]:
    whole = st.sampled_from(texts)
    cut = st.builds(
        lambda text, at, n: text[at : at + n], whole, st.integers(0, 30), st.integers(0, 60)
    )
    pieces = st.lists(st.one_of(whole, cut, TEXTS), max_size=4).map("".join)
    return draw(st.lists(pieces, min_size=1, max_size=5))


@SLOW
@given(st.lists(TEXTS, min_size=1, max_size=5, unique=True), st.integers(2, 8), st.data())
def test_screening_is_looking_for_every_text_and_n_gram(
    texts: list[str], size: int, data: st.DataObject
) -> None:
    policy = Policy(detectors=("ratcliff",), shared_ngram_size=size, ratcliff_min_block=1)
    documents = data.draw(documents_with(texts))
    order = data.draw(st.permutations(range(len(documents))))
    between = data.draw(st.sampled_from([b"", b"\xff" * 50, b"the train ", b"\xe5" * 3, b"a"]))
    sharing = Sharing(verbatim_of(texts, policy), policy, CL100K)
    screened = sharing.look(batch_of(documents, order, between))
    expected = []
    for number, document in enumerate(documents):
        content = document.encode()
        grams = {gram for text in texts for gram in grams_of(text, size)}
        held = {gram for gram in grams if gram in content}
        assert screened.is_sharing[number] >= any(can_be_found(gram) for gram in held)
        assert screened.is_sharing[number] <= bool(held)
        for text in range(len(texts)):
            wanted = texts[text].encode()
            if can_be_found(wanted):
                places = range(len(content) - len(wanted) + 1)
                expected += [[number, text, at] for at in places if content.startswith(wanted, at)]
    assert screened.wholes.tolist() == expected


def test_texts_are_found_in_stretches_and_across_their_edges() -> None:
    text = "Which train leaves the station nine hours before any other train?"
    policy = Policy(detectors=("exact", "ratcliff"))
    sharing = Sharing(verbatim_of([text], policy), policy, CL100K)
    documents = [
        " " * at + text
        for at in range(prefilter.STRETCH - 80, prefilter.STRETCH + 8, 11 if IS_COMPILED else 29)
    ]
    screened = sharing.look(batch_of(documents, [*range(len(documents))], b""))
    assert screened.is_sharing.all()
    assert screened.wholes[:, prefilter.PLACE].tolist() == [
        len(document) - len(text) for document in documents
    ]


def test_bytes_of_no_document_overflow_nothing() -> None:
    """A batch is made in memory that held anything before."""
    policy = Policy(detectors=("exact",))
    sharing = Sharing(verbatim_of(["Which train leaves?"], policy), policy, CL100K)
    batch = batch_of(["a Which train leaves? b"], [0], b"\xff" * (prefilter.STRETCH + 100))
    assert sharing.look(batch).wholes.tolist() == [[0, 0, 2]]


def test_more_finds_than_there_is_room_for_are_all_kept() -> None:
    text = "Which train leaves?"
    policy = Policy(detectors=("exact",))
    sharing = Sharing(verbatim_of([text], policy), policy, CL100K)
    documents = [text, text * 10_000, text]
    wholes = sharing.look(batch_of(documents, [2, 0, 1], b" ")).wholes
    assert np.bincount(wholes[:, prefilter.DOCUMENT]).tolist() == [1, 10_000, 1]


def test_places_are_beginnings_of_words_and_characters_beyond_ascii() -> None:
    content = " one,twö 字x 3.14_a😀".encode()
    data = np.frombuffer(content + bytes(LANES), np.uint8)
    places = np.empty(len(content) + 8, np.int64)
    n = find_beginnings(data, 0, len(content), places)
    assert places[:n].tolist() == [at for at in range(len(content)) if begins_there(content, at)]
