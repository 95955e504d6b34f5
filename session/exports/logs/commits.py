"""What logs of instructions are made of: the registers that each instruction wrote, and the text of instructions.

Which of the registers that a group reports Spike logs as written: riscv-isa-sim, riscv/csrs.cc and csr_init.cc (what
each CSR's write logs, itself or the registers it stands for). Measured:
tests/console/commands/tandem/test_convert_csrs.py.

The text of instructions is Spike's; if it is not known here, the disassembler's (`Spelling`).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.logs.spike_text import Spelled, spelled
from rvtrace_gdb.session.exports.logs.tandem import tandem_trace
from rvtrace_gdb.session.exports.missing import UNKNOWN_TIMES
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem.groups import GroupChange, Groups, GroupTexts, Row
from rvtrace_gdb.views.tandem.plain_rows import AT_ONCE

UNKNOWN = "unknown"
"""What Spike writes for an encoding that is not an instruction."""


class Spelling:
    """The text of instructions. *texts*: for instructions that have no text here."""

    def __init__(self, texts: GroupTexts, xlen: int) -> None:
        self._texts, self._xlen = texts, xlen

    def spelled(self, row: Row) -> Spelled:
        """Return the instruction of a group, which was learnt before."""
        assert row.instr is not None
        return spelled(row.instr.word, self._xlen) or _respelled(self._texts.text_of(row).instruction)

    def text(self, row: Row) -> str:
        """Return the text that `spike -l` has after the encoding."""
        return self.spelled(row).text

    def learn(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the same rows; their text is known then."""
        page = list(rows)
        self._texts.learn(row for row in page if row.instr is not None and spelled(row.instr.word, self._xlen) is None)
        return iter(page)


def _respelled(text: str) -> Spelled:
    """Return a disassembler's text in Spike's form: `add a0,a0,16 # 0x80000010 <main+16>`."""
    name, _, operands = text.partition("\t")
    if not name or name.startswith(".") or " " in name:
        return Spelled(UNKNOWN, ())
    operands = operands.partition(" #")[0].partition(" <")[0].strip()
    return Spelled(name, tuple(operand.strip() for operand in operands.split(",")) if operands else ())


MVIP = 0x309
"""Virtual interrupt bits of AIA. In Spike they are under mip, and logged with it, even if the hart has no AIA."""

_SYSTEM = 0x73
_SET, _CLEAR = 2, 3
_PENDING = (MVIP, csrs.MIP)
_LOGGED = {
    csrs.SSTATUS: (csrs.MSTATUS,), csrs.SIE: (csrs.SIE, csrs.MIE), csrs.SIP: _PENDING, csrs.MIP: _PENDING,
    csrs.FCSR: (csrs.FFLAGS, csrs.FRM),
}  # fmt: skip
"""The CSRs logged for a write to a CSR, if not that one alone."""
_WHOLES = {csrs.SSTATUS: csrs.MSTATUS, csrs.SIE: csrs.MIE, csrs.SIP: csrs.MIP}
_SEIP, _SOFTWARE_AND_TIMER = 1 << 9, 1 << 5 | 1 << 1


def written_registers(groups: Groups, row: Row) -> Iterator[tuple[int, int | None]]:
    """Yield the registers an instruction wrote, as Spike sees them; None: the trace does not determine the new value.

    A CSR that an instruction does not name is written only if that changes it: cores report it in any case.
    """
    found: dict[int, int | None] = {}
    named = _named_csr(row)
    logged = () if named is None else _LOGGED.get(named, () if _is_event_counter(named) else (named,))
    family = {named, *logged}
    if any(change.regno in family for change in row.changes):
        found |= {regno: _written_value(groups, row, regno, named) for regno in logged}
    for change in row.changes:
        if change.regno in (GPR, csrs.PRIVILEGE, named) or change.regno in found or change.regno >= FPR_END:
            continue
        if change.regno >= GPR or change.old != change.new or _writes_status(row):
            wholes = _LOGGED[csrs.FCSR] if change.regno == csrs.FCSR else (_WHOLES.get(change.regno, change.regno),)
            found |= {regno: _new_value(groups, row, regno, change) for regno in wholes if regno not in found}
    yield from ((regno, value) for regno, value in found.items() if value is not None or regno != MVIP)


def _new_value(groups: Groups, row: Row, regno: int, change: GroupChange) -> int | None:
    """Return the new value of a register that the instruction does not name; *change*: of it, or of a part of it."""
    return change.new if regno == change.regno != MVIP else _written_value(groups, row, regno, None)


def _named_csr(row: Row) -> int | None:
    """Return the CSR that an instruction writes: csrrs and csrrc with x0, or 0, write none."""
    word = 0 if row.instr is None else row.instr.word
    operation = word >> 12 & 3
    if row.trap is not None or word & 0x7F != _SYSTEM or not operation:
        return None
    return None if operation in (_SET, _CLEAR) and not word >> 15 & 31 else word >> 20


def _is_event_counter(csr: int) -> bool:
    """Return whether it is mhpmcounter3 to 31 or a high half: Spike has zeros there, and logs no write."""
    return csr & ~0x9F == 0xB00 and csr & 0x1F >= 3


def _writes_status(row: Row) -> bool:
    """Return whether it is a trap or a return from one, which write CSRs without naming them."""
    return row.trap is not None or (row.instr is not None and row.instr.word in csrs.XRETS)


def _written_value(groups: Groups, row: Row, regno: int, named: int | None) -> int | None:
    """Return the new value of a register. *named*: the CSR that the instruction names."""
    if regno != MVIP:
        return groups.index.registers.value(regno, row.number - 1)
    before = groups.before(csrs.MIP, row.number - 1)
    after = groups.index.registers.value(csrs.MIP, row.number - 1)
    if before is None or after is None or not groups.parameters.supervisor:
        return None
    # mvip is logged before mip is written, but for SEIP, which is in mvip and which sip cannot write.
    return before & _SOFTWARE_AND_TIMER | (after if named == csrs.MIP else before) & _SEIP


NO_BYTES = "parts of the trace that cannot be read"
NO_ADDRESS = "instructions whose address is not known"
NO_MODE = "commits of instructions whose privilege mode is not known"
NO_TRAP = "traps whose cause or place is not told"
NO_VALUE = "registers whose new value the trace does not tell"
"""What is counted in *left_out*, as the user reads it: each of the five above."""


def missing_part(mark: Break) -> str:
    """Return as what something that is missing is counted in `Written.left_out`."""
    return NO_BYTES if mark.loss else UNKNOWN_TIMES


class Commits(NamedTuple):
    """The groups of a trace that are exported, with the text of their instructions."""

    groups: Groups
    selected: range
    spelling: Spelling

    def numbers(self, progress: Progress) -> Iterator[int]:
        """Yield the numbers of the groups, counted from 0."""
        selected = self.selected
        for first in range(selected.start, selected.stop, AT_ONCE):
            progress("converting (groups)", first - selected.start, len(selected))
            yield from range(first, min(first + AT_ONCE, selected.stop))

    def losses_at_end(self) -> list[Break]:
        """Return what is missing after the last group of the trace, if that is exported."""
        return self.groups.breaks.get(len(self.groups), []) if self.selected.stop == len(self.groups) else []


@contextmanager
def commits_of(trace: ExportedTrace, progress: Progress) -> Iterator[Commits]:
    """Yield the groups of a trace. Raises NoValues where the trace has no values, and none are known."""
    groups = Groups(tandem_trace(trace, progress))
    xlen = groups.parameters.xlen
    with Disassemblers(trace.program) as source:
        selected = range(len(groups)) if trace.groups is None else trace.groups
        yield Commits(groups, selected, Spelling(GroupTexts(source, trace.program, xlen), xlen))
