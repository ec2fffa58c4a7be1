"""The review screen: show one matched text at a time, and take a verdict with one key."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import textwrap
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from decon_assets.cli.review.session import Session
from decon_assets.terminal.output import say
from decon_core.config.policy import Policy
from decon_core.decisions.annotations import MATCH_TYPES
from decon_core.decisions.verdicts import Verdict, fits
from decon_core.errors import InputError, Problem
from decon_core.report.review.found import MatchedText
from decon_core.report.review.show import Paint, clipped, inert, judgement_line, page
from decon_core.wording import counted

KEYS = {"l": "leak", "t": "template", "c": "common source", "u": "unsure"}

HELP = """\
l  leak            the training text contains the item, or gives its answer away
t  template        the texts share only their form: instructions, boilerplate, a list of options
c  common source   both quote a public text; the training text does not contain the question
u  unsure          these texts are not enough to decide; the score decides

n  note            a remark, stored with the verdict
m  match type      exact, equivalent, subset, superset, related, unrelated; also stored
j  judge           show or hide the judgement of a model or a file; decide for yourself first
s  skip            go on without a verdict                  b  back
space, arrows      scroll a long text
q  quit            all verdicts are already saved

If in doubt: would a model trained on this text answer the item better because of it?
Press any key to continue."""

_FOOT = (
    *("l leak", "t template", "c common source", "u unsure", "n note", "s skip", "b back"),
    *("? help", "q quit"),
)
_SPARE_KEYS = ("b back", "s skip", "n note")  # left out where the window is too narrow for all
_ESCAPE = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z]|.)?", re.DOTALL)
_NAMED = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "s", b"\x1b[D": "b"}
_NAMED |= {b"\x1b[5~": "up", b"\x1b[6~": "down"}
_SECONDS_BETWEEN_LOOKS = 0.2  # How often the size of the window is read.


def require_terminal() -> None:
    """Raise InputError without a terminal that shows matched texts and reads keys."""
    is_dumb = os.environ.get("TERM") == "dumb"
    found = "TERM=dumb" if is_dumb else "no terminal"
    expected = "a terminal, to show texts and to read keys"
    remedy = "Use `review --list` to print the queue, or `review set ID VERDICT` to give a verdict"
    InputError.raise_for(
        Problem(name, found, expected, remedy)
        for name, stream in (("standard input", sys.stdin), ("standard output", sys.stdout))
        if is_dumb or not stream.isatty()
    )


def review_on_terminal(queue: Sequence[MatchedText], session: Session) -> None:
    """Show matched texts on the terminal and save verdicts, until the reviewer quits."""
    screen = Screen(sys.stdin.fileno(), sys.stdout.fileno())
    dialog = Review(
        queue=queue,
        screen=screen,
        paint=Paint(has_colour=not os.environ.get("NO_COLOR")),
        session=session,
        texts=lru_cache(maxsize=8)(session.report.matched_text),
        policy=session.report.policy(),
        verdicts=dict(session.verdicts.by_text),
    )
    try:
        with screen.taken():
            dialog.run()
    finally:
        n = dialog.n_written
        say(f"{counted(n, 'verdict')}. {session.next_step}" if n else "no verdict")
        if dialog.notes:
            say(f"not saved: {counted(len(dialog.notes), 'note')} without a verdict")


class Screen:
    """A terminal that draws pages and reads single keys."""

    def __init__(self, keys: int, out: int) -> None:
        self._keys, self._out = keys, out
        self._waiting = b""
        self._size = (0, 0)
        self._before: list[Any] = []  # the terminal's settings

    @contextmanager
    def taken(self) -> Iterator[Screen]:
        """Read keys without Enter until the block ends; always restore the terminal."""
        self._before = termios.tcgetattr(self._keys)
        # A parent that started this process in the background may have left Ctrl-C ignored.
        interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            tty.setcbreak(self._keys)
            yield self
        finally:
            signal.signal(signal.SIGINT, interrupt)
            self._restore()
            self._write("\x1b[0m\n")

    def _restore(self) -> None:
        termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)

    def measure(self) -> tuple[int, int]:
        """Return columns and lines of the window, and remember them for `key`."""
        self._size = self._now()
        return self._size

    def _now(self) -> tuple[int, int]:
        columns, lines = os.get_terminal_size(self._out)
        return max(columns, 20), max(lines, 8)

    def draw(self, lines: Sequence[str]) -> None:
        self._write("\x1b[H\x1b[2J" + "\n".join(lines))

    def ask(self, prompt: str) -> str:
        """Read a line of text with the terminal's line editing."""
        self._restore()
        try:
            self._write(f"\n{prompt}")
            line = os.read(self._keys, 65_536)
        finally:
            tty.setcbreak(self._keys)
        return line.decode("utf-8", "replace").strip()

    def key(self) -> str:
        """Return the next key; "size" after the window changed its size, "q" at end of input."""
        while not self._waiting:
            ready, _, _ = select.select([self._keys], [], [], _SECONDS_BETWEEN_LOOKS)
            if ready:
                self._waiting = os.read(self._keys, 1024)
                if not self._waiting:
                    return "q"
            elif self._now() != self._size:
                return "size"
        # An escape sequence is one key.
        if sequence := _ESCAPE.match(self._waiting):
            self._waiting = self._waiting[sequence.end() :]
            return _NAMED.get(sequence.group(), "")
        char, self._waiting = self._waiting[:1], self._waiting[1:]
        return char.decode("ascii", "replace")

    def _write(self, text: str) -> None:
        content = text.encode("utf-8", "replace")
        while content:
            content = content[os.write(self._out, content) :]


@dataclass
class Review:
    """The position in a queue of matched texts, and what the reviewer entered so far."""

    queue: Sequence[MatchedText]
    screen: Screen
    paint: Paint
    session: Session
    texts: Callable[[str], Mapping[str, Any]]
    policy: Policy
    verdicts: dict[str, Verdict]
    n_written: int = 0
    _at: int = 0
    _top: int = 0
    _message: str = ""
    notes: dict[str, str] = field(default_factory=dict)  # without a verdict yet
    _match_types: dict[str, str] = field(default_factory=dict)  # Keys are those of `notes`.
    _shows_judge: bool = False

    def run(self) -> None:
        while True:
            self._draw()
            key = self.screen.key()
            if key == "q":
                return
            self._press(key)

    def _press(self, key: str) -> None:
        if key in ("s", "b"):
            step = 1 if key == "s" else -1
            self._go(min(max(self._at + step, 0), len(self.queue)))
        elif key == "?":
            self._help()
        elif key in (" ", "down", "up"):
            half = max(1, self.screen.measure()[1] // 2)
            self._top = max(0, self._top + (-half if key == "up" else half))
        elif matched := self._matched:
            if key in KEYS:
                if self._save(matched, KEYS[key], self.notes.get(matched.text_id)):
                    self.notes.pop(matched.text_id, None)
                    self._go(self._at + 1)
            elif key == "n":
                self._note(matched)
            elif key == "m":
                self._match_type(matched)
            elif key == "j":
                self._shows_judge = not self._shows_judge

    def _go(self, at: int) -> None:
        self._at, self._top, self._message = at, 0, ""

    @property
    def _matched(self) -> MatchedText | None:
        return self.queue[self._at] if self._at < len(self.queue) else None

    def _save(self, matched: MatchedText, verdict: str, note: str | None) -> bool:
        """Save a verdict; without a note, keep that of the earlier verdict.

        A match type that contradicts it is not saved: one just entered asks for another verdict.
        """
        before = self.verdicts.get(matched.text_id)
        kept = before.note if before and note is None else note or ""
        entered = self._match_types.get(matched.text_id, "")
        if not fits(entered, verdict):
            self._message = (
                f"the match type {entered!r} contradicts {verdict}: press m to change it"
            )
            return False
        earlier = before.match_type if before else ""
        match_type = entered or (earlier if fits(earlier, verdict) else "")
        self.session.append(matched, verdict, kept, match_type=match_type)
        self._match_types.pop(matched.text_id, None)
        self.verdicts[matched.text_id] = Verdict(
            pair=matched.text_id,
            fingerprint=matched.fingerprint,
            verdict=verdict,
            note=kept,
            match_type=match_type,
        )
        self.n_written += 1
        return True

    def _match_type(self, matched: MatchedText) -> None:
        typed = self.screen.ask(f"match type ({', '.join(MATCH_TYPES)}): ")
        chosen = [
            match_type
            for match_type in MATCH_TYPES
            if typed and match_type.startswith(typed.lower())
        ]
        self._message = "" if len(chosen) == 1 or not typed else f"no match type {typed!r}"
        if len(chosen) == 1:
            self._match_types[matched.text_id] = chosen[0]
            if before := self.verdicts.get(matched.text_id):
                self._save(matched, before.verdict, None)

    def _note(self, matched: MatchedText) -> None:
        note = self.screen.ask("note (empty: none): ")
        self._message = ""
        if not note:
            return
        if before := self.verdicts.get(matched.text_id):
            self._save(matched, before.verdict, note)
        else:
            self.notes[matched.text_id] = note

    def _help(self) -> None:
        key = "size"
        while key == "size":
            self.screen.measure()
            self.screen.draw(HELP.splitlines())
            key = self.screen.key()

    def _draw(self) -> None:
        width, height = self.screen.measure()
        head, body = self._page(width)
        room = max(1, height - len(head) - 3)
        self._top = min(self._top, max(0, len(body) - room))
        shown = body[self._top : self._top + room]
        shown += [""] * (room - len(shown))
        n_below = len(body) - self._top - room
        more = f"… {counted(n_below, 'more line')} (press space)" if n_below > 0 else ""
        foot = self.paint.of(clipped(more, width), "faint")
        has_judge = self._matched and self._matched.text_id in self.session.labels
        keys = _foot([*(["j judge"] if has_judge else []), *_FOOT], width)
        self.screen.draw([*head, *shown, foot, clipped(self._message or keys, width)])

    def _page(self, width: int) -> tuple[list[str], list[str]]:
        n, matched = len(self.queue), self._matched
        if matched is None:
            head = [self.paint.of(f"end of the queue ({n} texts)", "head")]
            return head, ["", f"{self.n_written} verdicts saved. b back, q quit"]
        detectors = filter(None, matched.detectors.split(", "))
        policy = self.policy.for_benchmark(matched.benchmark)
        thresholds = " or ".join(f"{policy.threshold_of(name):g} ({name})" for name in detectors)
        headline = (
            f"{self._at + 1} of {n}  {matched.item}  {matched.called}, score {matched.score:.3f}, "
            f"threshold {thresholds}, in {counted(matched.n_documents, 'document')}"
        )
        lines = textwrap.wrap(inert(headline), width, max_lines=2, placeholder=" …")
        if entered := self._entered(matched):
            lines.append(clipped(entered, width))
        head = [self.paint.of(line, "head") for line in lines]
        texts = page(self.texts(matched.text_id), width=width, paint=self.paint)
        label = self.session.labels.get(matched.text_id)
        judgement = inert(judgement_line(label)) if label and self._shows_judge else ""
        return head, [*textwrap.wrap(judgement, width), "", *texts]

    def _entered(self, matched: MatchedText) -> str:
        """Return the verdict, note and match type of a text as a line; "" if it has none."""
        waiting = {
            "note": self.notes.get(matched.text_id),
            "match type": self._match_types.get(matched.text_id),
        }
        if any(waiting.values()):
            named = {name: text for name, text in waiting.items() if text}
            return (
                f"{' and '.join(named)}, to be saved with your verdict: {'; '.join(named.values())}"
            )
        if verdict := self.verdicts.get(matched.text_id):
            about = "; ".join(filter(None, (verdict.match_type, verdict.note)))
            return f"verdict: {verdict.verdict}{f' ({about})' if about else ''}"
        return ""


def _foot(keys: Sequence[str], width: int) -> str:
    """Return the keys as one line, if need be without those that help also names."""
    for left_out in range(len(_SPARE_KEYS) + 1):
        line = "  ".join(key for key in keys if key not in _SPARE_KEYS[:left_out])
        if len(line) <= width:
            break
    return line
