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
            kind = "incomplete" if case.is_unknown else "contamination"
            failure = {"message": _xml("; ".join(case.wrong)), "type": kind}
            ET.SubElement(element, "failure", failure).text = _xml("\n".join(case.wrong))
        if case.n_leaked is not None:
            ET.SubElement(element, "system-out").text = _xml(_counts(case))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(case: Case) -> str:
    whole = "an unknown number" if case.n is None else f"{case.n:,}"
    rows = (
        (case.n_leaked, "leaked", case.rate, case.limit),
        (case.n_question_only, "question-only", case.question_only_rate, case.question_only_limit),
    )
    return "\n".join(
        f"{n:,} of {whole} {what}: {percent(rate)}; "
        f"limit: {'none' if limit is None else percent(limit)}"
        for n, what, rate, limit in rows
        if n is not None
    )


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
