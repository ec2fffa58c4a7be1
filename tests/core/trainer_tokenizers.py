"""Small tokenizers as trainers have them, and the bytes that their tokens hold."""

import json
from pathlib import Path

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TEXTS = [
    "How many crabs does the naïve lighthouse keeper count in 東京 東京? Answer: 😀😀 forty-two. ",
    "w12 w1 w123 w77 quiet words, w5 w50\n\n  über größe 👩‍👩‍👧 <|end|>",
]
AROUND = ("<|begin|>", "<|end|>")


def byte_level(path: Path, *, trim: bool = True, n: int = 340) -> str:
    """Write a byte-level BPE, whose tokens may hold a part of a character."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=n,
        special_tokens=[*AROUND],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    special = [(name, tokenizer.token_to_id(name)) for name in AROUND]
    around = processors.TemplateProcessing(
        single=f"{AROUND[0]} $A {AROUND[1]}", special_tokens=special
    )
    level = processors.ByteLevel(trim_offsets=trim)
    tokenizer.post_processor = processors.Sequence([level, around])
    tokenizer.enable_truncation(max_length=4)
    tokenizer.save(str(path))
    return str(path)


def word_piece(path: Path) -> str:
    """Write a WordPiece, which drops white space and accents."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=120, special_tokens=["[UNK]"], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.save(str(path))
    return str(path)


def bytes_of(path: str) -> dict[int, bytes]:
    """The bytes of each token of a byte-level vocabulary, by the published table."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_for = {chr(byte): byte for byte in printable}
    byte_for |= {chr(256 + at): byte for at, byte in enumerate(others)}
    vocabulary = json.loads(Path(path).read_text())["model"]["vocab"]
    return {
        number: bytes(byte_for[sign] for sign in token)
        for token, number in vocabulary.items()
        if token not in AROUND
    }
