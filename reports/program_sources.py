"""Which source line an address is of, and what stands there: of files that are source code, and of no others.

Debug information may name any file of this machine, and what is read goes to another program. So only ordinary files
whose names end as those of source code do are read.
"""

import os
from functools import lru_cache

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.source_files import source_file

_ENDINGS = frozenset((
    ".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".s", ".asm", ".rs",
    ".zig", ".d", ".ada", ".adb", ".ads", ".f", ".f90", ".nim", ".swift", ".m", ".go",
))  # fmt: skip
_MOST_BYTES = 1 << 22


class ProgramSources:
    """The source lines of a program. *shown*: whether the text of lines is, too."""

    def __init__(self, image: Image, *, shown: bool) -> None:
        self._lines, self._shown = SourceLines(image), shown
        self._cached_lines = lru_cache(maxsize=64)(source_code_lines)

    def place(self, address: int) -> str:
        """Return file:line, "" if it is not known."""
        return self._lines.line_at(address)

    def line_text(self, address: int) -> str:
        """Return the text of the line, "" if it is not known or not shown."""
        row = self._lines.row(address) if self._shown else None
        if row is None:
            return ""
        lines = self._cached_lines(row.path)
        return lines[row.line - 1].strip() if 0 < row.line <= len(lines) else ""


def source_code_lines(path: str) -> list[str]:
    """Return the lines of a file, none if it is no source code."""
    if not all(os.path.splitext(name)[1].lower() in _ENDINGS for name in (path, os.path.realpath(path))):
        return []
    return (source_file(path, _MOST_BYTES) or b"").decode("utf-8", "replace").splitlines()
