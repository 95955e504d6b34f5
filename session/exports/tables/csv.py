"""A table of CSV: a row for each instruction, with a heading.

    hart,number,time,addr,func,offset,opcodes,inst,event
    0,3,,0x80000004,main,4,1141,"addi sp,sp,-16",
    0,4,,,,,,,exception 2
    0,4,,0x80000100,trap_vector,0,...

What is not known is empty. *event*: a gap and why, which has a number of its own; or a trap, or a loss whose place is
not known, before the instruction with that number. As RFC 4180, with line feeds alone.
"""

from typing import BinaryIO

from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.tables.instruction_rows import write_rows
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.views.addresses import digits
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.row_pieces import RowFrame, Shape

TAB = "\t"
COLUMNS = ("hart", "number", "time", "addr", "func", "offset", "opcodes", "inst", "event")


class CsvRows(Shape):
    """The shape of the rows, see `TableShape`: the fields of JSON rows as columns."""

    raw = True
    coloured = False

    def timed_frame(self, hart: int, time: int | None) -> RowFrame:
        """See `TableShape`."""
        return RowFrame(f"{hart},", f",{'' if time is None else time},")

    def frame(self, hart: int, several: bool) -> RowFrame:
        """See `Shape`."""
        return self.timed_frame(hart, None)

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        """See `Shape`."""
        name, offset = ("", "") if text.symbol is None else (_cell(text.symbol[0]), str(text.symbol[1]))
        return f"{digits(pc, xlen)},{name},{offset},{raw},{_cell((text.instruction or '').replace(TAB, ' '))},"

    def gap(self, frame: RowFrame, number: int, what: str) -> str:
        """See `Shape`."""
        return f"{frame.before}{number}{frame.after},,,,,{_cell(what)}"

    def happening(self, frame: RowFrame, number: int, event: Event) -> str:
        """See `TableShape`."""
        return self.gap(frame, number, event.text)


def _cell(text: str) -> str:
    text = printable(text)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the table of all harts."""
    file.write((",".join(COLUMNS) + "\n").encode())
    return Written(1 + write_rows(trace, CsvRows(), file, progress))
