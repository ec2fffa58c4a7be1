"""Cases as JUnit XML, the form in which build servers show what failed.

Jenkins, GitLab and the GitHub actions that show tests agree on this much of it: a suite with
counts, a case with class and name, a failure with a message. Nothing is measured, so every time is
0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from decon_core.report.publish.card import percent
from decon_core.report.publish.limits import Case

SUITE = "decon-assets check"

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(cases: Sequence[Case]) -> str:
    """The cases of one check as a file."""
    n_failed = sum(not case.is_passed for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(n_failed), "errors": "0", "skipped": "0"}
    root = ET.Element("testsuites", {"name": SUITE, **counts})
    suite = ET.SubElement(root, "testsuite", {"name": SUITE, **counts})
    for case in cases:
        _add(suite, case)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add(suite: ET.Element, case: Case) -> None:
    names = {"classname": SUITE.replace(" ", "."), "name": _xml(case.name), "time": "0"}
    element = ET.SubElement(suite, "testcase", names)
    if case.wrong:
        kind = "incomplete" if case.is_unknown else "contamination"
        failure = {"message": _xml("; ".join(case.wrong)), "type": kind}
        ET.SubElement(element, "failure", failure).text = _xml("\n".join(case.wrong))
    if case.n_leaked is not None:
        ET.SubElement(element, "system-out").text = _xml(_told(case))


def _told(case: Case) -> str:
    n = "an unknown number" if case.n is None else f"{case.n:,}"
    limit = "none" if case.limit is None else percent(case.limit)
    told = f"{case.n_leaked:,} of {n} leaked: {percent(case.rate)}; limit: {limit}"
    if case.n_question_only is None:
        return told
    limit = "none" if case.question_only_limit is None else percent(case.question_only_limit)
    rate = percent(case.question_only_rate)
    return f"{told}\n{case.n_question_only:,} of {n} question-only: {rate}; limit: {limit}"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
