"""Cases of `decon-assets check` as JUnit XML.

Only the elements that Jenkins, GitLab and GitHub actions agree on: a suite with counts, a case with
class and name, a failure with a message. Times are not measured and always 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from decon_core.report.publish.limits import Case
from decon_core.wording import percent

SUITE = "decon-assets check"

# Characters that XML 1.0 does not allow, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(cases: Sequence[Case]) -> str:
    """Return the cases as an XML document."""
    n_failed = sum(not case.is_passed for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(n_failed), "errors": "0", "skipped": "0"}
    root = ET.Element("testsuites", {"name": SUITE, **counts})
    suite = ET.SubElement(root, "testsuite", {"name": SUITE, **counts})
    for case in cases:
        names = {"classname": SUITE.replace(" ", "."), "name": _xml(case.name), "time": "0"}
        element = ET.SubElement(suite, "testcase", names)
        if case.wrong:
            is_known = not (case.is_unknown or case.is_undecided)
            kind = "contamination" if is_known else "incomplete"
            failure = {"message": _xml("; ".join(case.wrong)), "type": kind}
            ET.SubElement(element, "failure", failure).text = _xml("\n".join(case.wrong))
        if case.n_leaked is not None:
            ET.SubElement(element, "system-out").text = _xml(_counts(case))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(case: Case) -> str:
    whole = "an unknown number" if case.n is None else f"{case.n:,}"
    leaked = f"{case.n_leaked:,} of {whole} leaked"
    if case.n_checkable != case.n and case.n_checkable is not None:
        leaked += f"; {case.n_leaked_checkable:,} of the {case.n_checkable:,} that can be found"
    rows = [(leaked, case.rate, case.limit)]
    if case.n_no_answer is not None:
        questions = f"{case.n_no_answer:,} of {whole} found without the answer"
        rows.append((questions, case.no_answer_rate, case.no_answer_limit))
    return "\n".join(
        f"{words}: {percent(rate)}; limit: {'none' if limit is None else percent(limit)}"
        for words, rate, limit in rows
    )


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
