"""The suffix automaton of a range of tokens: which of its runs ends a sequence of other tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Integers, Numbers, zeros
from decon_core.kernels.hashing import BASE, MIX, mixed, next_slot, scaled
from decon_core.kernels.jit import inlined, kernel

# Columns of states and edges.
_LONGEST, _LINK, END, _EDGES = 0, 1, 2, 3
_SOURCE, _TOKEN, _TARGET, _NEXT = 0, 1, 2, 3

# Not a literal: numba compiles a function called with a literal twice.
ZERO = np.int64(0)


class Automaton(NamedTuple):
    """At most 2n states and 3n edges."""

    states: Integers  # one for all substrings with the same end positions
    edges: Integers  # edges by token, from state to state
    slots: Numbers  # numbers of edges, from 1


@kernel
def automaton_of(tokens: Numbers, start: int, stop: int) -> Automaton:
    """Build the suffix automaton of a range of tokens.

    `END` is the end of the first occurrence of a state's substrings, so that the first occurrence
    of a run is found.
    """
    n = stop - start
    states, edges = np.empty((2 * n + 2, 4), np.int64), np.empty((3 * n + 2, 4), np.int64)
    slots = zeros(6 * n + 4)
    _set_state(states, 0, 0, NONE, start)
    last, n_states, n_edges = ZERO, ZERO + 1, ZERO
    for at in range(start, stop):
        token = np.int64(tokens[at])
        new = n_states
        n_states += 1
        _set_state(states, new, states[last, _LONGEST] + 1, 0, at + 1)
        state = last
        last = new
        edge = ZERO
        while state != NONE:
            edge = _edge(edges, slots, state, token)
            if edge != NONE:
                break
            n_edges = _add_edge(states, edges, slots, n_edges, state, token, new)
            state = states[state, _LINK]
        if state == NONE:
            continue
        target = edges[edge, _TARGET]
        if states[target, _LONGEST] == states[state, _LONGEST] + 1:
            states[new, _LINK] = target
            continue
        # The shorter substrings of the target have a new end position: they get a separate state.
        shorter = n_states
        n_states += 1
        longest = states[state, _LONGEST] + 1
        _set_state(states, shorter, longest, states[target, _LINK], states[target, END])
        edge = states[target, _EDGES]
        while edge != NONE:
            old, goal = edges[edge, _TOKEN], edges[edge, _TARGET]
            n_edges = _add_edge(states, edges, slots, n_edges, shorter, old, goal)
            edge = edges[edge, _NEXT]
        while state != NONE:
            edge = _edge(edges, slots, state, token)
            if edge == NONE or edges[edge, _TARGET] != target:
                break
            edges[edge, _TARGET] = shorter
            state = states[state, _LINK]
        states[target, _LINK] = shorter
        states[new, _LINK] = shorter
    return Automaton(states, edges, slots)


@kernel
def step(automaton: Automaton, state: int, length: int, token: int) -> tuple[int, int]:
    """Step by a token; return state and length of the longest known run ending with it."""
    states, edges, slots = automaton
    while True:
        edge = _edge(edges, slots, state, token)
        if edge != NONE:
            return edges[edge, _TARGET], length + 1
        if state == 0:
            return state, state
        state = states[state, _LINK]
        length = states[state, _LONGEST]


@inlined
def _set_state(states: Integers, state: int, longest: int, link: int, end: int) -> None:
    states[state, _LONGEST] = longest
    states[state, _LINK] = link
    states[state, END] = end
    states[state, _EDGES] = NONE


@kernel
def _edge_slot(edges: Integers, slots: Numbers, state: int, token: int) -> int:
    """Return the slot of the edge from a state by a token, or a free slot for it."""
    slot = scaled(mixed((np.uint64(state) * BASE ^ np.uint64(token)) * MIX), slots.size)
    while slots[slot]:
        edge = np.int64(slots[slot]) - 1
        if edges[edge, _SOURCE] == state and edges[edge, _TOKEN] == token:
            break
        slot = next_slot(slot, slots.size)
    return slot


@kernel
def _edge(edges: Integers, slots: Numbers, state: int, token: int) -> int:
    """Return the edge from a state by a token, `NONE` if there is none."""
    return np.int64(slots[_edge_slot(edges, slots, state, token)]) - 1


@inlined
def _add_edge(
    states: Integers,
    edges: Integers,
    slots: Numbers,
    n_edges: int,
    state: int,
    token: int,
    target: int,
) -> int:
    """Add an edge; return the number of edges."""
    edges[n_edges, _SOURCE] = state
    edges[n_edges, _TOKEN] = token
    edges[n_edges, _TARGET] = target
    edges[n_edges, _NEXT] = states[state, _EDGES]
    states[state, _EDGES] = n_edges
    slots[_edge_slot(edges, slots, state, token)] = np.uint32(n_edges + 1)
    return n_edges + 1
