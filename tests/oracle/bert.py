"""A BERT encoder by loops over numbers, in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erf, exp, sqrt
from typing import Any

Vector = list[float]


def states(
    tensors: Mapping[str, Any], ids: Sequence[int], *, n_layers: int, n_heads: int, least: float
) -> list[Vector]:
    """Return the last hidden state of each token. `tensors`: lists of lists, by name."""

    def linear(name: str, x: Vector) -> Vector:
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return [_dot(row, x) + b for row, b in zip(weight, bias, strict=True)]

    def norm(name: str, x: Vector) -> Vector:
        mean = sum(x) / len(x)
        deviation = sqrt(sum((value - mean) ** 2 for value in x) / len(x) + least)
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return [
            w * (value - mean) / deviation + b for value, w, b in zip(x, weight, bias, strict=True)
        ]

    words, positions, types = (
        tensors[f"embeddings.{kind}_embeddings.weight"]
        for kind in ("word", "position", "token_type")
    )
    xs = [
        norm("embeddings.LayerNorm", _sum(words[one], positions[at], types[0]))
        for at, one in enumerate(ids)
    ]
    for number in range(n_layers):
        layer = f"encoder.layer.{number}"
        own = f"{layer}.attention.self"
        queries, keys, values = (
            [linear(f"{own}.{part}", x) for x in xs] for part in ("query", "key", "value")
        )
        mixed = [_attended(query, keys, values, n_heads) for query in queries]
        joined = [linear(f"{layer}.attention.output.dense", one) for one in mixed]
        xs = [
            norm(f"{layer}.attention.output.LayerNorm", _sum(x, one))
            for x, one in zip(xs, joined, strict=True)
        ]
        inner = [[_gelu(v) for v in linear(f"{layer}.intermediate.dense", x)] for x in xs]
        outer = [linear(f"{layer}.output.dense", one) for one in inner]
        xs = [
            norm(f"{layer}.output.LayerNorm", _sum(x, one))
            for x, one in zip(xs, outer, strict=True)
        ]
    return xs


def _attended(query: Vector, keys: list[Vector], values: list[Vector], n_heads: int) -> Vector:
    size = len(query) // n_heads
    result: Vector = []
    for start in range(0, len(query), size):
        part = slice(start, start + size)
        weights = [exp(_dot(query[part], key[part]) / sqrt(size)) for key in keys]
        for at in range(start, start + size):
            column = [value[at] for value in values]
            result.append(_dot(weights, column) / sum(weights))
    return result


def _gelu(x: float) -> float:
    return x * (1 + erf(x / sqrt(2))) / 2


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _sum(*vectors: Sequence[float]) -> Vector:
    return [sum(values) for values in zip(*vectors, strict=True)]
