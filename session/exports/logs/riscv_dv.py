"""A trace as the CSV of riscv-dv, which compares executions with it: a row for each instruction.

    pc,instr,gpr,csr,binary,mode,instr_str,operand,pad
    0000000080000054,addi,t1:0000000000000000,,00000313,3,"li      t1, 0","t1,zero,0",

Source: chipsalliance/riscv-dv, docs/source/appendix.rst "Trace CSV format"; for what that leaves open (widths, the form
of operands), its converter of Spike's logs.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.protocol import FPR, GPR
from rvtrace_gdb.decode.tandem.wording import F, X
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.logs.commits import (
    NO_ADDRESS,
    NO_VALUE,
    Spelling,
    commits_of,
    missing_part,
    written_registers,
)
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import rows
from rvtrace_gdb.views.tandem.groups import Groups, Row
from rvtrace_gdb.views.tandem.plain_rows import AT_ONCE, PlainRows

COLUMNS = ("pc", "instr", "gpr", "csr", "binary", "mode", "instr_str", "operand", "pad")
_MEMORY = re.compile(r"(-?\d+)\((\w+)\)")


class TraceCsv:
    """The CSV of riscv-dv. *left_out*: what is not in the rows, counted."""

    def __init__(self, groups: Groups, spelling: Spelling, mode: int | None = None) -> None:
        self._groups, self._spelling, self._mode = groups, spelling, mode
        self._digits = groups.parameters.xlen // 4
        self.left_out: Counter[str] = Counter()

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the rows of some groups, each with its end of line without the line feed."""
        for row in rows:
            self.left_out.update(map(missing_part, row.lost))
            if row.instr is None or row.initializes or row.loose:
                continue
            if row.pc is None:
                self.left_out[NO_ADDRESS] += 1
                continue
            yield as_line(self._columns(row, row.pc))

    def _columns(self, row: Row, pc: int) -> tuple[str, ...]:
        assert row.instr is not None
        spelled = self._spelling.spelled(row)
        gpr, csr = self._register_columns(row)
        mode = self._mode if row.mode is None else row.mode
        said = "" if mode is None else str(mode)
        return (
            f"{pc:0{self._digits}x}", spelled.name, gpr, csr, f"{row.instr.word:08x}", said,
            _relative(spelled.text), ",".join(map(_operand, spelled.operands)), "",
        )  # fmt: skip

    def _register_columns(self, row: Row) -> tuple[str, str]:
        """Return general registers, and CSRs."""
        general, control = [], []
        for regno, value in written_registers(self._groups, row):
            if value is None:
                self.left_out[NO_VALUE] += 1
            elif regno < GPR:
                control.append(f"{csrs.csr_name(regno).replace(' ', '_')}:{value:0{self._digits}x}")
            else:
                digits = (self._groups.parameters.flen // 4 or self._digits) if regno >= FPR else self._digits
                general.append(f"{_register_name(regno)}:{value:0{digits}x}")
        return ";".join(general), ";".join(control)


def as_line(columns: Iterable[str]) -> str:
    """Return a row, as Python's `csv` writes it, with carriage return but without line feed."""
    text = io.StringIO()
    csv.writer(text).writerow(columns)
    return text.getvalue().removesuffix("\n")


def _register_name(regno: int) -> str:
    return X[regno - GPR] if regno < FPR else F[regno - FPR]


def _relative(text: str) -> str:
    return text.replace("pc + ", "").replace("pc - ", "-")


def _operand(text: str) -> str:
    """Return the operand with distances in decimal, and the base before the offset."""
    if text.startswith("pc "):
        sign, distance = text[3], int(text[5:], 0)
        return str(-distance if sign == "-" else distance)
    found = _MEMORY.fullmatch(text)
    return f"{found[2]},{found[1]}" if found else text


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the table. Raises NoValues."""
    with commits_of(trace, progress) as commits:
        table = TraceCsv(commits.groups, commits.spelling, trace.mode)
        count = 1
        file.write(rows([as_line(COLUMNS)]).encode())
        plain = PlainRows(commits.groups, commits.spelling.learn, lambda row: table.lines([row]))
        for lines in plain.pages(commits.numbers(progress), AT_ONCE):
            count += len(lines)
            file.write(rows(lines).encode() if lines else b"")
        table.left_out.update(map(missing_part, commits.losses_at_end()))
    return Written(count, table.left_out)
