"""Cutting changes the strings and turns that leaked, in every slot of a row, and nothing else."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of
from decon_core.corpus.row_json import decoded
from decon_core.corpus.row_texts import KEY
from decon_core.mixtures import edit_rows
from decon_core.mixtures.conversations import MEDIA, NO_ANSWER_LEFT, NOT_ALONE, REFERENCE
from decon_core.mixtures.edit_rows import is_empty
from decon_core.mixtures.excise import (
    NO_TURN,
    NOT_EXACT,
    NOTHING_LEFT,
    NOTHING_LEFT_OF_FIELD,
    excised,
)
from tests.core.corpus.random_rows import rows_for
from tests.uncompiled import fewer

EVERYTHING = Source(name="rows", path="")
LEAK = "Which of these many sentences is the leak"
KEPT = "More than thirty-two bytes of the text are kept."
LONG = f"{KEPT} {LEAK}?"
LONG_KEY = f"{LEAK} in a key of so many words that it is a text"


def cut(row, *leaks, by="spans", mask="", source=EVERYTHING):
    """Return a row without these texts, or why it goes."""
    document = document_of(row, 0, source)
    starts = [(document.text.index(leak), len(leak)) for leak in leaks]
    entries = [_entry(start, start + size) for start, size in starts]
    return excised(row, document, entries, Mixture(name="m", cut=by, mask=mask))


def _entry(start, stop):
    spans = {
        f"{part}_char_{edge}": None for part in ("answer", "passage") for edge in ("start", "stop")
    }
    return {"question_char_start": start, "question_char_stop": stop, **spans}


SLOTS = [
    lambda text: {"text": text},
    lambda text: {"a": {"b": [{"c": text, "d": 1.5}], "x": None}, "e": "other"},
    lambda text: {"rows": [["other", text], [], {"": [text]}]},
    lambda text: {"a": json.dumps({"query": text, "n": 3})},
    lambda text: {"a": json.dumps({"q": "é", "query": [text]}, ensure_ascii=False, indent=2)},
    lambda text: {"a": [json.dumps([text, 1.25, True, None], separators=(",", ":"))], "b": "other"},
    lambda text: {"a": json.dumps({"b": json.dumps([{"c": text}]), "d": "other"})},
    lambda text: {"messages": [{"role": "tool", "content": [{"type": "text", "text": text}]}]},
    lambda text: {"a.b": {"[0]": text}, "d[]": 'q"'},
    lambda text: {"\ud800": [text, "\udc00"], "b": json.dumps(["\ud800", text])},
    lambda text: {"a": f'{{"b": "{text}", "n": {10**23}}}'},
    lambda text: {"a": f'{{"b": "a key twice", "b": "{text}"}}'},
    lambda text: {"a": [("a key of a map", {"b": text}), (text, 1)]},
    lambda text: {"a": [text.encode(), b"\xff", {"b": f'["{text}"]'.encode()}]},
]  # fmt: skip


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("mask", ["", "[cut]"])
def test_a_span_is_cut_in_every_slot_and_the_rest_stays_as_it_is(slot, mask):
    assert cut(slot(LONG), LEAK, mask=mask) == slot(f"{KEPT} {mask}?")


@pytest.mark.parametrize(
    "text",
    [
        '{"a" : "%s"}',
        '{"a": "%s", "n": 1.10}',
        '{"a": "%s", "b": "\\/"}',
        ' {"a": "%s"}',
        '{"a": "%s", "b": "\\u00E9"}',
    ],
)
def test_a_row_goes_if_json_in_a_string_cannot_be_written_back_as_it_was(text):
    row = {"a": text.replace("%s", LONG), "b": "other"}
    assert cut(row, LEAK) == NOT_EXACT
    assert cut({**row, "b": f"other {LEAK} text"}, f"other {LEAK}") == {**row, "b": " text"}


def test_a_row_goes_if_its_answer_is_a_number():
    """No text can stand in the place of the number."""
    rows = [{"system": "other", "question": LEAK, "answer": 48}] * 2
    assert cut(rows[0], f"{LEAK}\n\n48") in (NOT_EXACT, NOTHING_LEFT_OF_FIELD)
    assert cut({"a": rows, "answer": 48}, "48") == NOT_EXACT
    assert cut(rows[0], LEAK, by="turns") == NO_TURN


def test_all_copies_of_a_text_are_cut():
    row = {
        "steps": [{"input": [LONG, "x"]}, {"input": [LONG, f"x {LONG}"]}],
        "log": json.dumps({"again": [LONG, {"and": LONG}]}),
    }
    left = f"{KEPT} ?"
    assert cut(row, LEAK) == {
        "steps": [{"input": [left, "x"]}, {"input": [left, f"x {LONG}"]}],
        "log": json.dumps({"again": [left, {"and": left}]}),
    }


def test_a_leak_in_a_key_costs_the_row_or_its_turn():
    assert cut({"a": {LONG_KEY: "x"}}, LEAK) == NOT_EXACT
    assert cut({"a": [{LONG_KEY: "x"}, "y"]}, LEAK, by="turns") == {"a": ["y"]}


def test_a_field_of_which_nothing_is_left_costs_the_row():
    assert cut({"prompt": f"{LEAK}?!", "answer": "x"}, LEAK) == NOTHING_LEFT_OF_FIELD
    assert cut({"prompt": f"{LEAK}?!", "answer": "x"}, LEAK, mask="[cut]") == NOTHING_LEFT_OF_FIELD
    assert cut({"prompt": f"{LEAK}?!", "answer": "x"}, LEAK, by="turns") == NO_TURN


def _turn(role, content):
    return {"role": role, "content": content}


RULES = _turn("system", "Be nice.")
QUESTION, ANSWER = _turn("user", f"{LEAK}?"), _turn("assistant", "This one.")
CALL, RESULT = _turn("assistant", f"{LEAK}()"), _turn("tool", "a result")
NEXT, LAST = _turn("user", "And now?"), _turn("assistant", "Nothing.")
END = [NEXT, LAST]
ASKED = _turn("assistant", None) | {"tool_calls": [{"id": "c1", "function": {"name": "f"}}]}
LEAKED_RESULT = _turn("tool", LEAK)


def _step(source, message, **more):
    return {"source": source, "message": message, **more}


STEPS = [_step("user", "And now?"), _step("agent", "Nothing.")]
ACTION = {"source": "agent", "action": "run", "args": {"command": "x"}, "observation": None}
OBSERVED = {"source": "agent", "action": None, "observation": "run", "content": LEAK}


def _from(name, text):
    return {"role": None, "from": name, "value": text}


def _blocks(role="assistant", **texts):
    return _turn(role, [{"type": kind, "id": "t1", "content": texts[kind]} for kind in texts])


@pytest.mark.parametrize(
    ("turns", "left"),
    [
        ([RULES, QUESTION, ANSWER, NEXT, LAST], [RULES, NEXT, LAST]),
        ([QUESTION, ANSWER, RESULT, LAST, NEXT, LAST], [NEXT, LAST]),
        ([QUESTION, NEXT, LAST], [NEXT, LAST]),
        ([NEXT, CALL, RESULT, LAST], [NEXT, LAST]),
        ([NEXT, LAST, QUESTION], [NEXT, LAST]),
        ([_turn("system", LEAK), NEXT, LAST], [NEXT, LAST]),
        ([_turn("user", [{"type": "text", "text": LEAK}]), ANSWER, NEXT, LAST], [NEXT, LAST]),
        ([_turn("user", ["x", LEAK]), ANSWER, NEXT], [_turn("user", ["x", ""]), ANSWER, NEXT]),
        ([NEXT, LAST, QUESTION, RESULT], [NEXT, LAST]),
        ([{"from": "human", "value": LEAK}, {"from": "gpt", "value": "x"}, *END], END),
        ([NEXT, _turn("assistant", LEAK), NEXT, LAST], END),
        ([_turn("user", "A riddle."), NEXT, _turn("model", LEAK), NEXT, LAST], END),
        ([NEXT, LAST, _turn("assistant", LEAK), NEXT, LAST], [*END, *END]),
        ([NEXT, ASKED, RESULT, _turn("assistant", LEAK), NEXT, LAST], END),
        ([NEXT, ASKED, RESULT, ASKED, LEAKED_RESULT], [NEXT, ASKED, RESULT]),
        ([NEXT, ASKED, LEAKED_RESULT, LAST], [NEXT, LAST]),
        ([NEXT, ASKED, RESULT, LEAKED_RESULT, RESULT, LAST], [NEXT, LAST]),
        ([NEXT, ASKED, RESULT, ASKED, LEAKED_RESULT, LAST], [NEXT, ASKED, RESULT, LAST]),
        ([_step("user", LEAK), _step("agent", "x", observation={"a": "x"}), *STEPS], STEPS),
        ([*STEPS, *STEPS[:1], _step("agent", LEAK), *STEPS], [*STEPS, *STEPS]),
        ([_from("human", LEAK), _from("gpt", "x"), *END], END),
        ([NEXT, ASKED, _turn("toolResult", LEAK), LAST], [NEXT, LAST]),
        ([NEXT, _blocks(tool_use=LEAK), _blocks("user", tool_result="x"), LAST], END),
        ([NEXT, _blocks(tool_use="x"), _blocks("user", tool_result=LEAK), LAST], END),
        ([NEXT, {"type": "x_call", "a": LEAK}, {"type": "x_call_output", "a": "x"}, LAST], END),
        ([NEXT, {"type": "x_call", "a": "x"}, {"type": "x_call_output", "a": LEAK}, LAST], END),
    ],
)
@pytest.mark.parametrize(
    "holder",
    [
        lambda turns: {"messages": turns},
        lambda turns: {"a": {"conversations": turns}, "b": "other"},
        lambda turns: {"messages": json.dumps(turns), "n": 1},
        lambda turns: {"data": [{"messages": turns, "about": "other"}]},
        lambda turns: {"runs": [{"log": json.dumps({"turns": turns})}, "other"]},
        lambda turns: {"chats": [[NEXT, LAST], turns]},
        lambda turns: {"messages": [json.dumps(turn) for turn in turns]},
    ],
)
def test_a_turn_of_which_nothing_is_left_takes_its_answer_along(turns, left, holder):
    assert cut(holder(turns), LEAK) == holder(left)
    if left[0] != _turn("user", ["x", ""]):  # a turn of which something is left
        assert cut(holder(turns), LEAK, by="turns") == holder(left)


@pytest.mark.parametrize("leaked", [ACTION | {"args": {"command": LEAK}}, OBSERVED])
def test_an_event_of_an_agent_takes_its_call_or_results_along(leaked):
    pair = [leaked, OBSERVED | {"content": "y"}] if leaked["action"] else [ACTION, leaked]
    row = {"history": [STEPS[0], ACTION, OBSERVED | {"content": "z"}, *pair, STEPS[1]]}
    assert cut(row, LEAK, by="turns") == {"history": [*row["history"][:3], STEPS[1]]}


def test_a_copy_of_a_turn_is_removed_too_and_one_in_a_field_costs_the_row():
    turns = [QUESTION, ANSWER, NEXT, LAST]
    steps = {"steps": [{"input": turns}, {"input": [*turns, NEXT]}, {"input": [NEXT]}]}
    assert cut({"a": turns, "b": turns}, LEAK, by="turns") == {"a": END, "b": END}
    left = {"steps": [{"input": inner} for inner in (END, [*END, NEXT], [NEXT])]}
    assert cut(steps, LEAK, by="turns") == left
    assert cut({"a": turns, "b": QUESTION["content"]}, LEAK, by="turns") == NO_TURN
    assert cut({"a": turns, "b": QUESTION["content"]}, LEAK) == NOTHING_LEFT_OF_FIELD


RIDDLE = [_turn("user", "Give me a riddle."), _turn("assistant", LEAK)]
MORE = [*RIDDLE, NEXT, LAST]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [RULES, QUESTION, ANSWER]},
        {"messages": RIDDLE, "e": "other"},
        {"messages": [RULES, QUESTION], "answer": "x"},
        {"contents": [QUESTION], "systemInstruction": {"parts": [{"text": "Be nice."}]}},
        {"messages": [RULES, *RIDDLE]},
        {"messages": [LAST, *RIDDLE]},
        {"messages": [*RIDDLE, NEXT]},
        {"messages": [NEXT, ASKED, LEAKED_RESULT]},
        {"messages": json.dumps(RIDDLE), "meta": {"e": "other"}},
        {"chats": [END, RIDDLE]},
    ],
)
@pytest.mark.parametrize("by", ["spans", "turns"])
def test_a_conversation_that_keeps_no_question_with_its_answer_costs_the_row(row, by):
    assert cut(row, LEAK, by=by) == NO_ANSWER_LEFT


@pytest.mark.parametrize(
    "row",
    [
        {"chosen": [QUESTION, ANSWER], "rejected": [QUESTION, LAST], "score_chosen": 4.0},
        {"chosen": MORE, "rejected": [*END, *END]},
        {"chosen": [*END, *END], "rejected": MORE, "e": {"e": "other"}},
        {"prompt": [NEXT], "chosen": [LAST], "rejected": [_turn("assistant", LEAK)]},
        {"prompt": "x", "chosen": ["other"], "rejected": [LEAK]},
        {"messages": MORE, "rejected_messages": END},
        {"input": {"messages": MORE}, "preferred_output": [LAST], "non_preferred_output": [LAST]},
        {"prompt": [QUESTION], "completion": [ANSWER]},
        {"prompt": [NEXT], "completion": [_turn("assistant", LEAK)]},
        {"prompt": [*END, QUESTION], "reward_model": {"ground_truth": "x"}},
        {"input": [*END, QUESTION], "output": [{"type": "message", "content": "x"}]},
        {"responses_create_params": {"input": [*END, QUESTION]}, "expected_answer": "x"},
        {"messages": [*END, QUESTION], "ground_truth": "x"},
        {"conversation_a": MORE, "conversation_b": [*END, *END], "winner": "model_a"},
        {"response_a": json.dumps([LEAK, "x"]), "response_b": json.dumps(["y", "x"])},
    ],
)
@pytest.mark.parametrize("by", ["spans", "turns"])
def test_a_pair_or_a_prompt_is_not_cut_alone(row, by):
    assert cut(row, LEAK, by=by) == NOT_ALONE


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_an_empty_side_makes_no_pair(nothing):
    assert cut({"messages": MORE, "rejected": nothing}, LEAK) == {
        "messages": END,
        "rejected": nothing,
    }


@pytest.mark.parametrize("by", ["spans", "turns"])
def test_a_pair_without_a_role_keeps_no_answer_alone(by):
    history = [[LEAK, "an answer"], ["x", "y"]]
    assert cut({"history": history, "query": "q", "response": "r"}, LEAK, by=by) == {
        "history": history[1:],
        "query": "q",
        "response": "r",
    }
    turns = [{"human": LEAK, "assistant": "an answer"}, {"human": "x", "assistant": "y"}]
    assert cut({"conversation": turns}, LEAK, by=by) == {"conversation": turns[1:]}
    assert cut({"a": [["x", LEAK, "y"]]}, LEAK) == {"a": [["x", "", "y"]]}


CHAT = [QUESTION, ANSWER, *END]
LEFT = ["other", "a third"]


@pytest.mark.parametrize(
    "row",
    [
        {"info": {"post": "x"}, "summaries": [{"text": LEAK}, {"text": "other"}], "choice": 0},
        {"choices": ["x", LEAK, "other"], "answer_idx": 2},
        {"choices": ["x", LEAK, "other"], "answer": "B"},
        {"outs": [LEAK, "other"], "best": 1},
        {"text_list": [LEAK, *LEFT], "image_info": [{"matched_text_index": 2}]},
        {"images": [None, "cat.jpg", None], "texts": [LEAK, None, "other"]},
        {"who": [["u", "a"], ["u", "a"]], "what": [[LEAK, "x"], ["other", "y"]]},
        {"messages": CHAT, "train_on_turn": [3]},
        {"messages": CHAT, "scores": [None, 0.1, None, 0.9]},
        {"messages": CHAT, "safety": ["safe", "unsafe", "safe", "safe"]},
        {"messages": CHAT, "turn_rewards": [0.0, 1.0]},
        {"messages": CHAT, "meta": {"scores": [0, 1, 0, 1]}},
        {"messages": CHAT, "scores": "[0, 1, 0, 1]"},
        {"messages": CHAT, "annotations": [{"ok": True}] * 4},
        {"conv": {"messages": CHAT}, "scores": [0, 1, 0, 1]},
    ],
)
@pytest.mark.parametrize("by", ["spans", "turns"])
def test_a_field_that_refers_to_elements_of_a_cut_list_costs_the_row(row, by):
    assert cut(row, LEAK, by=by) == REFERENCE


@pytest.mark.parametrize(
    "about",
    [
        {"num_turns": 4, "turns": 4, "id": 2, "score": 1, "conversation_id": 3},
        {"tools": [{"name": "search"}] * 4},
        {"tags": ["math", "word problem", "easy", "short"]},
        {"size": [512, 512, 3], "message_id": 1},
        {"images": []},
        {"image": "docker.io/made-up:latest"},
    ],
)
def test_metadata_beside_a_chat_keeps_the_row(about):
    assert cut({"messages": CHAT, **about}, LEAK) == {"messages": END, **about}


def test_a_conversation_is_no_label_of_a_list_of_as_many_elements():
    row = {"generations": [LEAK, "x", "y", "z"], "messages": CHAT[2:] * 2}
    assert cut(row, LEAK, by="turns") == row | {"generations": ["x", "y", "z"]}


def test_pictures_stay_with_their_turns_or_the_row_goes():
    asked, other = _turn("user", f"<image>{LEAK}"), _turn("user", "<image>Another picture.")
    parts = [{"type": "image"}, {"type": "text", "text": LEAK}]
    for turn in (asked, _turn("user", parts)):
        row = {"messages": [turn, ANSWER, other, LAST], "images": ["a.jpg", "b.jpg"]}
        assert cut(row, LEAK, by="turns") == MEDIA
        assert cut({"data": row}, LEAK, by="turns") == MEDIA
    row = {"messages": [QUESTION, ANSWER, NEXT, LAST], "images": ["a.jpg"]}
    assert cut(row, LEAK) == MEDIA  # nothing says which turn has the picture
    row = {"conversations": [asked, ANSWER, NEXT, LAST], "image": "a.jpg"}
    assert cut(row, LEAK, by="turns") == MEDIA
    kept = {"messages": [other, LAST], "images": ["a.jpg"]}
    assert cut(kept | {"messages": [QUESTION, ANSWER, other, LAST]}, LEAK) == kept


@pytest.mark.parametrize("by", ["spans", "turns"])
def test_of_nested_lists_the_innermost_record_goes(by):
    asked = {"question": LEAK, "answers": [{"text": LEAK, "answer_start": 4}]}
    other = {"question": "x", "answers": [{"text": "y", "answer_start": 9}]}
    paragraphs = [{"context": "about other things", "qas": [asked, other]}]
    left = [{"context": "about other things", "qas": [other]}]
    assert cut({"paragraphs": paragraphs}, LEAK, by=by) == {"paragraphs": left}
    steps = [{"obs": "x", "act": LEAK, "r": 0.1}, {"obs": "y", "act": "z", "r": 0.2}]
    row = {"rollouts": [{"steps": steps}]}
    assert cut(row, LEAK, by=by) == {"rollouts": [{"steps": steps[1:]}]}
    only = {"rollouts": [{"steps": steps[:1], "e": "other"}, {"steps": steps[1:], "e": "other"}]}
    assert cut(only, LEAK, by=by) == {"rollouts": only["rollouts"][1:]}


@pytest.mark.parametrize(
    "call",
    [{"arguments": json.dumps({"q": LEAK})}, {"arguments": {"q": LEAK}}, {"arguments": LEAK}],
)
def test_a_call_of_a_tool_whose_argument_is_empty_goes_with_its_result(call):
    both = ASKED | {"tool_calls": [{"function": call}, {"function": {"arguments": "{}"}}]}
    assert cut({"messages": [NEXT, both, RESULT, RESULT, LAST]}, LEAK) == {"messages": END}
    used = _turn("assistant", [{"type": "text", "text": "x"}, {"type": "tool_use", "input": call}])
    row = {"messages": [NEXT, used, _blocks("user", tool_result="x"), LAST]}
    assert cut(row, LEAK) == {"messages": END}


def test_names_and_states_beside_the_content_keep_no_question():
    about = {"country": "Germany", "state": "DONE", "turn_identifier": "a1"}
    turns = [QUESTION | about, ANSWER | about, *END]
    assert cut({"conversation": turns}, LEAK) == {"conversation": END}
    asked = [NEXT | {"about": LEAK}, LAST]
    assert cut({"messages": asked}, LEAK) == {"messages": [NEXT | {"about": ""}, LAST]}


@pytest.mark.parametrize("holder", [lambda row: row, lambda row: {"data": json.dumps(row)}])
def test_a_list_with_labels_beside_it_keeps_all_elements_or_the_row_goes(holder):
    for beside in ([True, False], [0.5, 1], ["stop", "length"]):
        row = {"problem": "A problem.", "generations": [LEAK, "other"], "correct": beside}
        for by in ("spans", "turns"):
            assert cut(holder(row), LEAK, by=by) == REFERENCE
    pairs = {"models": ["a", "b"], "completions": [{"response": LEAK}, {"response": "other"}]}
    assert cut(holder(pairs | {"instruction": "x"}), LEAK, by="turns") == REFERENCE
    turns = [QUESTION, ANSWER, *END]
    assert cut(holder({"messages": turns, "weights": [0, 1, 0, 1]}), LEAK) == REFERENCE
    for beside in ([1], ["a", "b", "c", "d"], "abcd"):
        left = {"messages": END, "about": beside}
        assert cut(holder(left | {"messages": turns}), LEAK) == holder(left)


def test_metadata_is_no_text_that_is_left():
    row = {"text": [LEAK], "id": "x y z", "metadata": {"about": "a few words of a riddle"}}
    assert cut(row, LEAK, by="turns") == NOTHING_LEFT


def test_a_role_that_is_no_string_is_none():
    odd = [{"role": [LEAK], "n": 1}, {"role": {"a": "x"}}, {"source": ["x"], "action": "x"}, NEXT]
    for by in ("spans", "turns"):
        assert cut({"messages": odd}, LEAK, by=by) == {"messages": odd[1:]}


def test_turns_are_removed_whole_in_strings_with_json_too():
    turns = [QUESTION, ANSWER, NEXT, LAST]
    assert cut({"m": json.dumps(turns)}, LEAK, by="turns") == {"m": json.dumps(END)}
    assert cut({"m": f"{json.dumps(turns)} "}, LEAK, by="turns") == NOT_EXACT


def test_a_conversation_in_a_string_is_not_opened_again_for_each_turn(monkeypatch):
    n_opened = []

    def counted(value):
        n_opened[-1] += value.startswith("[{")
        return decoded(value)

    monkeypatch.setattr(edit_rows, "decoded", counted)
    for n in (2, 20):
        leaks = [f"{LEAK} {at} of {n}" for at in range(n)]
        turns = [turn for leak in leaks for turn in (_turn("user", leak), ANSWER)]
        n_opened.append(0)
        left = cut({"m": json.dumps([*turns, *END])}, *leaks, by="turns")
        assert left == {"m": json.dumps(END)}
    assert n_opened[0] == n_opened[1]


@pytest.mark.parametrize("is_ascii", [True, False])
def test_json_that_was_encoded_twice_is_cut_and_written_back(is_ascii):
    def encoded(value):
        return json.dumps(value, ensure_ascii=is_ascii)

    leak = "张伟在一家公司工作了八年之后决定离开去另一个城市"
    whole, rest = {"q": f"one {leak} two", "n": 1}, {"q": "one  two", "n": 1}
    row, left = {"a": encoded(encoded(whole)), "b": "z"}, {"a": encoded(encoded(rest)), "b": "z"}
    assert cut(row, leak) == left
    assert cut({"a": encoded(f"x\n{leak}y")}, leak) == {"a": encoded("x\ny")}
    turns = encoded(encoded([QUESTION, ANSWER, *END]))
    assert cut({"m": turns}, LEAK, by="turns") == {"m": encoded(encoded(END))}
    assert cut({"m": f"{turns} "}, LEAK, by="turns") == NOT_EXACT


def test_a_string_with_json_may_be_left_without_text():
    assert cut({"a": json.dumps([LEAK]), "b": "other"}, LEAK) == {"a": "[]", "b": "other"}
    assert cut({"a": json.dumps({"b": LEAK}), "b": "x"}, LEAK) == NOTHING_LEFT_OF_FIELD


def leaves(value, keys=()):
    """Return all values below a value by their keys."""
    inner = decoded(value) if isinstance(value, str) else None
    if isinstance(inner, str):
        return leaves(inner, keys)
    value = value if inner is None else inner
    if isinstance(value, dict):
        return {k: v for key in value for k, v in leaves(value[key], (*keys, key)).items()}
    if isinstance(value, list):
        numbered = enumerate(value)
        return {k: v for at, one in numbered for k, v in leaves(one, (*keys, at)).items()}
    return {keys: value}


@settings(max_examples=fewer(80))
@given(row=rows_for(EVERYTHING), data=st.data())
def test_only_what_leaked_is_changed_in_rows_of_any_shape(row, data):
    document = document_of(row, 0, EVERYTHING)
    if not isinstance(document, Document) or not document.parts:
        return
    part = data.draw(st.sampled_from(document.parts))
    text = document.text[part.start : part.stop]
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    if is_empty(text[:start] + text[stop:], ""):
        return
    entry = _entry(part.start + start, part.start + stop)
    left = excised(row, document, [entry], Mixture(name="m", cut="spans", mask="[cut]"))
    if left == NOT_EXACT:
        assert part.keys[-1] == KEY or any(
            isinstance(value, str) and decoded(value) for value in _on_the_way(row, part)
        )
    else:
        changed = {part.keys, *part.copies}
        after = leaves(row) | dict.fromkeys(changed, f"{text[:start]}[cut]{text[stop:]}")
        assert unquoted(leaves(left)) == unquoted(after)


def unquoted(strings):
    """Return strings without the quotes of JSON, which are read if it has no escapes."""
    return {keys: v.strip('" ') if isinstance(v, str) else v for keys, v in strings.items()}


def _on_the_way(row, part):
    for keys in (part.keys, *part.copies):
        value = row
        yield value
        for key in keys:
            while isinstance(value, str):
                value = decoded(value)
            value = value[key]
            yield value
