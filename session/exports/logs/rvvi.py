"""A tandem trace as RVVI-TEXT, the text of the RISC-V Verification Interface: a line for each instruction.

    RET 80000054 00000313 X 6 0000000000000000 MODE 3 '_start+8: li t1, 0'

Comments stand behind all elements of a line, with single blanks between these: that is what the simplest readers take.
An interrupt has no event of its own: what it wrote precedes the next instruction in the same logical line. What is
missing is a line with a comment alone.

Source: riscv-verification/RVVI, RVVI-TEXT/README.md (0.1); for what that leaves open (the keys of PARAMS), its examples
and source/host/rvvi/rvviTextChecker.py.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.protocol import FPR, GPR
from rvtrace_gdb.session import version
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.logs.commits import (
    MVIP,
    NO_ADDRESS,
    NO_VALUE,
    Spelling,
    commits_of,
    missing_part,
    written_registers,
)
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable, rows
from rvtrace_gdb.views.disassembly import Images
from rvtrace_gdb.views.tandem.groups import Groups, Row, trap_words
from rvtrace_gdb.views.tandem.plain_rows import AT_ONCE, PlainRows

NO_INSTRUCTION = "traps whose instruction is not known"
_GOES_ON = " \\"
"""At the end of a line that the next one continues."""


class RvviText:
    """The lines of RVVI-TEXT. *images*: the programs, for names; *mode*: the privilege mode if the trace does not
    report it.

    *left_out*: what is not in the lines, counted.
    """

    def __init__(self, groups: Groups, spelling: Spelling, images: Images, mode: int | None = None) -> None:
        self._groups, self._spelling, self._images, self._mode = groups, spelling, images, mode
        self._digits = groups.parameters.xlen // 4
        self.left_out: Counter[str] = Counter()

    def header(self, hart: int) -> list[str]:
        """Return the lines that come first."""
        parameters = self._groups.parameters
        major, minor = re.findall(r"\d+", f"{version.tool()}.0.0")[:2]
        widths = f"ILEN 32 XLEN {parameters.xlen} FLEN {parameters.flen} VLEN 0"
        lines = ["VERSION 0 1", f"VENDOR rvtrace {major} {minor}", f"PARAMS 6 {widths} NHART {hart + 1} RETIRE 1"]
        return [*lines, f"HART {hart}"]

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the lines of some groups, in order."""
        for row in rows:
            yield from map(self.lost, row.lost)
            if (row.instr is None and row.trap is None) or row.initializes or row.loose:
                continue
            if row.instr is None or (row.trap is not None and row.trap.interrupt):
                yield from self._without_instruction(row)
            elif row.pc is None:
                self.left_out[NO_ADDRESS] += 1
            else:
                yield self._event(row, row.pc)

    def lost(self, mark: Break) -> str:
        """Return the line for what is missing."""
        self.left_out[missing_part(mark)] += 1
        return _comment(f"{mark.why}; trace byte {mark.offset:#x}")

    def _event(self, row: Row, pc: int) -> str:
        assert row.instr is not None
        kind = "RET" if row.trap is None else "TRAP"
        words = [f"{kind} {pc:0{self._digits}x} {row.instr.word:0{2 * row.instr.length}x}"]
        words += self._registers(row)
        mode = self._mode if row.mode is None else row.mode
        if mode is not None:
            words.append(f"MODE {mode}")
        symbol = self._images.image_of(row.context).symbol(pc)
        said = self._spelling.text(row) if row.trap is None else f"{self._spelling.text(row)}: {trap_words(row.trap)}"
        name = "" if symbol is None else f"{printable(symbol[0])}+{symbol[1]}: "
        return " ".join([*words, _comment(name + said)])

    def _without_instruction(self, row: Row) -> Iterator[str]:
        """Yield what a trap wrote, if that is not known to have hit an instruction: it belongs to the next event."""
        assert row.trap is not None
        if not row.trap.interrupt:
            self.left_out[NO_INSTRUCTION] += 1
        yield " ".join([*self._registers(row), _comment(trap_words(row.trap))]) + _GOES_ON

    def _registers(self, row: Row) -> list[str]:
        """Return the registers that were written: integer, floating-point, CSRs."""
        found: dict[tuple[int, int], str] = {}
        reported = {change.regno for change in row.changes}
        for regno, value in written_registers(self._groups, row):
            if value is None:
                self.left_out[NO_VALUE] += 1
            elif regno >= FPR:
                digits = self._groups.parameters.flen // 4 or self._digits
                found[1, regno] = f"F {regno - FPR} {value:0{digits}x}"
            elif regno >= GPR:
                found[0, regno] = f"X {regno - GPR} {value:0{self._digits}x}"
            elif regno != MVIP or MVIP in reported:
                found[2, regno] = f"C {regno:x} {value:0{self._digits}x}"
        return [text for _, text in sorted(found.items())]


def _comment(text: str) -> str:
    """Return a comment, which a quote would end."""
    return "'" + " ".join(text.replace("'", '"').split()) + "'"


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the text. Raises NoValues."""
    with commits_of(trace, progress) as commits:
        text = RvviText(commits.groups, commits.spelling, trace.program, trace.mode)
        lines = text.header(trace.hart)
        file.write(rows(lines).encode())
        count = len(lines)
        plain = PlainRows(commits.groups, commits.spelling.learn, lambda row: text.lines([row]))
        for lines in plain.pages(commits.numbers(progress), AT_ONCE):
            count += len(lines)
            file.write(rows(lines).encode() if lines else b"")
        last = [*map(text.lost, commits.losses_at_end()), _comment("the end")]
        file.write(rows(last).encode())
    return Written(count + len(last), text.left_out)
