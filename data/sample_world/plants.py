"""What is planted where: leaked benchmark items, and texts that only look like one.

`expected` says what a correct detector decides under the shipped policy (`aligned`, exhaustive): it
was written down by reasoning and is confirmed by `data/check_sample_world.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sample_world.content import LETTERS, Item

SHELF = (
    "shelf-0000.jsonl.gz",
    "shelf-0001.jsonl.gz",
    "shelf-0002.jsonl.gz",
    "shelf-0003.parquet",
    "shelf-0004.parquet",
)
PARLOR = ("parlor-0000.jsonl.zst", "parlor-0001.jsonl.zst", "parlor-0002.jsonl.zst")
AGENTS = ("agents-0000.jsonl.zst",)
SHARDS = (*SHELF, *PARLOR, *AGENTS)
S0, S1, S2, S3, S4, P0, P1, P2, G0 = SHARDS


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Text that goes into a document: what a user asks and what an assistant answers.

    On a web page the two stand one below the other.
    """

    ask: str
    reply: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One line of the truth file, but for the place."""

    kind: str
    phenomenon: str
    benchmark: str
    item: Item | None
    expected: bool | None
    note: str


@dataclass(frozen=True, kw_only=True)
class Plant:
    """One document with something in it: where in the document, and what is true of it."""

    shard: str
    pieces: tuple[Piece, ...]
    claims: tuple[Claim, ...]
    position: str = "middle"  # or "start", "end"; in an agent's session one of SESSION_PLACES


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A planted item: how it is changed, and whether it must be found all the same."""

    benchmark: str
    slug: str
    shard: str
    expected: bool | None = True
    edit: tuple[str, str] | None = None  # words of the question, and what stands there instead
    disguise: str = ""
    wrapper: str = ""
    answer: str = ""  # "near", "far" or "before": where an answer that stands apart is
    note: str = ""


H, L, A, M, O = "harbor_mc", "ledger_math", "almanac_rc", "strait_mt", "orchard_code"  # noqa: E741 - one letter each in the tables below

LEAKS: dict[str, tuple[Leak, ...]] = {
    "verbatim": (
        Leak(benchmark=H, slug="kelp-law", shard=S0),
        Leak(benchmark=H, slug="kelp-law", shard=P2, note="the same item as in shelf-0000"),
        Leak(
            benchmark=H,
            slug="short-festival",
            shard=S1,
            note="a short question: only a perfect match counts",
        ),
        Leak(benchmark=L, slug="marble-jar", shard=P0),
        Leak(benchmark=A, slug="tessaling-judge", shard=S3),
        Leak(benchmark=M, slug="ferry-goats", shard=P1),
        Leak(benchmark=O, slug="wasp_path", shard=P2),
    ),
    "at_start": (
        Leak(benchmark=H, slug="tidal-court", shard=S1),
        Leak(benchmark=L, slug="quilt-squares", shard=S4),
        Leak(benchmark=A, slug="quern-origin", shard=P2),
        Leak(benchmark=M, slug="kelp-price", shard=S2),
    ),
    "at_end": (
        Leak(benchmark=H, slug="mail-kite", shard=P0),
        Leak(benchmark=L, slug="fish-smoker", shard=S2),
        Leak(benchmark=A, slug="fenn-night", shard=S0),
        Leak(benchmark=M, slug="storks-crane", shard=S3),
        Leak(benchmark=O, slug="rope_bridge", shard=S0),
    ),
    "single_edit": (
        Leak(benchmark=H, slug="ice-harvest", shard=S4, edit=("upland lake", "upland pond")),
        Leak(benchmark=L, slug="theatre-seats", shard=S1, edit=("ten seats", "nine seats")),
        Leak(benchmark=L, slug="rain-barrel", shard=P2, edit=("A gutter leads", "A pipe leads")),
        Leak(benchmark=A, slug="post-inspector", shard=P1, edit=("whole round", "entire round")),
        Leak(benchmark=M, slug="postman-swans", shard=S0, edit=("three times", "four times")),
        Leak(benchmark=O, slug="compost_heap", shard=S2, edit=("half of the", "part of the")),
    ),
    "insertion": (
        Leak(
            benchmark=H,
            slug="orrow-cheese",
            shard=S3,
            edit=("wrapped in bog myrtle", "wrapped tightly in bog myrtle"),
        ),
        Leak(
            benchmark=L,
            slug="egg-market",
            shard=P0,
            edit=("and in the afternoon", "and, as it had stopped raining, in the afternoon"),
        ),
        Leak(
            benchmark=H,
            slug="short-peak",
            shard=S4,
            edit=("the beacon", "the old beacon"),
            note="a short question: `decon` finds only a perfect match",
        ),
        Leak(
            benchmark=M,
            slug="letter-bottle",
            shard=S4,
            edit=("how far the current", "how far the strong western current"),
        ),
        Leak(
            benchmark=A,
            slug="elm-digging",
            shard=S1,
            edit=(
                "in the other, what did",
                "in the other (a small matter to all who never owed a whole year's rent), what did",
            ),
            note="the insertion is longer than a cluster of `decon` can bridge",
        ),
    ),
    "deletion": (
        Leak(benchmark=H, slug="queen-adela", shard=S2, edit=(", since in that time she", "; she")),
        Leak(benchmark=L, slug="jam-jars", shard=S0, edit=("Grandmother Sunniva", "Sunniva")),
        Leak(benchmark=M, slug="pilot-boat", shard=P2, edit=(" towards the oyster beds", "")),
        Leak(
            benchmark=A,
            slug="perrin-three",
            shard=S4,
            edit=(" that the perfumer had marked on her map in nineteen colours", ""),
            note="more than a quarter of the question is gone, too much for `decon`",
        ),
    ),
    "punctuation_and_case": (
        Leak(benchmark=H, slug="bell-code", shard=P1, disguise="upper"),
        Leak(benchmark=L, slug="candle-orders", shard=S3, disguise="bare"),
        Leak(benchmark=A, slug="lode-rent", shard=S1, disguise="dashes"),
        Leak(benchmark=M, slug="bread-boat", shard=S2, disguise="upper"),
        Leak(benchmark=O, slug="hail_roofs", shard=S4, disguise="bare"),
    ),
    "answer_apart": (
        Leak(benchmark=H, slug="puffin-vote", shard=S0, answer="near"),
        Leak(benchmark=L, slug="salt-pan", shard=P1, answer="near"),
        Leak(benchmark=A, slug="ulm-student", shard=S2, answer="near"),
        Leak(benchmark=M, slug="wind-farm", shard=S3, answer="before"),
        Leak(
            benchmark=L,
            slug="chess-club",
            shard=P2,
            answer="far",
            expected=False,
            note="the answer stands behind the window",
        ),
    ),
    "passage_included": (
        Leak(benchmark=A, slug="dorn-steps", shard=S1),
        Leak(benchmark=A, slug="glass-hotel", shard=S4),
        Leak(benchmark=A, slug="cray-statute", shard=P0),
    ),
    "cross_lingual_wrapper": (
        Leak(benchmark=H, slug="vance-treaty", shard=P2, wrapper="ur"),
        Leak(benchmark=L, slug="balloon-festival", shard=S0, wrapper="ja"),
        Leak(benchmark=A, slug="echo-closing", shard=S3, wrapper="ar"),
        Leak(benchmark=M, slug="inspector-eggs", shard=P1, wrapper="es"),
    ),
    "partial": (
        Leak(benchmark=H, slug="drowned-library", shard=P2, disguise="1/2", expected=False),
        Leak(benchmark=L, slug="train-snacks", shard=S3, disguise="1/3", expected=False),
        Leak(benchmark=A, slug="morrow-reason", shard=S0, disguise="1/2", expected=False),
        Leak(benchmark=M, slug="tunnel-vote", shard=P0, disguise="1/2", expected=False),
        Leak(benchmark=O, slug="cellar_keys", shard=P0, disguise="1/3", expected=False),
    ),
    "in_tool_call": (
        Leak(benchmark=L, slug="salt-pan", shard=G0, note="the same item as in parlor-0001"),
        Leak(benchmark=M, slug="bread-boat", shard=G0, note="the same item as in shelf-0002"),
    ),
    "in_tool_result": (
        Leak(benchmark=H, slug="mail-kite", shard=G0, note="the same item as in parlor-0000"),
    ),
    "over_two_turns": (
        Leak(benchmark=A, slug="quern-origin", shard=G0, note="the same item as in parlor-0002"),
    ),
}
# Where in an agent's session an item is: phenomena of the list above, and of nothing else.
SESSION_PLACES = ("in_tool_call", "in_tool_result", "over_two_turns")

TWO_IN_ONE_DOCUMENT = (
    (S2, (H, "clock-tower"), (L, "hay-bales")),
    (P1, (A, "sedge-request"), (M, "museum-knots")),
    (S4, (H, "tern-ferry"), (M, "two-mayors")),
)

# Items of which only the passage, or only the answer, stands in a document.
PASSAGE_WITHOUT_QUESTION = (
    (S2, "varn-material"),
    (S3, "saltbread-cause"),
    (P1, "orchestra-method"),
    (S0, "truce-signal"),
)
ANSWER_ALONE = (
    (S1, H, "glass-window"),
    (S4, L, "tank-drain"),
    (P0, L, "kite-tails"),
    (P2, M, "soup-harbour"),
    (S3, A, "varn-silence"),
    (S2, O, "hedge_maze"),
)

_FRAMES = (
    ("This one has been on my mind since the weekend:", "Does anybody get something else?"),
    ("From the pile on my desk:", "More of these another time."),
    ("Copied out for a friend:", "I keep the rest in a shoe box."),
    ("Here is what we were given to chew on:", "So much for that."),
)
_CHAT_FRAMES = (
    "I need some help with this.",
    "My study group could not agree on this one.",
    "please answer:",
    "Next one!",
)
_WRAPPERS = {
    "ur": ("نیچے دیا گیا سوال غور سے پڑھیں اور صحیح جواب چنیں۔", "جواب مختصر لکھیں۔ شکریہ"),
    "ja": (
        "次の問題を英語のまま読んで、途中の計算も書いて答えてください。",
        "答えは最後に書くこと。",
    ),
    "ar": ("اقرأ السؤال التالي ثم أجب عنه في جملة واحدة.", "انتهى السؤال وجوابه."),
    "es": ("Traduce la siguiente frase al alemán, por favor:", "Gracias, y no cambies nada."),
}


@dataclass(frozen=True)
class Rewording:
    """A text about what an item is about; `kind` tells whether it is the same question."""

    kind: str
    item: Item
    text: str

    @property
    def is_same(self) -> bool:
        return self.kind == "reworded"


def rewordings(items: dict[str, list[Item]], folder: Path) -> list[Rewording]:
    """The texts of rewordings.txt."""
    by_slug = {(item.benchmark, item.slug): item for some in items.values() for item in some}
    found = []
    for entry in (folder / "rewordings.txt").read_text(encoding="utf-8").split("\n@ ")[1:]:
        head, _, text = entry.partition("\n")
        kind, *name = head.split()
        found.append(Rewording(kind, by_slug[tuple(name)], text.strip()))
    return found


def all_plants(
    items: dict[str, list[Item]], folder: Path, filler: Callable[[Random], list[str]], *, seed: str
) -> list[Plant]:
    """Everything that is planted. `filler` gives paragraphs that stand between parts of a plant."""
    by_slug = {(name, item.slug): item for name in items for item in items[name]}
    maker = _Maker(by_slug, filler, Random(f"{seed} plants"))
    plants = [maker.leak(phenomenon, leak) for phenomenon in LEAKS for leak in LEAKS[phenomenon]]
    plants += [maker.two_in_one(*entry) for entry in TWO_IN_ONE_DOCUMENT]
    plants += [maker.passage(*entry) for entry in PASSAGE_WITHOUT_QUESTION]
    plants += [maker.answer_alone(*entry) for entry in ANSWER_ALONE]
    return plants + maker.written(folder / "negatives.txt")


class _Maker:
    """Turns the lists above into pieces of text."""

    def __init__(
        self,
        items: dict[tuple[str, str], Item],
        filler: Callable[[Random], list[str]],
        rng: Random,
    ) -> None:
        self._items = items
        self._filler = filler
        self._rng = rng

    def leak(self, phenomenon: str, leak: Leak) -> Plant:
        item = self._items[leak.benchmark, leak.slug]
        piece = self._piece(item, leak)
        if phenomenon == "passage_included":
            piece = Piece(ask=f"{item.title}\n\n{item.passage}\n\n{piece.ask}", reply=piece.reply)
        pieces: tuple[Piece, ...] = (piece,)
        if leak.wrapper:
            before, after = _WRAPPERS[leak.wrapper]
            pieces = (
                Piece(
                    ask=f"{before}\n\n{piece.ask}" + f"\n\n{after}" * (leak.shard in PARLOR),
                    reply=piece.reply + f"\n\n{after}" * (leak.shard in SHELF),
                ),
            )
        elif leak.answer:
            pieces = self._apart(piece, leak)
        elif phenomenon not in ("at_start", "at_end", *SESSION_PLACES):
            pieces = (self._framed(piece, leak.shard),)
        note = leak.note or (f"{leak.edit[0]!r} became {leak.edit[1]!r}" if leak.edit else "")
        claim = Claim(
            kind="plant",
            phenomenon=phenomenon,
            benchmark=leak.benchmark,
            item=item,
            expected=leak.expected,
            note=note,
        )
        return Plant(
            shard=leak.shard, pieces=pieces, claims=(claim,), position=_position(phenomenon)
        )

    def two_in_one(self, shard: str, *keys: tuple[str, str]) -> Plant:
        items = [self._items[key] for key in keys]
        return Plant(
            shard=shard,
            pieces=tuple(self._framed(ask_and_reply(item), shard) for item in items),
            claims=tuple(
                Claim(
                    kind="plant",
                    phenomenon="two_in_one_document",
                    benchmark=item.benchmark,
                    item=item,
                    expected=True,
                    note="",
                )
                for item in items
            ),
        )

    def passage(self, shard: str, slug: str) -> Plant:
        """A passage alone; every question that is asked about it must stay unflagged."""
        told = self._items["almanac_rc", slug]
        asked = [item for item in self._items.values() if item.title and item.title == told.title]
        is_chat = shard in PARLOR
        piece = Piece(
            ask=f"Can you shorten this?\n\n{told.passage}" if is_chat else f"# {told.title}",
            reply="I would drop the second sentence and keep the rest."
            if is_chat
            else told.passage or "",
        )
        return Plant(
            shard=shard,
            pieces=(piece,),
            claims=tuple(
                _negative("passage_without_question", "almanac_rc", item) for item in asked
            ),
        )

    def answer_alone(self, shard: str, benchmark: str, slug: str) -> Plant:
        item = self._items[benchmark, slug]
        shown = _choices(item) if item.choices else item.answer
        return Plant(
            shard=shard,
            pieces=(Piece(ask="I only kept the answer:", reply=shown),),
            claims=(_negative("answer_alone", benchmark, item),),
        )

    def written(self, path: Path) -> list[Plant]:
        """The hand-written hard negatives."""
        plants = []
        for part in path.read_text(encoding="utf-8").split("\n@ ")[1:]:
            head, _, body = part.partition("\n")
            phenomenon, benchmark, slug, shard = head.split()
            ask, _, reply = body.strip().partition("\n---\n")
            item = None if slug == "-" else self._items[benchmark, slug]
            plants.append(
                Plant(
                    shard=shard,
                    pieces=(Piece(ask=ask, reply=reply),),
                    claims=(_negative(phenomenon, benchmark, item),),
                    position="in_tool_call" if shard in AGENTS else "middle",
                )
            )
        return plants

    def _piece(self, item: Item, leak: Leak) -> Piece:
        piece = ask_and_reply(item)
        if leak.answer and item.choices:
            piece = Piece(ask=item.question, reply=piece.reply)
        if leak.edit:
            old, new = leak.edit
            if piece.ask.count(old) != 1:
                raise ValueError(f"{leak.slug}: {old!r} stands {piece.ask.count(old)} times")
            return Piece(ask=piece.ask.replace(old, new), reply=piece.reply)
        if leak.disguise in ("1/2", "1/3"):
            words = item.question.split()
            kept = len(words) // int(leak.disguise[-1])
            return Piece(ask=" ".join(words[:kept]) + " ...", reply=piece.reply)
        if leak.disguise:
            return Piece(
                ask=disguised(piece.ask, leak.disguise), reply=disguised(piece.reply, leak.disguise)
            )
        return piece

    def _framed(self, piece: Piece, shard: str) -> Piece:
        if shard in PARLOR:
            return Piece(ask=f"{self._rng.choice(_CHAT_FRAMES)}\n\n{piece.ask}", reply=piece.reply)
        before, after = self._rng.choice(_FRAMES)
        return Piece(ask=f"{before}\n\n{piece.ask}", reply=f"{piece.reply}\n\n{after}")

    def _apart(self, piece: Piece, leak: Leak) -> tuple[Piece, ...]:
        """Question and answer with something between them, or the answer first."""
        if leak.answer == "before":
            return (Piece(ask=piece.reply, reply=piece.ask),)
        if leak.answer == "near":
            between = _first_sentences(self._filler(self._rng), n_words=40)
        else:
            between = "\n\n".join(self._filler(self._rng) + self._filler(self._rng))
        return (Piece(ask=piece.ask, reply=f"{between}\n\n{piece.reply}"),)


def _position(phenomenon: str) -> str:
    if phenomenon in SESSION_PLACES:
        return phenomenon
    return phenomenon.removeprefix("at_") if phenomenon.startswith("at_") else "middle"


def _first_sentences(paragraphs: list[str], *, n_words: int) -> str:
    """As many whole sentences as `n_words` words allow, but at least one."""
    sentences = re.split(r"(?<=[.!?]) ", " ".join(paragraphs))
    taken = sentences[:1]
    for sentence in sentences[1:]:
        if len(" ".join([*taken, sentence]).split()) > n_words:
            break
        taken.append(sentence)
    return " ".join(taken)


def _negative(phenomenon: str, benchmark: str, item: Item | None) -> Claim:
    return Claim(
        kind="hard_negative",
        phenomenon=phenomenon,
        benchmark=benchmark,
        item=item,
        expected=False,
        note="",
    )


def ask_and_reply(item: Item) -> Piece:
    """An item as people pass it on: question (with its choices), answer."""
    match item.benchmark:
        case "harbor_mc":
            return Piece(
                ask=f"{item.question}\n{_choices(item)}",
                reply=f"Answer: {item.letter}) {item.answer}",
            )
        case "almanac_rc":
            return Piece(ask=f"Question: {item.question}", reply=f"Answer: {item.answer}")
        case "orchard_code":
            return Piece(ask=item.question, reply=f"```python\n{item.answer}```")
        case _:
            return Piece(ask=item.question, reply=item.answer)


def _choices(item: Item) -> str:
    return "\n".join(
        f"{letter}) {choice}" for letter, choice in zip(LETTERS, item.choices, strict=True)
    )


def disguised(text: str, how: str) -> str:
    """Other case and other punctuation; the words stay as they are."""
    if how == "upper":
        # The upper case of a German sharp s is two letters, and there is no way back.
        return "".join(char if char == "ß" else char.upper() for char in text)
    if how == "bare":
        return " ".join("".join(" " if c in ",.;:?!'()`" else c for c in text).lower().split())
    return text.replace(", ", " — ").replace("?", " ...?!").replace("'", "’")
