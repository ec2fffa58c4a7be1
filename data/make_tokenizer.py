"""Write tokenizer.json: a byte-level BPE vocabulary trained on the sample corpus, for loss masks.

    .venv/bin/python data/make_tokenizer.py

It has the format of the Llama 3 and OLMo 2 tokenizers. Its vocabulary has only 2,000 tokens, so
that a name or a number often consists of several tokens. The same corpus and library version give
the same bytes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import read_shard

HERE = Path(__file__).parent
VOCABULARY = 2_000
BEGIN, END = "<|begin|>", "<|end|>"


def texts() -> Iterator[str]:
    settings = tomllib.loads((HERE / "decon.toml").read_text(encoding="utf-8"))
    for table in settings["corpus"]["source"]:
        source = Source(**table)
        for shard in find_shards(source, folder=HERE, known={}):
            documents = read_shard(shard, source)
            yield from (one.text for one in documents if isinstance(one, Document))


def trained() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[BEGIN, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    around = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (BEGIN, END)],
    )
    level = processors.ByteLevel(trim_offsets=True)
    tokenizer.post_processor = processors.Sequence([level, around])
    return tokenizer


if __name__ == "__main__":
    trained().save(str(HERE / "tokenizer.json"))
