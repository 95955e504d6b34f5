"""Coverage as XML of Cobertura, which GitLab, Jenkins and many others read.

A folder is a package, a file is a class, and a function a method. The conditions of a line are its conditional branch
instructions, each with the share of its two outcomes that were seen, and its jumps through tables (`switch`), each with
the share of its targets. Lines, functions and outcomes that may have run in a gap are left out, and no rate counts
them. The form's time stamp is 0: a trace has no date.

Source: Cobertura's coverage-04.dtd.
"""

import posixpath
import xml.etree.ElementTree as Xml
from collections import defaultdict
from collections.abc import Iterable
from typing import BinaryIO

from rvtrace_gdb.reports.coverage.source_coverage import AnyBranch, BranchCoverage, FileCoverage, FunctionCoverage
from rvtrace_gdb.reports.coverage.totals import Share
from rvtrace_gdb.session.exports.coverage.covered_sources import CoveredSources, covered_sources, known_functions
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.queries.coverage.program_coverage import totals
from rvtrace_gdb.support.errors import Progress, silent

_HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">\n'
)
_UNPRINTABLE = dict.fromkeys(range(32), "�")  # XML has no way to write these


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the document. Raises what *progress* raises."""
    return write_sources(covered_sources(trace, progress), file)


def write_sources(sources: CoveredSources, file: BinaryIO) -> Written:
    """Write the coverage of some files."""
    shares = totals(sources.files)
    lines, branches = shares["lines"], shares["branches"]
    root = Xml.Element("coverage", _rates(sources.files))
    counts = {"lines": lines, "branches": branches}
    root.attrib |= {f"{what}-covered": str(share.covered) for what, share in counts.items()}
    root.attrib |= {f"{what}-valid": str(share.determined) for what, share in counts.items()}
    root.attrib |= {"version": "rvtrace", "timestamp": "0"}
    Xml.SubElement(Xml.SubElement(root, "sources"), "source").text = "."
    _add_packages(Xml.SubElement(root, "packages"), sources.files)
    Xml.indent(root)
    text = _HEAD + Xml.tostring(root, "utf-8") + b"\n"
    file.write(text)
    return Written(text.count(b"\n"), sources.left_out)


def _add_packages(parent: Xml.Element, files: Iterable[FileCoverage]) -> None:
    packages: defaultdict[str, list[FileCoverage]] = defaultdict(list)
    for file in files:
        packages[posixpath.dirname(file.path)].append(file)
    for folder, inside in sorted(packages.items()):
        name = folder.strip("/").replace("/", ".")
        package = Xml.SubElement(parent, "package", {"name": _xml_text(name), **_rates(inside)})
        classes = Xml.SubElement(package, "classes")
        for file in inside:
            _add_class(classes, file)


def _add_class(parent: Xml.Element, file: FileCoverage) -> None:
    name = posixpath.basename(file.path)
    names = {"name": _xml_text(name), "filename": _xml_text(file.path)}
    found = Xml.SubElement(parent, "class", {**names, **_rates([file])})
    methods = Xml.SubElement(found, "methods")
    for function in known_functions(file):
        _add_method(methods, function)
    branches: defaultdict[int, list[AnyBranch]] = defaultdict(list)
    for branch in file.branches:
        branches[branch.line].append(branch)
    lines = Xml.SubElement(found, "lines")
    for number, line in sorted(file.lines.items()):
        if line.times is not None:
            _add_line(lines, number, line.times, branches[number])


def _add_method(parent: Xml.Element, function: FunctionCoverage) -> None:
    rates = {"line-rate": _rate(function.instructions), "branch-rate": _rate(function.branches), "complexity": "0"}
    method = Xml.SubElement(parent, "method", {"name": _xml_text(function.name), "signature": "", **rates})
    line = {"number": str(function.line), "hits": str(function.times), "branch": "false"}
    Xml.SubElement(Xml.SubElement(method, "lines"), "line", line)


def _add_line(parent: Xml.Element, number: int, count: int, branches: list[AnyBranch]) -> None:
    known = [(branch, [bool(one) for one in branch.outcomes if one is not None]) for branch in branches]
    outcomes = [one for _, seen in known for one in seen]
    line = Xml.SubElement(parent, "line", {"number": str(number), "hits": str(count)})
    line.set("branch", "true" if outcomes else "false")
    if not outcomes:
        return
    line.set("condition-coverage", _condition_coverage(outcomes))
    conditions = Xml.SubElement(line, "conditions")
    for place, (branch, seen) in enumerate(one for one in known if one[1]):
        kind = "jump" if isinstance(branch, BranchCoverage) else "switch"
        percent = f"{100 * sum(seen) // len(seen)}%"
        Xml.SubElement(conditions, "condition", {"number": str(place), "type": kind, "coverage": percent})


def _condition_coverage(outcomes: list[bool]) -> str:
    return f"{100 * sum(outcomes) // len(outcomes)}% ({sum(outcomes)}/{len(outcomes)})"


def _rates(files: Iterable[FileCoverage]) -> dict[str, str]:
    shares = totals(files)
    return {"line-rate": _rate(shares["lines"]), "branch-rate": _rate(shares["branches"]), "complexity": "0"}


def _rate(share: Share) -> str:
    return f"{share.covered / share.determined:.4f}" if share.determined else "1.0"


def _xml_text(text: str) -> str:
    return text.translate(_UNPRINTABLE)
