"""A scan writes for each of the four detectors what the oracle says of every document and record.

The oracle is `reference_detectors`. Written here a second time, as plainly as possible: which
texts of a record are searched, which comparisons are opened, which matches the score floor keeps.
"""

import math
import random
import re
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as FileTokenizer
from tokenizers import decoders, models, pre_tokenizers, trainers

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import Version, load_records, save_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.corpus.shards import read_blocks
from decon_core.detectors.ratcliff import _BlockMatcher
from decon_core.index.parts import build_part
from decon_core.index.term_weights import freeze
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS
from decon_core.storage.store import Store
from decon_core.text.canonical import WHITE_SPACE
from decon_core.text.tokenizers import Tokenizer, load_tokenizer
from tests.oracle.decon import (
    Frequencies,
    Record,
    count,
    entry_of,
    grams,
    index_records,
    tokenize,
    unique,
    why_dropped,
)
from tests.oracle.other_detectors import (
    Alignment,
    continuations,
    forms,
    longest_run,
    ngram_any,
    occurrences,
    ratcliff,
    shared_grams,
    whole_prompt,
)
from tests.oracle.text import KANA_AND_HAN, THAI_TO_KHMER, normalized
from tests.uncompiled import fewer

SLOW = settings(
    derandomize=True,
    max_examples=fewer(9),
)
LESS = settings(SLOW, max_examples=SLOW.max_examples // 3)

FOUR = ("ratcliff", "longest_match", "exact", "ngram_any")
COMPARED = [
    *("row", "record", "detector", "searched_text", "base_score", "question_overlap"),
    *("answer_overlap", "n_matched", "n_grams", "question_tokens", "total_tokens"),
    *("question_start", "question_stop", "answer_start", "answer_stop"),
    *("question_char_start", "question_char_stop", "answer_char_start", "answer_char_stop"),
]
Row = dict[str, Any]
Span = tuple[int, int]

# Worlds -------------------------------------------------------------------------------------------

WORDS = [
    *("the", "a", "train", "leaves", "station", "hours", "many", "Which", "following", "is", "of"),
    *("x²", "3.14", "nine", "Ada", "Ångström", "naïve", "e\u0301tude", "ﬁne", "ΟΔΟΣ", "İstanbul"),
    *("кот", "поезд", "東京", "数学の問題", "सूत्र", "ราคา", "😀", "👩\u200d👩\u200d👧", "foo_bar"),
    *("<|endoftext|>", "don’t", "\\frac{1}{2}", "1,200", ".........", "________", "statements"),
]
ODD = ("a\x00b", "\x00", "a\x1cb", "\ufeff", "c\u00add", "\ue7a3")
GAPS = (" ",) * 12 + ("", "\n", "\r\n", "\t", "\u00a0", "  ", ", ", ". ", "? ", "。", "\u2028", "-")


@dataclass(frozen=True)
class World:
    """Benchmarks, shards and how they are compared; all that a scan depends on."""

    benchmarks: Mapping[str, Sequence[Row]]
    shards: Mapping[str, Sequence[bytes]]
    frozen: Sequence[str]
    policy: Policy


def text_of(rng: random.Random, most: int) -> str:
    known = rng.sample(WORDS, min(len(WORDS), rng.choice([6, 20, 60])))
    known += rng.choice([[], [rng.choice(ODD)]])
    return "".join(rng.choice(known) + rng.choice(GAPS) for _ in range(rng.randrange(1, most)))


def cut(rng: random.Random, text: str) -> str:
    start, stop = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[start:stop]


def edited(rng: random.Random, text: str) -> str:
    """Changed in a few places, in one of many ways."""
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        other = rng.choice(["", "!", " ", "\n", "x", "字", text[at : at + 9]])
        text = text[:at] + other + text[at + rng.randrange(3) :]
    return rng.choice([text] * 6 + [text.upper(), text.replace(" ", "\n"), text[::-1]])


def records_of(rng: random.Random, shared: Sequence[str]) -> list[Row]:
    """Questions and answers, some in common, some as choices of one item, some too short."""
    made: list[Row] = []
    for number in range(rng.randrange(7)):
        pieces = [rng.choice([text_of(rng, 25), rng.choice(shared)]) for _ in range(2)]
        question = rng.choice([pieces[0], "".join(pieces), cut(rng, pieces[0]), "", " \n"])
        answers = [
            rng.choice([None, "", "A", text_of(rng, 12), rng.choice(shared), question])
            for _ in range(rng.choice([1, 1, 3]))
        ]
        correct = rng.choice([None, *range(len(answers))])
        passage = rng.choice([None, "", text_of(rng, 15), rng.choice(shared)])
        for choice, answer in enumerate(answers):
            row = {"split": "test", "instance_index": number, "question": question}
            row |= {"answer": answer, "fingerprint": fingerprint_of(passage, question, answer)}
            row |= {"passage": passage, "choice_index": choice if len(answers) > 1 else None}
            made.append(row | {"is_correct": None if correct is None else choice == correct})
    return made


def document_of(rng: random.Random, texts: Sequence[str]) -> str:
    parts: list[str] = []
    for _ in range(rng.randrange(5)):
        kinds = [text_of(rng, 15), rng.choice(texts), cut(rng, rng.choice(texts))]
        parts.append(edited(rng, rng.choice(kinds)))
        if rng.random() < 0.3:
            parts.append(parts[-1])
    return rng.choice(GAPS).join(parts)


def line_of(rng: random.Random, text: str) -> bytes:
    """A row of a shard; some of the kinds that the careful reader must look at."""
    plain = orjson.dumps({"text": text})
    odd = b'{"text": null, ' + plain[1:]  # a name twice: the last one counts
    return rng.choice([plain, plain, odd])


def policy_of(rng: random.Random, tokenizer: str) -> Policy:
    size = rng.choice([2, 3, 5, 8, 8])
    return Policy(
        detectors=FOUR,
        tokenizer_str=tokenizer,
        normalize=rng.choice(["none", "none", "whitespace", "decon"]),
        shared_ngram_size=size,
        ratcliff_min_block=rng.randint(1, min(size, 5)),
        ratcliff_lowest_recorded=rng.choice([0.01, 0.1, 0.3]),
        ratcliff_prompt=rng.choice(["question", "whole"]),
        longest_match_lowest_recorded=rng.choice([0.01, 0.1, 0.4]),
        ngram_any_lowest_recorded=rng.choice([2, 3, 8]),
        eval_min_token_length=rng.choice([1, 20]),
        eval_min_unique_word_count=1,
        strip_markup=False,  # of which tests/core/text/test_markup.py has the oracle
    )


def world_of(seed: int, tokenizer: str) -> World:
    rng = random.Random(seed)
    shared = [text_of(rng, 20) for _ in range(3)]
    benchmarks = {name: records_of(rng, shared) for name in ("one", "two", "three")}
    texts = [*shared]
    for row in (row for rows in benchmarks.values() for row in rows):
        question, answer = row["question"], row["answer"] or ""
        texts += [question, answer, f"{question} {answer}", question + answer]
    texts += [prompt_of(row, rows) for rows in benchmarks.values() for row in rows]
    shards = {
        f"{name}.jsonl": [line_of(rng, document_of(rng, texts)) for _ in range(rng.randrange(1, 8))]
        for name in "ab"
    }
    frozen = rng.choice([["one", "two", "three"], ["two"], []])
    return World(benchmarks, shards, frozen, policy_of(rng, tokenizer))


def prompt_of(record: Row, records: Sequence[Row]) -> str:
    """The whole prompt that a record belongs to."""
    if not record["question"].strip():
        return ""
    of_item = [one for one in records if one["instance_index"] == record["instance_index"]]
    is_choice = len(of_item) > 1 and any(one["is_correct"] is False for one in of_item)
    choices = [one["answer"] for one in of_item] if is_choice else []
    return whole_prompt(record["passage"], record["question"], choices)


def worlds(tokenizer: str) -> st.SearchStrategy[World]:
    return st.integers(0, 1 << 60).map(lambda seed: world_of(seed, tokenizer))


@lru_cache(maxsize=1)
def tokenizer_files() -> tuple[str, str]:
    """One over bytes, which keeps all that it is given, and one over characters, which does not."""
    folder = Path(tempfile.mkdtemp())
    pair: tuple[Any, ...] = (
        (pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel(), None),
        (pre_tokenizers.Metaspace(), decoders.Metaspace(), "?"),
    )
    for number, (before, after, unknown) in enumerate(pair):
        tokenizer = FileTokenizer(models.BPE(unk_token=unknown))
        tokenizer.pre_tokenizer, tokenizer.decoder = before, after
        alphabet = [] if unknown else pre_tokenizers.ByteLevel.alphabet()
        special = [unknown] if unknown else []
        trainer = trainers.BpeTrainer(
            vocab_size=500, initial_alphabet=alphabet, special_tokens=special, show_progress=False
        )
        tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
        tokenizer.save(str(folder / f"{number}.json"))
    return str(folder / "0.json"), str(folder / "1.json")


# The scan -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A world on disk."""

    world: World
    store: Store
    versions: Mapping[str, Version]
    pack: Pack

    def scan(self, names: Sequence[str], *, workers: int = 1) -> None:
        versions = [self.versions[name] for name in names]
        scan_packs(self.store, [self.pack], versions, self.world.policy, workers=workers)

    def scan_result(self, shard: int, name: str) -> pa.Table:
        results = ScanResults(self.store, scan_fingerprint(self.store, self.world.policy))
        shards = [self.pack.shards[shard].fingerprint]
        return results.matches(shards, self.versions[name].fingerprint)

    def scan_results(self) -> dict[tuple[int, str], pa.Table]:
        return {
            (shard, name): self.scan_result(shard, name)
            for shard in range(len(self.pack.shards))
            for name in self.versions
        }

    def texts(self, shard: int) -> list[str]:
        """The documents of a shard."""
        batches = [block.read() for block in read_blocks(self.pack.shards[shard], self.pack.source)]
        return [batch.document(at).text for batch in batches for at in range(len(batch.rows))]


def staged(world: World, folder: Path) -> Scene:
    source = Source(name="web", path="*.jsonl", text="text")
    store = Store(folder / "store")
    versions = {}
    for name, rows in world.benchmarks.items():
        table = pa.Table.from_pylist([{"benchmark": name, **row} for row in rows], schema=RECORDS)
        versions[name] = save_records(store, name, table)
    snapshot = freeze(store, [versions[name] for name in world.frozen], world.policy)
    for version in versions.values():
        build_part(store, version, snapshot, world.policy)
    for name, lines in world.shards.items():
        (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
    shards = find_shards(source, folder=folder, known={})
    return Scene(world, store, versions, Pack(name="web-0", source=source, shards=tuple(shards)))


# The oracle's loop --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A text as it is compared: its tokens, and where its characters come from."""

    text: str
    tokens: list[int]
    spans: list[Span]  # characters that each token covers, whole ones
    starts: list[int]  # bytes that each token has for itself alone
    stops: list[int]
    origins: list[Span]  # of each character

    def characters(self, start: int, stop: int) -> Span:
        """Behind a range of characters of the form."""
        return self.origins[start][0], self.origins[stop - 1][1]

    def whole(self, text: "Form") -> tuple[Span, Span] | None:
        """Where a text first stands whole: the tokens that have a part in it, and characters."""
        places = occurrences(self.text, text.text)
        if not places:
            return None
        start, stop = places[0], places[0] + len(text.text)
        touching = [at for at, span in enumerate(self.spans) if span[1] > start and span[0] < stop]
        return (touching[0], touching[-1] + 1), self.characters(start, stop)

    def tokens_from(self, start: int, stop: int) -> tuple[Span, Span]:
        """A range of tokens, and the characters behind it."""
        return (start, stop), self.characters(self.spans[start][0], self.spans[stop - 1][1])

    def opens(self, at: int, size: int) -> bool:
        """Whether the n-gram that begins here lets a comparison begin."""
        content = self.text.encode()[self.starts[at] : self.stops[at + size - 1]]
        return any(begins_there(content, place) for place in range(len(content) - 11))


def begins_there(content: bytes, at: int) -> bool:
    """A character beyond ASCII, or a word behind a sign or space."""
    if content[at] >= 0xC0:
        return True
    return at > 0 and is_of_word(content[at]) and not is_of_word(content[at - 1])


def is_of_word(byte: int) -> bool:
    return byte >= 0x80 or chr(byte).isalnum()


def formed(text: str, policy: Policy) -> tuple[str, list[Span]]:
    """The form of a text, and the characters of the text behind each of its own."""
    own = [(at, at + 1) for at in range(len(text))]
    if policy.normalize == "none":
        return text, own
    between = WHITE_SPACE
    lowered = text
    if policy.normalize == "decon":
        between += policy.punctuation_chars
        lowered = text.lower()
        own = [span for span, char in zip(own, text, strict=True) for _ in char.lower()]
    is_normalized = policy.normalize == "decon" and policy.normalize_unicode
    pattern = f"[^{re.escape(between)}]+"
    if is_normalized:
        unspaced = "".join(f"{chr(a)}-{chr(b)}" for a, b in (*THAI_TO_KHMER, *KANA_AND_HAN))
        pattern = f"[{unspaced}][\u3099\u309a]*|[^{re.escape(between)}{unspaced}]+"
    form, origins = "", []
    for word in re.finditer(pattern, lowered):
        inside = own[word.start() : word.end()]
        made = word[0]
        if is_normalized:
            made = " ".join(normalized(word[0], policy.punctuation_chars))
        if not made:
            continue
        if made != word[0]:
            inside = [(inside[0][0], inside[-1][1])] * len(made)
        if form:
            origins.append((origins[-1][1], inside[0][0]))
        form += " " * bool(form) + made
        origins += inside
    if form and policy.normalize == "decon":
        form, origins = " " + form, [origins[0], *origins]
    return form, origins


def form_of(text: str, policy: Policy, tokenizer: Tokenizer) -> Form:
    return as_form(*formed(text, policy), policy, tokenizer)


def tokens_of(form: str, policy: Policy, tokenizer: Tokenizer) -> list[int]:
    if policy.tokenizer_str == "words":
        return tokenizer.encode([" ".join(re.findall(r"\S+", form))])[0]
    return tokenizer.encode([form])[0] if form else []


def as_form(form: str, origins: list[Span], policy: Policy, tokenizer: Tokenizer) -> Form:
    edges = [0]
    for char in form:
        edges.append(edges[-1] + len(char.encode()))
    if policy.tokenizer_str == "words":
        spans = [word.span() for word in re.finditer(r"\S+", form)]
    else:
        pieces = tokenizer.pieces(form)
        first = [bisect_right(edges, start) - 1 for start in pieces.starts.tolist()]
        behind = [bisect_left(edges, stop) for stop in pieces.stops.tolist()]
        spans = [*zip(first, behind, strict=True)]
    starts, stops = [], []
    if policy.tokenizer_str == "cl100k":
        starts, stops = pieces.starts.tolist(), pieces.stops.tolist()
    else:  # what a token shares with a neighbour is not its own
        for at, (start, stop) in enumerate(spans):
            behind = spans[at - 1][1] if at else 0
            ahead = spans[at + 1][0] if at + 1 < len(spans) else len(form)
            starts.append(edges[max(start, behind)])
            stops.append(edges[min(stop, ahead)])
    return Form(form, tokens_of(form, policy, tokenizer), spans, starts, stops, origins)


@dataclass(frozen=True)
class Longest:
    """What a document shares with a text, and where: nothing, a run, or all of it."""

    length: int
    n_tokens: int  # of the form that was compared
    where: tuple[Span, Span] | None


@dataclass(frozen=True)
class Oracle:
    """The rows of a document and a benchmark."""

    policy: Policy
    tokenizer: Tokenizer
    frequencies: Frequencies  # that the benchmark is weighed by

    def rows(self, documents: Sequence[str], records: Sequence[Row]) -> Iterator[Row]:
        forms = [form_of(text, self.policy, self.tokenizer) for text in documents]
        for detector in FOUR:
            for row, form in enumerate(forms):
                for record, texts in enumerate(records):
                    says = getattr(self, detector)
                    is_whole = detector == "ratcliff" and self.policy.ratcliff_prompt == "whole"
                    question = prompt_of(texts, records) if is_whole else texts["question"]
                    for found in says(form, documents[row], question, texts):
                        blank = dict.fromkeys(COMPARED)
                        if detector == "ratcliff":
                            blank["searched_text"] = "whole prompt" if is_whole else "question"
                        yield blank | {"row": row, "record": record, "detector": detector} | found

    def is_opened(self, form: Form, text: Form) -> bool:
        size = self.policy.shared_ngram_size
        shared = {*shared_grams(form.tokens, text.tokens, size)}
        return any(
            tuple(text.tokens[at : at + size]) in shared and text.opens(at, size)
            for at in range(len(text.tokens) - size + 1)
        )

    def can_be_opened(self, text: Form) -> bool:
        size = self.policy.shared_ngram_size
        return any(text.opens(at, size) for at in range(len(text.tokens) - size + 1))

    def forms(self, text: Form) -> list[Form]:
        def encode(form: str) -> list[int]:
            return tokens_of(form, self.policy, self.tokenizer)

        origins = {False: text.origins, True: [(0, 0), *text.origins]}
        return [
            as_form(form, origins[form != text.text], self.policy, self.tokenizer)
            for form, _ in forms(text.text, encode)
        ]

    def ratcliff(self, form: Form, document: str, question: str, record: Row) -> Iterator[Row]:
        text = form_of(question, self.policy, self.tokenizer)
        if not self.can_be_opened(text):
            return
        if (whole := form.whole(text)) is not None:
            n = len(text.tokens)
            yield {
                "base_score": 1.0,
                "question_overlap": 1.0,
                "n_matched": n,
                **lengths(n, n),
                **place("question", *whole),
            }
            return
        aligned = [
            (found, one)
            for one in self.forms(text)
            if self.is_opened(form, one) and (found := self.aligned(form, one)) and found.blocks
        ]
        best = max(aligned, key=lambda pair: pair[0].ratio, default=None)
        if best is None or best[0].ratio < self.policy.ratcliff_lowest_recorded:
            return
        found, one = best
        last = found.blocks[-1]
        yield {
            "base_score": found.ratio,
            "question_overlap": found.ratio,
            "n_matched": sum(block.length for block in found.blocks),
            **lengths(len(one.tokens), len(one.tokens)),
            **place(
                "question", *form.tokens_from(found.blocks[0].document, last.document + last.length)
            ),
        }

    def aligned(self, form: Form, text: Form) -> Alignment | None:
        return ratcliff(
            form.tokens,
            text.tokens,
            ngram_size=self.policy.shared_ngram_size,
            least_block=self.policy.ratcliff_min_block,
        )

    def longest(self, form: Form, text: Form) -> Longest:
        """What a document shares with a text: all of it, or the longest run of a form of it."""
        if (whole := form.whole(text)) is not None:
            return Longest(len(text.tokens), len(text.tokens), whole)
        size = self.policy.shared_ngram_size
        best = Longest(0, len(text.tokens), None)
        for one in self.forms(text):
            run = longest_run(form.tokens, one.tokens, size)
            if run and self.is_opened(form, one):
                n = len(one.tokens)
                if run.length / n > best.length / best.n_tokens:
                    where = form.tokens_from(run.document, run.document + run.length)
                    best = Longest(run.length, n, where)
        return best

    def longest_match(self, form: Form, document: str, question: str, record: Row) -> Iterator[Row]:
        fields, runs, scores = {}, {}, {}
        for name in ("question", "answer"):
            is_wrong = name == "answer" and record["is_correct"] is False
            looked_for = "" if is_wrong else record[name] or ""
            fields[name] = text = form_of(looked_for, self.policy, self.tokenizer)
            if self.can_be_opened(text):
                runs[name] = self.longest(form, text)
                scores[name] = runs[name].length / runs[name].n_tokens
        best = max(scores, key=lambda name: scores[name], default="question")
        run = runs.get(best)
        if not run or not run.where or scores[best] < self.policy.longest_match_lowest_recorded:
            return
        n_tokens = {
            name: runs[name].n_tokens if name in runs else len(text.tokens)
            for name, text in fields.items()
        }
        yield {
            "base_score": scores[best],
            "question_overlap": scores.get("question"),
            "answer_overlap": scores.get("answer"),
            "n_matched": run.length,
            **lengths(n_tokens["question"], sum(n_tokens.values())),
            **{
                key: value
                for name, found in runs.items()
                if found.where
                for key, value in place(name, *found.where).items()
            },
        }

    def exact(self, form: Form, document: str, question: str, record: Row) -> Iterator[Row]:
        is_wrong = record["is_correct"] is False
        texts = continuations(question, None if is_wrong else record["answer"])
        looked_for = {
            "question": texts.question,
            "question and answer": texts.answered,
            "continuation": texts.continuation,
        }
        for name, original in looked_for.items():
            text, _ = formed(original or "", self.policy)
            content = text.encode()
            if not any(begins_there(content, at) for at in range(len(content) - 11)):
                continue
            places = occurrences(form.text, text)
            if not places:
                continue
            first = form.characters(places[0], places[0] + len(text))
            yield {
                "searched_text": name,
                "base_score": self.weight(original or ""),
                "question_overlap": 1.0,
                "n_matched": len(places),
                **lengths(0, 0),
                "question_char_start": first[0],
                "question_char_stop": first[1],
            }

    def weight(self, text: str) -> float:
        """The mean idf of a text's n-grams, in shares of the most that it can be."""
        n = self.frequencies.n_records
        found = unique(grams(tokenize(text, self.policy, self.tokenizer), self.policy.ngram_size))
        if n <= 1 or not found:
            return 0.0
        total = 0.0
        for gram in found:
            total += math.log(n / max(self.frequencies.question.get(gram, 0), 1)) / math.log(n)
        return total / len(found)

    def ngram_any(self, form: Form, document: str, question: str, record: Row) -> Iterator[Row]:
        tokens = tokenize(document, self.policy, self.tokenizer)
        known = tokenize(question, self.policy, self.tokenizer)
        length = ngram_any(tokens, known, size=self.policy.ngram_any_lowest_recorded)
        if not length:
            return
        run = longest_run(tokens, known, length)
        assert run
        yield {
            "base_score": length / len(known),
            "question_overlap": length / len(known),
            "n_matched": length,
            **lengths(len(known), len(known)),
            "question_start": run.document,
            "question_stop": run.document + length,
        }


def lengths(question: int, total: int) -> Row:
    return {"n_grams": question, "question_tokens": question, "total_tokens": total}


def place(name: str, tokens: Span, characters: Span) -> Row:
    return {
        f"{name}_start": tokens[0],
        f"{name}_stop": tokens[1],
        f"{name}_char_start": characters[0],
        f"{name}_char_stop": characters[1],
    }


def oracle_of(scene: Scene, name: str, tokenizer: Tokenizer) -> Oracle:
    """Weighed by what the snapshot counts, and by the benchmark itself: also by short records."""
    policy = scene.world.policy
    records = {
        each: [
            Record(
                benchmark=each,
                split="test",
                instance=row["instance_index"],
                question=row["question"],
                answer=row["answer"],
                passage=row["passage"],
                is_correct=row["is_correct"],
                fingerprint=row["fingerprint"],
            )
            for row in rows
        ]
        for each, rows in scene.world.benchmarks.items()
    }
    entries = [
        entry
        for each in sorted({*scene.world.frozen, name})
        for entry in index_records(records[each], policy, tokenizer)
    ]
    short = {
        record.fingerprint: entry_of(record, policy, tokenizer)
        for record in records[name]
        if (why_dropped(record, policy, tokenizer, set()) or "").startswith("too few")
    }
    counts = count([*entries, *short.values()], policy)
    own = {
        gram
        for record in records[name]
        for gram in grams(tokenize(record.question, policy, tokenizer), policy.ngram_size)
    }
    if own and all(counts.question.get(gram, 0) >= counts.n_records for gram in own):
        # As if of one record in two: all weigh the same.
        each = {gram: n // counts.n_records for gram, n in counts.question.items()}
        counts = replace(counts, n_records=2, question=each)
    return Oracle(policy, tokenizer, counts)


def check(world: World) -> None:
    """Scan results are what the oracle says, in the order of detectors, documents and records."""
    tokenizer = load_tokenizer(world.policy.tokenizer_str)
    with tempfile.TemporaryDirectory() as name:
        scene = staged(world, Path(name))
        scene.scan([*scene.versions])
        results = scene.scan_results()
        for (shard, benchmark), result in results.items():
            texts = scene.texts(shard)
            records = load_records(scene.store, scene.versions[benchmark]).to_pylist()
            oracle = oracle_of(scene, benchmark, tokenizer)
            expected = shared([*oracle.rows(texts, records)], records)
            found = result.to_pylist()
            for row in found:
                check_characters(row, texts[row["row"]], world.policy)
            assert [seen(row) for row in found] == [seen(row) for row in expected]


def shared(rows: Sequence[Row], records: Sequence[Row]) -> list[Row]:
    """Consecutive records of an item that are found alike share a row: of the right one, or first.

    `longest_match` also finds choices alike of which no answer is found, whatever the answers.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        is_of_question = row["detector"] == "longest_match" and row["answer_start"] is None
        left_out = ["record", *(["answer_overlap", "total_tokens"] if is_of_question else [])]
        alike = {name: value for name, value in row.items() if name not in left_out}
        item = [records[row["record"]][name] for name in ("split", "instance_index")]
        groups.setdefault(repr([alike, item]), []).append(row)
    kept = []
    for group in groups.values():
        numbers = sorted(row["record"] for row in group)
        if numbers != [*range(numbers[0], numbers[0] + len(numbers))] or len(numbers) == 1:
            kept += [row | {"first_record": None, "n_alike": None} for row in group]
            continue
        best = min(group, key=lambda row: (not records[row["record"]]["is_correct"], row["record"]))
        kept.append(best | {"first_record": numbers[0], "n_alike": len(numbers)})
    places = [id_of(row) for row in rows]
    return sorted(kept, key=lambda row: places.index(id_of(row)))


def id_of(row: Row) -> tuple[Any, ...]:
    return row["detector"], row["row"], row["record"], row["searched_text"]


def seen(row: Row) -> Row:
    """What is compared. The characters of `ngram_any` are whole words: held to it by their own."""
    is_left_out = row["detector"] == "ngram_any"
    names = (*COMPARED, "first_record", "n_alike")
    return {name: row[name] for name in names if not (is_left_out and name.endswith(CHARACTERS))}


CHARACTERS = ("char_start", "char_stop")


def check_characters(row: Row, text: str, policy: Policy) -> None:
    if row["detector"] != "ngram_any":
        return
    tokenizer = load_tokenizer(policy.tokenizer_str)
    start, stop = row["question_char_start"], row["question_char_stop"]
    tokens = tokenize(text, policy, tokenizer)[row["question_start"] : row["question_stop"]]
    around = tokenize(text[start:stop], policy, tokenizer)
    if "Σ" not in text:  # which is another letter at the end of a word, wherever that is cut
        assert longest_run(around, tokens, len(tokens))


@SLOW
@given(worlds("cl100k"))
def test_scan_results_of_a_vocabulary_of_bytes_equal_the_oracle(world: World) -> None:
    check(world)


@LESS
@given(worlds("words"))
def test_scan_results_of_words_equal_the_oracle(world: World) -> None:
    check(world)


@LESS
@given(worlds(""))
def test_scan_results_of_a_tokenizer_file_over_bytes_equal_the_oracle(world: World) -> None:
    file, _ = tokenizer_files()
    assert load_tokenizer(file).is_lossless()
    check(
        replace(
            world,
            policy=replace(world.policy, tokenizer_str=file, ngram_any_lowest_recorded=8),
        )
    )


@LESS
@given(worlds(""))
def test_scan_results_of_a_file_that_loses_characters_equal_the_oracle(world: World) -> None:
    _, file = tokenizer_files()
    assert not load_tokenizer(file).is_lossless()
    check(
        replace(
            world,
            policy=replace(world.policy, tokenizer_str=file, ngram_any_lowest_recorded=8),
        )
    )


@LESS
@given(worlds("cl100k"))
def test_a_benchmark_has_the_same_scan_results_alone_and_in_company(world: World) -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        together, alone = staged(world, Path(first)), staged(world, Path(second))
        together.scan([*together.versions], workers=2)
        for name in reversed([*alone.versions]):
            alone.scan([name])
        for shard in range(len(together.pack.shards)):
            for name in together.versions:
                assert together.scan_result(shard, name) == alone.scan_result(shard, name)


@LESS
@given(worlds("cl100k"), st.sampled_from([1, 200, 1000]))
def test_blocks_leave_no_trace_in_scan_results(world: World, block_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        whole, cut_up = staged(world, Path(first)), staged(world, Path(second))
        whole.scan([*whole.versions])
        before = read_blocks.__kwdefaults__["block_bytes"]
        read_blocks.__kwdefaults__["block_bytes"] = block_bytes
        try:
            cut_up.scan([*cut_up.versions], workers=3)
        finally:
            read_blocks.__kwdefaults__["block_bytes"] = before
        for shard in range(len(whole.pack.shards)):
            for name in whole.versions:
                assert whole.scan_result(shard, name) == cut_up.scan_result(shard, name)


def tokens(least: int, letters: int, most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(least, letters), max_size=most)


@settings(SLOW, max_examples=fewer(100))
@given(st.data(), st.sampled_from([1, 2, 3, 6]), st.integers(1, 5))
def test_leaving_out_what_a_prompt_has_not_moves_no_block(
    data: st.DataObject, letters: int, least: int
) -> None:
    prompt = data.draw(tokens(1, letters, 30))
    pieces = data.draw(st.lists(st.tuples(tokens(0, letters, 12), st.integers(0, 30)), max_size=6))
    document = [one for noise, at in pieces for one in [*noise, *prompt[at : at + 9], 0, 0, 0, 0]]
    if not shared_grams(document, prompt, least):
        return
    matching = _BlockMatcher(np.array(document, np.uint32), least)
    matching._is_long = True
    found = ratcliff(document, prompt, ngram_size=least, least_block=least)
    assert found
    blocks = matching.blocks(np.array(prompt, np.uint32)).tolist()
    assert blocks == [[block.document, block.text, block.length] for block in found.blocks]
