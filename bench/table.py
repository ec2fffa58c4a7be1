"""Formats measurements as a Markdown page."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from decon_core.execution.jobs import usable_cores

_INTRODUCTION = """\
This page shows how fast a scan is and how much memory it needs. The tables were made with
`python -m bench` (`make bench`). An MB is a million bytes of UTF-8 text. Each measurement is the
median of several rounds. Each round is a separate process on one core, unless the name of the
measurement states more workers or cores."""
_PACKAGES = (
    "decon-assets",
    "dagster",
    "numpy",
    "numba",
    "pyarrow",
    "splintr-rs",
    "orjson",
    "backports-zstd",
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measurement."""

    name: str
    mb_per_second: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    note: str = ""


@dataclass
class Page:
    """All measurements of one run."""

    data: str
    command: str
    title: str = "Benchmarks"
    introduction: str = _INTRODUCTION
    ours: list[Line] = field(default_factory=list)
    index: list[Line] = field(default_factory=list)
    detectors: list[Line] = field(default_factory=list)
    mixtures: list[Line] = field(default_factory=list)
    report: list[Line] = field(default_factory=list)
    peers: list[Line] = field(default_factory=list)
    ratios: list[tuple[str, float]] = field(default_factory=list)
    versions: Mapping[str, str] = field(default_factory=dict)  # of peers


def markdown(page: Page) -> str:
    """Return the page, with machine, versions and date."""
    parts = [
        f"# {page.title}",
        page.introduction,
        machine(page.versions),
        f"Data: {page.data}",
        f"Command: `{page.command}`",
    ]
    for heading, lines in (
        ("The scan", page.ours),
        ("The index", page.index),
        ("A worker by its detectors", page.detectors),
        ("From shards to shards", page.mixtures),
        ("From scan results to answers", page.report),
        ("Other tools on the same documents", page.peers),
    ):
        if lines:
            parts += [f"## {heading}", _table(lines)]
    if page.ratios:
        parts.append(
            "\n".join(
                f"- {name}: {ratio:.{1 if ratio >= 10 else 2}f}x" for name, ratio in page.ratios
            )
        )
    return "\n\n".join(parts) + "\n"


def _table(lines: Sequence[Line]) -> str:
    rows = [("", "MB/s", "seconds", "peak MB", "")]
    rows += [
        (
            line.name,
            _number(line.mb_per_second),
            _number(line.seconds),
            _number(line.peak_mb),
            line.note,
        )
        for line in lines
    ]
    text = [f"| {' | '.join(row)} |" for row in rows]
    text.insert(1, "|---|---:|---:|---:|---|")
    return "\n".join(text)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def machine(peers: Mapping[str, str]) -> str:
    """Return date, machine and versions in one line."""
    date = datetime.now(UTC).date().isoformat()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    names = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    names += [f"{name} {found}" for name, found in sorted(peers.items())]
    return (
        f"{date}; {_processor()}, {usable_cores()} cores, {memory:.0f} GB; "
        f"Python {platform.python_version()}, {', '.join(names)}."
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
