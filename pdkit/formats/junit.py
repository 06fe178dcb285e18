"""A judgement as JUnit XML: a suite an experiment; in it a case for each run's verdict and for each rule of the run.

CI pages list failing cases by name and follow a name from build to build: with a case a run and rule they say which
claim broke at which level, and since when. A case fails only where the run has no measured result (or is unverified,
in the case of its verdict), so that the page is red when `pdkit check` exits with 1, and only then.
"""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pdkit.findings import NOTHING_SHOWS, Experiment, Findings, Result, Run, one_line
from pdkit.results import MEASURED, Judgement
from pdkit.rules import CHECKS

_DID_NOT_LOOK = "not evaluated: these logs do not say what this rule needs"


def text(judgement: Judgement) -> str:
    """The document, indented, with a final newline."""
    root, found = ET.Element("testsuites", name="pdkit"), Findings(judgement)
    decided = ET.Element("properties")
    decided.extend(ET.Element("property", name="decided", value=one_line(said)) for said in found.decided)
    for experiment in found.experiments:
        suite = ET.SubElement(root, "testsuite", name=one_line(experiment.heading))
        suite.extend([decided] if len(decided) else [])
        suite.extend(_cases(experiment))
        _count(suite)
    _count(root)
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _count(element: ET.Element) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    element.set("failures", str(len(list(element.iter("failure")))))
    element.set("errors", "0")
    element.set("skipped", str(len(list(element.iter("skipped")))))


def _cases(experiment: Experiment) -> Iterator[ET.Element]:
    """A rule that does not apply is no case: nothing was tested."""
    for run in experiment.runs:
        yield _verdict(run, _case(experiment, f"{run.name}: verdict"))
        for result in run.results:
            if result.outcome != "not_applicable":
                case = _case(experiment, f"{run.name}: {result.rule} {CHECKS[result.rule].title.rstrip('.')}")
                yield _rule(experiment, run, result, case)


def _case(experiment: Experiment, name: str) -> ET.Element:
    return ET.Element("testcase", classname=one_line(experiment.name), name=name)


def _verdict(run: Run, case: ET.Element) -> ET.Element:
    if not run.accepted:
        why = run.why or NOTHING_SHOWS
        failure = ET.SubElement(case, "failure", type=run.verdict, message=f"{run.verdict}: {why}")
        said = [f"{run.claim} ({run.claim.place})"] if run.claim else []
        said += ["  ".join([str(run.cause), *map(str, run.cause.places)])] if run.cause else []
        failure.text = "\n".join(map(one_line, said))
    elif run.verdict != MEASURED:
        ET.SubElement(case, "system-out").text = f"{run.verdict}: {run.why}"
    return case


def _rule(experiment: Experiment, run: Run, result: Result, case: ET.Element) -> ET.Element:
    where = one_line("  ".join(experiment.places(result.places)))
    if result.places:
        case.set("file", one_line(result.places[0].file))
        case.set("line", str(result.places[0].line))
    if result.outcome == "not_evaluated":
        ET.SubElement(case, "skipped", message=_DID_NOT_LOOK)
    elif result.waiver:
        ET.SubElement(case, "skipped", message=result.said)
    elif result.outcome == "fail" and result.rule in run.refused_by:
        ET.SubElement(case, "failure", type=str(result.severity), message=result.said).text = where
    elif result.outcome == "fail":
        ET.SubElement(case, "system-out").text = f"{result.severity}: {result.said}\n{where}"
    return case
