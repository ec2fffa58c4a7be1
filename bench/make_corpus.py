"""Makes shards of any size with hidden benchmark items from a small amount of text.

    python -m bench.make_corpus --texts FOLDER --evals FOLDER --mb 120 OUT

`--texts` is a folder of .zip archives of .txt files, of .txt files, or of shards with a field
`text`. The hidden items and their places are written next to OUT, to OUT-truth.jsonl.
"""

import argparse
from pathlib import Path

from bench.corpus import make_corpus, truth_file


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--evals", type=Path, required=True)
    parser.add_argument("--mb", type=float, default=120, help="of text together (default 120)")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=1_000, help="items to hide (default 1000)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    made = make_corpus(
        options.out,
        texts=options.texts,
        evals=options.evals,
        mb=options.mb,
        n_shards=options.shards,
        n_hidden=options.hidden,
        seed=options.seed,
    )
    print(
        f"{options.out}: {made.n_documents:,} documents, {made.n_text_bytes / 1e6:.0f} MB of text"
    )
    print(f"{truth_file(options.out)}: {made.n_hidden:,} hidden items")


if __name__ == "__main__":
    main()
