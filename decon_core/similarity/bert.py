"""Embeddings by a BERT encoder from a local sentence-transformers folder, computed with numpy.

Each text is computed alone, without padding: its embedding does not depend on the other texts. The
oracle in `tests/oracle/bert.py` computes the same with loops.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.errors import InputError, Problem

Vectors = npt.NDArray[np.float32]

_WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_MODULES = ("Transformer", "Pooling", "Normalize")
_POOLINGS = ("mean_tokens", "cls_token")


@dataclass(frozen=True)
class ModelFolder:
    """The settings of a sentence-transformers folder."""

    path: Path
    config: Mapping[str, Any]
    modules: tuple[str, ...]  # the names of their classes
    pooling: tuple[str, ...]
    max_tokens: int
    is_lower_case: bool

    @property
    def files(self) -> tuple[Path, Path]:
        return self.path / _WEIGHTS, self.path / _TOKENIZER

    @property
    def settings(self) -> bytes:
        """Everything but the files that determines the vectors."""
        return repr((self.config, self.pooling, self.max_tokens, self.is_lower_case)).encode()

    def unsupported(self) -> str | None:
        """Return what this module cannot compute, or None."""
        kind, activation = self.config.get("model_type"), self.config.get("hidden_act", "gelu")
        position = self.config.get("position_embedding_type", "absolute")
        other = [name for name in self.modules if name not in _MODULES]
        missing = [file.name for file in self.files if not file.is_file()]
        if kind != "bert":
            return f"the architecture {kind!r}"
        if activation != "gelu" or position != "absolute":
            return f"the activation {activation!r} with {position} positions"
        if other:
            return f"the module {other[0]!r}"
        if len(self.pooling) != 1 or self.pooling[0] not in _POOLINGS:
            return f"pooling by {' and '.join(self.pooling) or 'nothing'}"
        return f"no {missing[0]}" if missing else None


def read_folder(path: Path) -> ModelFolder:
    """Read the settings of a sentence-transformers folder."""
    config = _read_json(path / "config.json")
    modules = _read_json(path / "modules.json", default=[])
    folders = {_class_name(one): one.get("path", "") for one in modules}
    pooling = _read_json(path / folders.get("Pooling", "1_Pooling") / "config.json", default={})
    sentence = _read_json(path / "sentence_bert_config.json", default={})
    positions = int(config.get("max_position_embeddings", 512))
    modes = [name for name, is_on in pooling.items() if name.startswith("pooling_mode_") and is_on]
    return ModelFolder(
        path=path,
        config=config,
        modules=tuple(folders) or _MODULES[:2],
        pooling=tuple(name.removeprefix("pooling_mode_") for name in modes) or _POOLINGS[:1],
        max_tokens=min(int(sentence.get("max_seq_length") or positions), positions),
        is_lower_case=bool(sentence.get("do_lower_case")),
    )


def _class_name(module: Mapping[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _read_json(path: Path, default: Any = None) -> Any:
    if default is not None and not path.is_file():
        return default
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        expected = "a folder as sentence-transformers saves it"
        raise InputError(Problem(str(path), str(error), expected)) from None


class _Norm(NamedTuple):
    weight: Vectors
    bias: Vectors
    least: float  # added to the variance

    def __call__(self, x: Vectors) -> Vectors:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred) / np.float32(x.shape[1])
        scale = 1 / np.sqrt(variance + np.float32(self.least))
        result: Vectors = centred * scale[:, None] * self.weight + self.bias
        return result


class _Dense(NamedTuple):
    weight: Vectors
    bias: Vectors

    def __call__(self, x: Vectors) -> Vectors:
        result: Vectors = x @ self.weight
        result += self.bias
        return result


class _Layer(NamedTuple):
    attended: _Dense  # queries, keys and values of all heads, side by side
    joined: _Dense
    norm: _Norm
    inner: _Dense
    outer: _Dense
    last_norm: _Norm

    def __call__(self, x: Vectors, n_heads: int) -> Vectors:
        n = len(x)
        parts = self.attended(x).reshape(n, 3, n_heads, -1).transpose(1, 2, 0, 3)
        queries, keys, values = np.ascontiguousarray(parts)
        mixed = _softmax(queries @ keys.transpose(0, 2, 1)) @ values
        x = self.norm(x + self.joined(mixed.transpose(1, 0, 2).reshape(n, -1)))
        return self.last_norm(x + self.outer(_gelu(self.inner(x))))


class Bert:
    """A BERT encoder with its tokenizer and pooling."""

    def __init__(self, folder: ModelFolder) -> None:
        weights, tokenizer = folder.files
        self._folder = folder
        self._tokenizer = read_tokenizer(tokenizer)
        self._tokenizer.enable_truncation(folder.max_tokens)
        self._load(Tensors(weights))

    def _load(self, tensors: Tensors) -> None:
        config = self._folder.config
        self._n_heads = int(config["num_attention_heads"])
        least = float(config.get("layer_norm_eps", 1e-12))
        self._words = tensors["embeddings.word_embeddings.weight"]
        self._positions = (
            tensors["embeddings.position_embeddings.weight"]
            + tensors["embeddings.token_type_embeddings.weight"][0]
        )
        self._norm = tensors.norm("embeddings.LayerNorm", least)
        self._layers = [
            tensors.layer(f"encoder.layer.{number}", self._n_heads, least)
            for number in range(int(config["num_hidden_layers"]))
        ]
        self.n_dimensions = int(self._words.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, not normalized."""
        given = [one.lower() for one in texts] if self._folder.is_lower_case else list(texts)
        result = np.zeros((len(given), self.n_dimensions), np.float32)
        for row, encoding in enumerate(self._tokenizer.encode_batch(given)):
            states = self._states(np.array(encoding.ids, np.int64))
            is_mean = self._folder.pooling == _POOLINGS[:1]
            result[row] = states.mean(axis=0) if is_mean else states[0]
        return result

    def _states(self, ids: npt.NDArray[np.int64]) -> Vectors:
        """Return the last hidden state of each token."""
        x = self._norm(self._words[ids] + self._positions[: len(ids)])
        for layer in self._layers:
            x = layer(x, self._n_heads)
        return x


def read_tokenizer(path: Path) -> Any:
    """Read a tokenizer.json; without the padding and truncation that it may set."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is plain text
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class Tensors:
    """The tensors of a safetensors file as float32, by name without the prefix `bert.`."""

    def __init__(self, path: Path) -> None:
        import safetensors

        self._path = path
        deserialize: Any = safetensors.deserialize  # untyped
        try:
            tensors = deserialize(path.read_bytes())
        except safetensors.SafetensorError as error:
            raise InputError(Problem(str(path), str(error), "a safetensors file")) from None
        self._tensors = {name.removeprefix("bert."): one for name, one in tensors}

    def __getitem__(self, name: str) -> Vectors:
        if name not in self._tensors:
            raise InputError(Problem(str(self._path), f"no tensor {name!r}", "a BERT encoder"))
        tensor = self._tensors[name]
        return _float32(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])

    def norm(self, name: str, least: float) -> _Norm:
        return _Norm(self[f"{name}.weight"], self[f"{name}.bias"], least)

    def dense(self, *names: str) -> _Dense:
        """Return linear maps as one, side by side."""
        weights = np.concatenate([self[f"{name}.weight"] for name in names]).T
        biases = np.concatenate([self[f"{name}.bias"] for name in names])
        return _Dense(np.ascontiguousarray(weights), biases)

    def layer(self, name: str, n_heads: int, least: float) -> _Layer:
        own = f"{name}.attention.self"
        attended = self.dense(*(f"{own}.{part}" for part in ("query", "key", "value")))
        n = attended.bias.size // 3
        scale = np.float32(1 / np.sqrt(n / n_heads))  # of the queries, once instead of per text
        attended.weight[:, :n] *= scale
        attended.bias[:n] *= scale
        return _Layer(
            attended,
            self.dense(f"{name}.attention.output.dense"),
            self.norm(f"{name}.attention.output.LayerNorm", least),
            self.dense(f"{name}.intermediate.dense"),
            self.dense(f"{name}.output.dense"),
            self.norm(f"{name}.output.LayerNorm", least),
        )


def _float32(data: bytes, kind: str) -> Vectors:
    if kind == "BF16":  # the upper half of a float32
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, {"F64": "f8", "F32": "f4", "F16": "f2"}[kind]).astype(np.float32)


def _softmax(x: Vectors) -> Vectors:
    """Return the softmax over the last axis, in place."""
    x -= x.max(axis=-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


# erf by a rational function of exp (Abramowitz and Stegun 7.1.26), accurate to 1.5e-7: numpy has
# no erf.
_ERF = tuple(map(np.float32, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)))
_ERF_SLOPE = np.float32(0.3275911 / np.sqrt(2))


def _gelu(x: Vectors) -> Vectors:
    """Return x times the share of a normal distribution below x."""
    t = np.abs(x)
    t *= _ERF_SLOPE
    t += 1
    np.reciprocal(t, out=t)
    tail = t * _ERF[0]
    for factor in _ERF[1:]:
        tail += factor
        tail *= t
    np.multiply(x, x, out=t)
    t *= np.float32(-0.5)
    np.exp(t, out=t)
    tail *= t  # 1 - erf(|x| / sqrt 2): twice the share beyond |x|
    tail *= np.float32(0.5) * np.abs(x)
    result: Vectors = np.maximum(x, 0)
    result -= tail
    return result
