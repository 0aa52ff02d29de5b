"""The job as JUnit XML: a test case for each step, well-formed whatever the programs printed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import PurePath

from harness.ci.result import Case, Result, Verdict
from harness.errors import OrchestrixError

# XML 1.0 has no way to write these characters, not even as references.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(result: Result) -> str:
    """The whole document; an error beyond the steps is a case of its own."""
    total = sum(case.duration_ms for case in result.cases)
    counts = {
        "tests": str(len(result.cases) + (result.error is not None)),
        "failures": str(result.count(Verdict.FAILED)),
        "errors": str(result.count(Verdict.UNFINISHED) + (result.error is not None)),
        "skipped": str(result.count(Verdict.SKIPPED)),
        "time": _seconds(total),
    }
    root = ET.Element("testsuites", {"name": "orchestrix", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _suite_name(result), **counts})
    if result.state is not None:
        suite.set("timestamp", result.state.created_at)
        properties = ET.SubElement(suite, "properties")
        for name in ("run_id", "base", "head", "integration_ref"):
            ET.SubElement(properties, "property", {"name": name, "value": getattr(result.state, name)})
    for case in result.cases:
        _add_case(suite, case)
    if result.error is not None:
        _add_error(suite, result.error)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite_name(result: Result) -> str:
    return legal(PurePath(result.state.plan_path).name) if result.state else "orchestrix"


def _add_case(suite: ET.Element, case: Case) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        {"classname": suite.get("name", ""), "name": legal(case.name), "time": _seconds(case.duration_ms)},
    )
    first_line = f"{case.reason}: {case.message}".split("\n", 1)[0].removesuffix(": ")
    if case.verdict is Verdict.SKIPPED:
        ET.SubElement(element, "skipped", {"message": legal(first_line)})
    elif case.verdict is not Verdict.PASSED:
        kind = "failure" if case.verdict is Verdict.FAILED else "error"
        found = ET.SubElement(element, kind, {"type": legal(case.reason), "message": legal(first_line)})
        found.text = legal(case.message)
    if case.output:
        ET.SubElement(element, "system-out").text = legal(case.output)


def _add_error(suite: ET.Element, error: OrchestrixError) -> None:
    element = ET.SubElement(suite, "testcase", {"classname": suite.get("name", ""), "name": "run", "time": "0"})
    found = ET.SubElement(element, "error", {"type": error.code, "message": legal(error.message)})
    places = [
        f"{problem['file']}:{problem['line']}:{problem['column']}: {problem['field']}: {problem['message']}"
        for problem in error.details.get("errors", [])
    ]
    found.text = legal("\n".join([error.message, *([error.hint] if error.hint else []), *places]))


def legal(text: str) -> str:
    """Text that XML 1.0 can hold; what it cannot becomes U+FFFD."""
    return _ILLEGAL.sub("\ufffd", text)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
