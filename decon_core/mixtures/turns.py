"""The kinds of the turns of conversations, in rows of any layout."""

from __future__ import annotations

from typing import Any

from decon_core.config.layouts import turn_names
from decon_core.mixtures.edit_rows import opened

# Kinds of turns, as letters, so that expressions find what belongs together.
USER, ASSISTANT, TOOL, SYSTEM, NO_TURN = "UATS-"
_KINDS = {
    role: kind
    for kind, name in ((ASSISTANT, "assistant"), (TOOL, "tool"), (SYSTEM, "system"))
    for role in turn_names(name)
}
_SOURCES = {name: _KINDS.get(name, USER) for name in ("user", "agent", "system", "environment")}
_RESULTS = turn_names("results")


def kind_of(turn: Any) -> str | None:
    """Return the kind of a turn; None: it is none. A role of no other kind is the user's."""
    turn = opened(turn)
    if not isinstance(turn, dict):
        return None
    roles = (turn.get(name) for name in ("role", "from"))
    role = next((role for role in roles if role is not None), None)
    if not isinstance(role, str):
        return _kind_of_event(turn) or _kind_of_item(turn)
    kind = _KINDS.get(role.lower(), USER)
    return TOOL if kind == USER and _holds_results(turn) else kind


def _kind_of_event(event: dict[str, Any]) -> str | None:
    """Return the kind of a step of ATIF, or of an event of OpenHands."""
    source = event.get("source")
    is_event = any(event.get(name) is not None for name in ("message", "action", "observation"))
    if not (is_event and isinstance(source, str) and source in _SOURCES):
        return None
    # ATIF has the results of a step as an object in the step.
    return TOOL if isinstance(event.get("observation"), str) else _SOURCES[source]


def _kind_of_item(item: dict[str, Any]) -> str | None:
    """Return the kind of an item of OpenAI's Responses that has no role."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return None
    if kind.endswith("_call_output"):
        return TOOL
    return ASSISTANT if kind == "reasoning" or kind.endswith("_call") else None


def _holds_results(turn: dict[str, Any]) -> bool:
    """Return whether a turn of the role "user" holds results of tools, in Anthropic's form."""
    blocks = opened(turn.get("content", turn.get("parts")))
    return isinstance(blocks, list) and any(
        isinstance(block, dict) and (block.get("type") in _RESULTS or _RESULTS & block.keys())
        for block in blocks
    )
