"""`python -m bench`: measure speed and memory, and compare them with other tools."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import peers as peers_file
from bench.corpus import make_corpus
from bench.detector_rates import ALONE, INTRODUCTION, chosen_detectors, measure_rates
from bench.grid_world import GridSizes
from bench.pages import seconds_to_open, why_no_pages
from bench.table import Line, Page, markdown
from decon_assets.terminal.output import Say
from decon_core.config.policy import Policy
from decon_core.errors import InputError, Problem
from decon_core.execution.jobs import usable_cores
from decon_core.storage.files import atomic_path

DESCRIPTION = """\
Measure the speed and peak memory of every stage, of full scans with one and two workers, and of the
index. With --peers, also measure other tools on the same documents and benchmark items.

Without --corpus, a corpus of --mb megabytes is made: the texts of --texts (default: the sample
world) in a new order, with benchmark items hidden in them.

The following options replace these measurements:

--detectors measures the CPU time and memory of one worker with these detectors, compared with decon
alone.

--mixtures measures how long mixtures take to build, compared with a plain copy of the same shards:
without leaks, a control for that mixture, with leaked spans cut out, and with a license check of
`metadata.license`.

--report measures how long it takes to build the report of a large scan, each of its views, and its
page: a million matches, 100,000 items, 10,000 shards. The scan results are made up, which takes
three minutes and 2 GB of disk.

--grid measures the time to fill a grid of 20 benchmarks by 500 packs, to add a benchmark, and to
open the pages in a browser, and Dagster's share of that time. It takes half an hour.
"""

EPILOG = """\
examples:
  python -m bench                                    a first impression, on the sample world
  python -m bench --evals records/ --texts texts/ --mb 200 --peers
  python -m bench --evals records/ --corpus shards/ --out docs/benchmarks.md
  python -m bench --detectors decon,reworded --evals records/ --texts texts/ --mb 2000
  python -m bench --mixtures --mb 250                mixtures, compared with a plain copy
  python -m bench --report --out docs/benchmarks-report.md
  python -m bench --grid --benchmarks 4 --packs 50 --shards 2
  python -m bench --grid --postgres postgresql+psycopg2://me:secret@127.0.0.1/empty

The other tools are an optional dependency group: pip install -e '.[peers]'. Tools that are not
installed are reported as missing. You can install them in a separate environment:
--peer-python env/bin/python.
"""

_WORLD = Path("data")
# Of few shards the last ones keep one worker busy while the others wait, which says more of the
# corpus than of the scan; those that people have are many.
_FEWEST_SHARDS = 8
_MB_PER_SHARD = 60
_PEER_DOCUMENT_BYTES = 64_000_000
_SMALL = 1_000  # items of a small index
_PEERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("overlapy, small index", {"peer": "overlapy", "most_items": _SMALL}),
    ("overlapy, all items", {"peer": "overlapy", "most_items": None}),
    (
        "datatrove, split at whitespace",
        {"peer": "datatrove", "tokenizer": "white space", "most_items": None},
    ),
    (
        "datatrove, default tokenizer",
        # It takes long for the items, too, and their number does not change the rate.
        {"peer": "datatrove", "tokenizer": "default", "most_items": _SMALL},
    ),
)
_MIXTURES = """\
This page shows how much longer it takes to write a mixture than to copy the corpus. The table was
made with `python -m bench --mixtures` on one core. An MB is a million bytes of UTF-8 text. A plain
copy decompresses the same shards and compresses them again, with the same functions as a mixture.
The copy and the mixtures run alternately in one process, in {rounds} rounds after a warm-up round.
Seconds and ratios are medians; each ratio is computed within one round."""
_LARGE = {"n_matches": 1_000_000, "n_items": 100_000, "n_shards": 10_000}
_REPORT = """\
This page shows how long it takes to make and read a report of a million matches. The table was made
with `python -m bench --report`. The first row is the time to build the entire database from scan
results, ledgers and records. The database has no texts, because the test has no corpus. Peak memory
is that of the main process. The page has 50,000 matched texts with 150 words of synthetic context
each. The page counts as open when Chromium shows the summary or the first matched text. For each
view, the table gives the time to read all rows."""
_DETECTORS = ("decon", "ratcliff", "longest_match", "exact")
_CONTROL = "speed of two independent processes, relative to one (the limit of this machine)"
_JOINABLE = (".jsonl.zst", ".jsonl.gz", ".jsonl.bz2", ".jsonl.xz", ".jsonl")
_LARGE_SHARD_BYTES = 1_000_000_000  # of text
_INSTALL = "not installed: pip install -e '.[peers]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--evals",
        type=Path,
        default=_WORLD / "evals.yaml",
        help="a recipe file or a folder of normalized records (default: %(default)s)",
    )
    parser.add_argument(
        "--corpus", type=Path, help="a folder of shards with a field `text` (default: make one)"
    )
    parser.add_argument(
        "--texts",
        type=Path,
        default=_WORLD / "corpus",
        help="make the corpus from .zip or .txt files or shards in this folder",
    )
    parser.add_argument(
        "--mb", type=float, default=100, help="size of the corpus to make (default 100)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds of each measurement (default 3)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--detectors",
        metavar="NAMES",
        help="measure a scan with these detectors (comma-separated), compared with decon alone",
    )
    what.add_argument(
        "--mixtures",
        action="store_true",
        help="measure how long mixtures take to build instead, compared with a plain copy",
    )
    what.add_argument(
        "--report",
        action="store_true",
        help="measure a report of a large scan instead; the scan results are made up",
    )
    what.add_argument(
        "--grid",
        action="store_true",
        help="measure a grid of many partitions instead, and Dagster's share of the time",
    )
    what.add_argument("--peers", action="store_true", help="measure other tools as well")
    parser.add_argument(
        "--peer-python",
        default=sys.executable,
        metavar="PYTHON",
        help="the Python interpreter of the environment with the peers (default: this one)",
    )
    parser.add_argument(
        "--peer-seconds",
        type=float,
        default=20,
        metavar="S",
        help="how long each peer may process documents (default 20)",
    )
    sizes = GridSizes()
    for name, default, what_of in (
        ("benchmarks", sizes.n_benchmarks, "with --grid: benchmarks"),
        ("packs", sizes.n_packs, "with --grid: packs"),
        ("shards", sizes.n_shards, "with --grid: shards of each pack"),
    ):
        told = f"{what_of} (default {default})"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=told)
    parser.add_argument(
        "--postgres", metavar="URL", help="with --grid: an empty database for Dagster's events"
    )
    parser.add_argument("--out", type=Path, help="also write the Markdown page to this file")


def bench(options: argparse.Namespace, say: Say) -> int:
    """Run the command: measure, print the page, and write it."""
    needed = (
        () if options.report or options.grid else (options.evals, options.corpus or options.texts)
    )
    for path in needed:
        if not path.exists():
            raise InputError(Problem(str(path), "no such file or folder", "the data to measure on"))
    with tempfile.TemporaryDirectory(prefix="decon-bench-") as folder:
        text = _grid(options, Path(folder), say) if options.grid else ""
        text = text or markdown(_Work(options, Path(folder), say).page())
    say(f"\n{text}")
    if options.out:
        with atomic_path(options.out) as draft:
            draft.write_text(text, encoding="utf-8")
        say(f"written to {options.out}")
    return 0


def _grid(options: argparse.Namespace, folder: Path, say: Say) -> str:
    from bench.grid import measure_grid

    sizes = GridSizes(options.benchmarks, options.packs, options.shards)
    text = measure_grid(folder, sizes, postgres=options.postgres, say=say)
    return f"{text}\nCommand: `{_command()}`\n"


@dataclass(frozen=True)
class _Work:
    """One run of the command, in a temporary folder."""

    options: argparse.Namespace
    folder: Path
    say: Say

    def page(self) -> Page:
        if self.options.detectors:
            return self.measure_detectors()
        if self.options.mixtures:
            return self.measure_mixtures()
        return self.measure_report() if self.options.report else self.measure()

    def measure(self) -> Page:
        corpus, made = self._corpus()
        job = self._job(corpus)
        index = self._median("index", job, "seconds")
        job["benchmarks"] = index["benchmarks"]
        read = self._median("read", job, "seconds")
        n_bytes = read["n_text_bytes"]
        default = ", ".join(Policy().detectors)
        data = f"{_data(read, index, made)} The detector is `{default}` unless stated otherwise."
        page = Page(data, _command())
        page.ours.append(_line("read shards", n_bytes, read))
        stages = self._median("stages", job, None)
        for name, what in (("words", "words converted to tokens"), ("search", "search")):
            rate = n_bytes / 1e6 / stages["seconds"][name]
            page.ours.append(Line(name=what, mb_per_second=rate, seconds=stages["seconds"][name]))
        one = self._scan(page, job, 1, n_bytes)
        ahead = self._scan(page, job, 1, n_bytes, cores=2)
        page.ratios.append(
            (
                "speed of one worker with a second core for reading, relative to one core",
                ahead / one,
            )
        )
        all_detectors = self._scan(page, {**job, "detectors": _DETECTORS}, 1, n_bytes)
        page.ratios.append(
            (
                f"time with {', '.join(_DETECTORS)}, relative to {default} alone",
                one / all_detectors,
            )
        )
        two = self._scan(page, job, 2, n_bytes)
        page.ratios.append(("speed of two workers, relative to one", two / one))
        page.ratios.append((_CONTROL, self._two_alone(job, sum(stages["seconds"].values()))))
        page.ours += self._one_shard_lines(job, corpus, n_bytes)
        page.index += self._index_lines(index, stages)
        if self.options.peers:
            self._compare(page, job, one)
        return page

    def measure_detectors(self) -> Page:
        """Measure a worker with some detectors and with decon alone, in turn."""
        detectors = chosen_detectors(self.options.detectors)
        corpus, made = self._corpus()
        job = {**self._job(corpus), "cores": 1}
        index = _run_ours({**job, "job": "index"})
        job["benchmarks"] = index["benchmarks"]
        read = _run_ours({**job, "job": "read"})
        self.say("decon, and with the other detectors, in turn …")
        job["job"], rounds, data = "scan at work", self._n_rounds, _data(read, index, made)
        jobs = [{**job, "detectors": chosen} for chosen in (ALONE, detectors)]
        lines, ratio = measure_rates(_run_ours, jobs, read["n_text_bytes"], rounds)
        introduction = INTRODUCTION.format(rounds=rounds)
        page = Page(data, _command(), "One worker", introduction, detectors=lines)
        page.ratios.append((f"time with {', '.join(detectors)}, relative to decon alone", ratio))
        return page

    def measure_mixtures(self) -> Page:
        """Measure mixtures, all rounds in one process, so that copies and mixtures alternate."""
        corpus, made = self._corpus()
        job = {**self._job(corpus), "cores": 1, "workers": 1, "rounds": self._n_rounds}
        index = _run_ours({**job, "job": "index"})
        job["benchmarks"] = index["benchmarks"]
        read = _run_ours({**job, "job": "read"})
        self.say("scan …")
        _run_ours({**job, "job": "scan"})
        self.say("mixtures …")
        found = _run_ours({**job, "job": "mixtures"})
        page = Page(
            _data(read, index, made),
            _command(),
            title="Mixtures, compared with a plain copy",
            introduction=_MIXTURES.format(rounds=self._n_rounds),
        )
        n_bytes = read["n_text_bytes"]
        page.mixtures.append(_timed("a plain copy", n_bytes, found["copy_seconds"]))
        for name, one in found["variants"].items():
            page.mixtures.append(_timed(name, n_bytes, one["seconds"]))
            page.ratios.append((f"{name}, relative to a plain copy", one["ratio"]))
        return page

    def measure_report(self) -> Page:
        """Measure the report of a large scan; the median of several rounds."""
        job = {"store": str(self.folder / "store"), "sizes": _LARGE, "cores": usable_cores()}
        self.say("making up scan results …")
        _run_ours({**job, "job": "large store"})
        found = self._median("report", job, "seconds", cores=usable_cores())
        sizes = [f"{n:,} {name[2:]}" for name, n in _LARGE.items()]
        page = Page(
            f"{', '.join(sizes[:-1])} and {sizes[-1]}, all synthetic. The report has "
            f"{found['n_leaked']:,} leaked items, {found['n_findings']:,} findings and "
            f"{found['n_texts']:,} matched texts.",
            _command(),
            title="A report of a large scan",
            introduction=_REPORT,
        )
        size = f"{found['size_bytes'] / 1e6:.0f} MB on disk"
        peak = found["peak_bytes"] / 1e6
        whole = Line(name="the database", seconds=found["seconds"], peak_mb=peak, note=size)
        page.report.append(whole)
        size = f"{found['page_bytes'] / 1e6:.0f} MB on disk"
        page.report.append(Line(name="the page", seconds=found["page_seconds"], note=size))
        if why := why_no_pages():
            self.say(f"the page is not opened: {why}")
        else:
            views = {"overview": "#summary.is-leaked", "texts": "#rows > *"}
            page.report += [
                Line(name=f"time until the opened page shows the {view}", seconds=seconds)
                for view, seconds in seconds_to_open(Path(found["page"]), views).items()
            ]
        page.report += [
            Line(name=f"view `{name}`", seconds=seconds) for name, seconds in found["views"].items()
        ]
        return page

    def _job(self, corpus: Path) -> dict[str, Any]:
        store, evals = self.folder / "store", self.options.evals
        return {"store": str(store), "corpus": str(corpus), "evals": str(evals)}

    def _corpus(self) -> tuple[Path, str]:
        options = self.options
        if options.corpus:
            return options.corpus, f" (shards in `{options.corpus.name}`)"
        self.say(f"making a corpus of {options.mb:g} MB from {options.texts}")
        corpus = self.folder / "corpus"
        n_shards = max(_FEWEST_SHARDS, round(options.mb / _MB_PER_SHARD))
        made = make_corpus(
            corpus, texts=options.texts, evals=options.evals, mb=options.mb, n_shards=n_shards
        )
        told = f"in {n_shards} shards, made from the texts in `{options.texts.name}`"
        return corpus, f" {told}, in which {made.n_hidden:,} benchmark items were hidden"

    def _scan(
        self,
        page: Page,
        job: dict[str, Any],
        workers: int,
        n_bytes: int,
        *,
        cores: int | None = None,
    ) -> float:
        """Add lines for the whole scan and for the time after start-up; return the later rate."""
        n_cores = cores or workers
        found = self._median("scan", {**job, "workers": workers}, "seconds", cores=n_cores)
        plural = f"{workers} workers" if workers > 1 else "1 worker"
        if n_cores != workers:
            plural += f", {n_cores} cores"
        if "detectors" in job:
            plural += f", {len(job['detectors'])} detectors"
        whole = Line(
            name=f"full scan, {plural}",
            mb_per_second=n_bytes / 1e6 / found["seconds"],
            seconds=found["seconds"],
            peak_mb=found["peak_bytes"] / 1e6,
            note="from shards to scan results, including start-up",
        )
        page.ours.append(whole)
        if not found["running_share"]:
            return n_bytes / 1e6 / float(found["seconds"])
        rate = n_bytes * float(found["running_share"]) / 1e6 / float(found["running_seconds"])
        page.ours.append(
            Line(
                name=f"after warm-up, {plural}",
                mb_per_second=rate,
                seconds=found["running_seconds"],
                note="measured after each worker has finished a shard",
            )
        )
        return rate

    def _one_shard_lines(self, job: dict[str, Any], corpus: Path, n_bytes: int) -> Iterator[Line]:
        """Run the command on one shard and on a large one, to see how memory grows with shards."""
        shards = sorted(path for path in corpus.iterdir() if path.name.endswith(_JOINABLE))
        n_bytes_each = n_bytes // max(len(shards), 1)
        if not shards or len({path.suffixes[-1] for path in shards}) > 1:
            return
        for n in dict.fromkeys((1, min(len(shards), max(1, _LARGE_SHARD_BYTES // n_bytes_each)))):
            name = f"one-{n}{''.join(shards[0].suffixes[-2:])}"
            parts = [str(path) for path in shards[:n]]
            one = {
                "shard": str(self.folder / name),
                "out": str(self.folder / "one"),
                "parts": parts,
            }
            found = self._median("command", {**job, **one}, "seconds")
            yield Line(
                name=f"`decon-assets scan` of one shard, {n * n_bytes_each / 1e6:,.0f} MB",
                mb_per_second=n * n_bytes_each / 1e6 / found["seconds"],
                seconds=found["seconds"],
                peak_mb=found["peak_bytes"] / 1e6,
                note="the whole command, with an existing index",
            )

    def _two_alone(self, job: dict[str, Any], seconds_alone: float) -> float:
        """How much two processes that share nothing get done in the time of one: a control.

        Cores share caches and memory, and often a machine's two are halves of one.
        """
        self.say("stages, two at once …")
        with ThreadPoolExecutor(2) as pool:
            jobs = [{**job, "job": "stages", "cores": 1, "first_core": core} for core in (0, 1)]
            found = list(pool.map(_run_ours, jobs))
        return float(sum(seconds_alone / sum(one["seconds"].values()) for one in found))

    def _index_lines(self, index: dict[str, Any], stages: dict[str, Any]) -> Iterator[Line]:
        yield Line(
            name="records read and saved",
            seconds=index["read_seconds"],
            note="from the benchmark files",
        )
        yield Line(
            name="term weights computed, index built",
            seconds=index["seconds"],
            peak_mb=index["peak_bytes"] / 1e6,
            note=f"{index['size_bytes'] / 1e6:.1f} MB on disk",
        )
        yield Line(name="opened by another process", seconds=stages["map_seconds"])

    def _compare(self, page: Page, job: dict[str, Any], ours: float) -> None:
        documents, items = self._write_for_peers(job)
        versions = {}
        for name, settings in _PEERS:
            given = {"tokenizer": "", "seconds": self.options.peer_seconds, **settings}
            given |= {"documents": str(documents), "items": str(items)}
            self.say(f"{name} …")
            command = [self.options.peer_python, str(Path(peers_file.__file__)), json.dumps(given)]
            found = _run(command)
            if "missing" in found:
                page.peers.append(Line(name=name, note=f"{_INSTALL} ({found['missing']})"))
                continue
            rate = found["n_text_bytes"] / 1e6 / found["seconds"]
            page.peers.append(
                Line(
                    name=name,
                    mb_per_second=rate,
                    seconds=found["seconds"],
                    peak_mb=found["peak_bytes"] / 1e6,
                    note=f"index of {found['n_items']:,} items built in "
                    f"{found['build_seconds']:.3g} s; reading not counted",
                )
            )
            versions[str(settings["peer"])] = found["version"]
            told = f"speed of our full scan after warm-up, with 1 worker, relative to {name}"
            page.ratios.append((told, ours / rate))
        page.versions = versions

    def _write_for_peers(self, job: dict[str, Any]) -> tuple[Path, Path]:
        """Write documents and items as JSON lines, for programs that cannot read our formats."""
        from bench.stages import pack_texts
        from decon_core.benchmarks.folder import records_in

        documents, items = self.folder / "documents.jsonl", self.folder / "items.jsonl"
        n_bytes = 0
        with documents.open("w", encoding="utf-8") as file:
            for text in pack_texts(job):
                file.write(json.dumps(text) + "\n")
                n_bytes += len(text)
                if n_bytes > _PEER_DOCUMENT_BYTES:
                    break
        with items.open("w", encoding="utf-8") as file:
            for table in records_in(self.options.evals).values():
                for row in table.select(["passage", "question", "answer"]).to_pylist():
                    parts = (row["passage"], row["question"], row["answer"])
                    file.write(json.dumps("\n".join(part for part in parts if part)) + "\n")
        return documents, items

    def _median(
        self, name: str, job: dict[str, Any], by: str | None, *, cores: int = 1
    ) -> dict[str, Any]:
        """Return the median of several rounds."""
        self.say(f"{name} {job.get('workers', '')}…".replace(" …", " …"))
        rounds = [_run_ours({**job, "job": name, "cores": cores}) for _ in range(self._n_rounds)]
        if by is None:
            rounds.sort(key=lambda found: sum(found["seconds"].values()))
        else:
            rounds.sort(key=lambda found: found[by])
        middle = dict(rounds[len(rounds) // 2])
        middle["peak_bytes"] = statistics.median(found["peak_bytes"] for found in rounds)
        return middle

    @property
    def _n_rounds(self) -> int:
        return max(1, int(self.options.rounds))


def _data(read: dict[str, Any], index: dict[str, Any], made: str) -> str:
    return (
        f"{read['n_documents']:,} documents with "
        f"{read['n_text_bytes'] / 1e6:.0f} MB of text{made}; "
        f"{len(index['benchmarks'])} benchmarks with {index['n_records']:,} records."
    )


def _command() -> str:
    """Return the command line without its password."""
    return re.sub(r"://[^@/ ]*@", "://…@", shlex.join(["python", "-m", "bench", *sys.argv[1:]]))


def _timed(name: str, n_bytes: int, seconds: float) -> Line:
    return Line(name=name, mb_per_second=n_bytes / 1e6 / seconds, seconds=seconds)


def _line(name: str, n_bytes: int, found: dict[str, Any]) -> Line:
    return Line(
        name=name,
        mb_per_second=n_bytes / 1e6 / found["seconds"],
        seconds=found["seconds"],
        peak_mb=found["peak_bytes"] / 1e6,
    )


def _run_ours(job: dict[str, Any]) -> dict[str, Any]:
    return _run([sys.executable, "-m", "bench.stages", json.dumps(job)])


def _run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise InputError(
            Problem(
                " ".join(command[:3]),
                f"exit code {done.returncode}",
                "a measurement",
                "what it said stands above",
            )
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
