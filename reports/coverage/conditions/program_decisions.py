"""The decisions of a program: those of its source text that its code has."""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.coverage.conditions.matching import CodeDecision, DecisionMatcher
from rvtrace_gdb.reports.coverage.conditions.source_text import SourceDecision, SourcePoint, decisions
from rvtrace_gdb.reports.source_files import source_file

_LANGUAGES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".C", ".H")
"""The ends of the names of files whose text is understood."""


class ProgramDecision(NamedTuple):
    """A decision of the source file *path*, and its copies in the code; *copies* None: it is not determined."""

    path: str
    source: SourceDecision
    copies: tuple[CodeDecision, ...] | None


def program_decisions(image: Image, lines: SourceLines, branches: Iterable[int]) -> list[ProgramDecision]:
    """Return the decisions that the code of a program has. *branches*: the addresses of its conditional branches. Files
    that cannot be read have none.
    """
    by_path: defaultdict[str, dict[int, SourcePoint]] = defaultdict(dict)
    for pc in branches:
        row = lines.row(pc)
        if row is not None:
            by_path[row.path][pc] = SourcePoint(row.line, row.column)
    found: list[ProgramDecision] = []
    for path, places in sorted(by_path.items()):
        matcher = DecisionMatcher(image, places, partial(_point_at, lines, path))
        content = source_file(path) if path.endswith(_LANGUAGES) else None
        # a character a byte, as compilers count columns
        for decision in decisions((content or b"").decode("latin-1")):
            copies = matcher.copies(decision)
            if copies is None or copies:
                found.append(ProgramDecision(path, decision, None if copies is None else tuple(copies)))
    return found


def _point_at(lines: SourceLines, path: str, pc: int) -> SourcePoint | None:
    row = lines.row(pc)
    return SourcePoint(row.line, row.column) if row is not None and row.path == path else None
