"""GCC's notes of a source file (.gcno): the functions, their blocks, arcs and lines, as GCC 12 and later write them.

Source: GCC 12, gcc/gcov-io.h (records), gcc/profile.cc (which arcs have counters).
"""

import os
import struct
from typing import NamedTuple

from rvtrace_gdb.reports.pgo.flow_arcs import FlowArc, FlowFunction
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem

_MAGIC, _FIRST = b"oncg", ord("B")
_FUNCTION, _BLOCKS, _ARCS, _LINES = 0x01000000, 0x01410000, 0x01430000, 0x01450000
_ON_TREE, _FAKE = 1, 2


class BadNotes(RvtraceError):
    """A file is not the notes of a source file, or is damaged."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


class GcovNotes(NamedTuple):
    """The notes: the *functions*, and what the counts of the same source have to repeat."""

    version: bytes
    stamp: int
    checksum: int
    functions: list[FlowFunction]


def read_notes(path: str) -> GcovNotes:
    """Return the notes in a file. Raises BadNotes."""
    try:
        data = read_input(path)
    except (OSError, ValueError) as error:
        raise BadNotes(path, open_problem(error)) from error
    if data[:4] != _MAGIC:
        raise BadNotes(path, "these are not GCC's notes (.gcno, of gcc -ftest-coverage)")
    version = data[4:8]
    if len(version) < 4 or version[3] < _FIRST or version[2:3] < b"2":
        raise BadNotes(path, f"notes of version {version[::-1]!r}: GCC 12 and later are read")
    try:
        return _Notes(data).read(version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise BadNotes(path, "the notes are cut off or damaged") from error


class _Notes:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 8

    def read(self, version: bytes) -> GcovNotes:
        stamp, checksum = self._next_word(), self._next_word()
        folder = self._text()
        self._next_word()  # blocks that are not executed are told apart
        functions: list[FlowFunction] = []
        while self._at < len(self._data) and (tag := self._next_word()):
            size = self._next_word()
            end = self._at + size
            if tag == _FUNCTION:
                functions.append(self._function())
            elif functions:
                self._part(functions[-1], tag, end, folder)
            self._at = end
        return GcovNotes(version, stamp, checksum, functions)

    def _function(self) -> FlowFunction:
        ident, lineno, cfg = self._next_word(), self._next_word(), self._next_word()
        return FlowFunction(self._text(), ident, lineno, cfg)

    def _part(self, function: FlowFunction, tag: int, end: int, folder: str) -> None:
        if tag == _BLOCKS:
            function.blocks = self._next_word()
        elif tag == _ARCS:
            source = self._next_word()
            while self._at < end:
                target, flags = self._next_word(), self._next_word()
                function.arcs.append(FlowArc(source, target, bool(flags & _ON_TREE), bool(flags & _FAKE)))
        elif tag == _LINES:
            block, path = self._next_word(), ""
            lines = function.lines.setdefault(block, set())
            while self._at < end:
                if line := self._next_word():
                    lines.add((path, line))
                else:
                    path = os.path.normpath(os.path.join(folder, self._text())) if self._at < end else ""

    def _next_word(self) -> int:
        value: int = struct.unpack_from("<I", self._data, self._at)[0]
        self._at += 4
        return value

    def _text(self) -> str:
        size = self._next_word()
        text = self._data[self._at : self._at + size]
        self._at += size
        return text.rstrip(b"\0").decode()
