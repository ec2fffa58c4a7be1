"""Measures other tools on the same documents and benchmark items. Runs as a standalone script.

    python peers.py '{"peer": "overlapy", "documents": …, "items": …, …}'

It imports nothing from this project, so that any interpreter with the other tool can run it, and so
that the memory measured is that of the tool. Reading documents is not timed; tokenizing is. Prints
one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

Look = Callable[[str], bool]  # whether anything was found in a document


def overlapy(items: list[str], _job: dict[str, Any]) -> tuple[Look, str]:
    """Its n-gram overlap over lower-cased words, as its own worker runs it, without the pool."""
    library = import_module("overlapy")
    examples = [item.lower().split() for item in items]
    test_set = library.OverlapyTestSet("items", examples=examples)
    ngrams = library.Overlapy(testsets=[test_set], dataset=[], n_workers=1).testset_ngrams
    matcher = library.OverlapyNgramMatcher(ngrams)
    return lambda text: bool(matcher([text.lower().split()])), version("overlapy")


def datatrove(items: list[str], job: dict[str, Any]) -> tuple[Look, str]:
    """Its n-gram decontamination filter with default settings: 12-grams of simplified text.

    The indexer insists on a package for evaluations although items can be handed to it, so the
    hashes are made here, from the filter's own parts and in the indexer's file format.
    """
    import numpy as np

    document = import_module("datatrove.data").Document
    text_tools = import_module("datatrove.utils.text")
    language = {"language": _white_space_words()} if job["tokenizer"] == "white space" else {}
    with tempfile.TemporaryDirectory() as folder:
        decont = import_module("datatrove.pipeline.decont").NGramsDecontFilter(folder, **language)
        config, hash_bytes = decont.config, decont.hash_func
        decont.hash_func = lambda text: hash_bytes(text.encode())  # xxhash 4 takes no strings
        hashes = {
            decont.hash_func(" ".join(gram))
            for item in items
            for gram in text_tools.ngrams(
                decont.tokenizer.word_tokenize(text_tools.simplify_text(item, config.norm_config)),
                config.n_grams,
            )
        }
        content = np.array(list(hashes), dtype=config.hash_config.np_descr)
        content.tofile(Path(folder) / "items.index.hashes")
        decont.load_index_hashes()
    return lambda text: decont.filter(document(text=text, id="")) is not True, version("datatrove")


def _white_space_words() -> object:
    base = import_module("datatrove.utils.word_tokenizers").WordTokenizer
    methods = {
        "word_tokenize": lambda _self, text: text.split(),
        "sent_tokenize": lambda _self, text: [text],
        "span_tokenize": lambda _self, text: [(0, len(text))],
    }
    return type("WhiteSpaceWords", (base,), methods)()


PEERS: dict[str, Callable[[list[str], dict[str, Any]], tuple[Look, str]]] = {
    "overlapy": overlapy,
    "datatrove": datatrove,
}


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Measure the rate over as many documents as fit into the given time."""
    items = [str(item) for item in _lines(job["items"])][: job["most_items"]]
    started = time.perf_counter()
    try:
        look, found_version = PEERS[job["peer"]](items, job)
    except ImportError as error:
        return {"missing": str(error)}
    build_seconds = time.perf_counter() - started
    n_bytes = n_documents = n_found = 0
    seconds = 0.0
    for text in _lines(job["documents"]):
        started = time.perf_counter()
        n_found += look(text)
        seconds += time.perf_counter() - started
        n_bytes += len(text.encode())
        n_documents += 1
        if seconds > job["seconds"]:
            break
    return {
        "version": found_version,
        "n_items": len(items),
        "build_seconds": build_seconds,
        "n_text_bytes": n_bytes,
        "n_documents": n_documents,
        "n_found": n_found,
        "seconds": seconds,
        "peak_bytes": peak_bytes(),
    }


def _lines(path: str) -> Iterator[str]:
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def peak_bytes() -> int:
    """Return the peak memory of this process; `ru_maxrss` may be that of its parent."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(json.loads(sys.argv[1]))) + "\n")
