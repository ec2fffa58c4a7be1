"""Sessions of an assistant with tools, as chat rows of OpenAI: calls, results, a final answer."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

from sample_world.documents import Writer
from sample_world.plants import Piece, Plant

Message = dict[str, Any]


def _tool(name: str, description: str, **arguments: str) -> Message:
    """A tool with arguments that are all strings, and what each is for."""
    properties = {
        argument: {"type": "string", "description": told} for argument, told in arguments.items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    _tool(
        "search_notes",
        "Search the notebook of the user and return the pages that fit best.",
        query="Words that a page should hold.",
    ),
    _tool(
        "save_note",
        "Write a page into the notebook of the user, under a title.",
        title="A short title; a page with the same title is replaced.",
        text="The text of the page, in Markdown.",
    ),
    _tool(
        "save_card",
        "Put a card into the box of flash cards that the user learns from.",
        front="What is asked.",
        back="What has to be known.",
    ),
]

_THOUGHTS = (
    "The user wants this kept, so the notebook is the right place. One call should do.",
    "First look at what is there. A page that is replaced by mistake cannot be brought back.",
    "Nothing here needs a second source. Call the tool, then tell the user in one line.",
    "A short title is easier to find again later.",
)
_DONE = (
    "Done. It is in your notebook now.",
    "I have kept it; ask for it by its title whenever you need it.",
    "That is saved. Shall I do the same with the next one?",
)
_ASK_CARD = "Please make a flash card of the puzzle on the board, with its answer on the back."
_ASK_PAGE = "What was on the quiz page that I copied last winter? Just show it to me."


def session(writer: Writer, rng: Random, plant: Plant | None) -> list[Message]:
    """The messages of a session; a planted item makes an exchange of its own in the middle."""
    messages = _searched(writer, rng)
    if plant is not None:
        messages += _EXCHANGES[plant.position](plant.pieces[0], rng)
    for _ in range(rng.choice([0, 1, 1, 2])):
        messages += _saved(writer, rng)
    return messages


def _searched(writer: Writer, rng: Random) -> list[Message]:
    """The user asks for something that stands in the notebook."""
    page = "\n\n".join(writer.host(rng)[:3])
    query = " ".join(re.findall(r"\w+", page)[:4])
    result = json.dumps([{"title": query, "text": page}], ensure_ascii=False)
    ask, answer = writer.chat(rng)[:2]
    return [
        _user(f"Look into my notebook first. {ask['content']}"),
        *_call("search_notes", {"query": query}, result, rng),
        _assistant(answer["content"]),
    ]


def _saved(writer: Writer, rng: Random) -> list[Message]:
    """The user asks for a text, and the assistant writes it into the notebook."""
    ask, answer = writer.chat(rng)[:2]
    arguments = {"title": " ".join(ask["content"].split()[:5]), "text": answer["content"]}
    return [
        _user(f"Save this as a note. {ask['content']}"),
        *_call("save_note", arguments, '{"saved": true}', rng),
        _assistant(rng.choice(_DONE)),
    ]


def _in_tool_call(piece: Piece, rng: Random) -> list[Message]:
    arguments = {"front": piece.ask, "back": piece.reply}
    call = _call("save_card", arguments, '{"saved": true}', rng)
    return [_user(_ASK_CARD), *call, _assistant(rng.choice(_DONE))]


def _in_tool_result(piece: Piece, rng: Random) -> list[Message]:
    page = {"title": "Quiz page", "text": f"{piece.ask}\n{piece.reply}"}
    result = json.dumps([page], ensure_ascii=False)
    call = _call("search_notes", {"query": "quiz winter"}, result, rng)
    return [_user(_ASK_PAGE), *call, _assistant("This is the only page that fits.")]


def _over_two_turns(piece: Piece, rng: Random) -> list[Message]:
    call = _call("save_note", {"title": "Asked today", "text": "One more."}, '{"saved": true}', rng)
    return [_user(piece.ask), _assistant(piece.reply), _user("Note that I asked."), *call]


_EXCHANGES = {
    "in_tool_call": _in_tool_call,
    "in_tool_result": _in_tool_result,
    "over_two_turns": _over_two_turns,
}


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _call(name: str, arguments: dict[str, str], result: str, rng: Random) -> list[Message]:
    """A turn that only calls a tool, at times with a thought before it, and what comes back."""
    identity = f"call_{rng.randrange(16**8):08x}"
    # The arguments are JSON in a string, and most APIs escape what is not ASCII in it.
    function = {"name": name, "arguments": json.dumps(arguments)}
    turn: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }
    if rng.random() < 0.3:
        turn["reasoning_content"] = rng.choice(_THOUGHTS)
    return [turn, {"role": "tool", "tool_call_id": identity, "content": result}]
