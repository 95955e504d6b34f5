"""A tandem trace as the log that Spike writes of the same program (`spike -l --log-commits`), and as riscv-dv's CSV.

Source of the log: riscv-isa-sim, riscv/execute.cc (commit_log_print_insn) and riscv/processor.cc (disasm, take_trap);
real logs. The lines are shown in `decode/executed/readers.py`, and `decode/tandem/spike_commits.py` reads them. What
the trace does not contain is not in the log: docs/tandem.md has the list.

Which of the registers that a group reports Spike logs as written: riscv-isa-sim, riscv/csrs.cc and csr_init.cc (what
each CSR's write logs, itself or the registers it stands for). Measured:
tests/console/commands/tandem/test_convert_csrs.py.

The text of instructions is Spike's; if it is not known here, the disassembler's (`Spelling`).

riscv-dv compares executions with the CSV: a row for each instruction.

    pc,instr,gpr,csr,binary,mode,instr_str,operand,pad
    0000000080000054,addi,t1:0000000000000000,,00000313,3,"li      t1, 0","t1,zero,0",

Source of the CSV: chipsalliance/riscv-dv, docs/source/appendix.rst "Trace CSV format"; for what that leaves open
(widths, the form of operands), its converter of Spike's logs.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rvtrace_gdb.decode.executed.spike import CAUSES
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.instructions import ATOMIC, CSR, LOAD, STORE
from rvtrace_gdb.decode.tandem.effects import UNKNOWN_CAUSE
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.protocol import FPR, FPR_END, GPR
from rvtrace_gdb.decode.tandem.wording import F, X
from rvtrace_gdb.views.tandem.groups import Groups, Row, Texts
from rvtrace_gdb.views.tandem.spike_text import Spelled, spelled

UNKNOWN = "unknown"
"""What Spike writes for an encoding that is not an instruction."""


class Spelling:
    """The text of instructions. *texts*: for instructions that have no text here."""

    def __init__(self, texts: Texts, xlen: int) -> None:
        self._texts, self._xlen = texts, xlen

    def of(self, row: Row) -> Spelled:
        """Return the instruction of a group, which was learnt before."""
        assert row.instr is not None
        return spelled(row.instr.word, self._xlen) or _respelled(self._texts.of(row).instruction)

    def text(self, row: Row) -> str:
        """Return the text that `spike -l` has after the encoding."""
        return self.of(row).text

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
    named = _named(row)
    logged = () if named is None else _LOGGED.get(named, () if _is_event_counter(named) else (named,))
    family = {named, *logged}
    if any(change.regno in family for change in row.changes):
        found |= {regno: _value(groups, row, regno, named) for regno in logged}
    for change in row.changes:
        if change.regno in (GPR, csrs.PRIVILEGE, named) or change.regno in found or change.regno >= FPR_END:
            continue
        if change.regno >= GPR or change.old != change.new or _writes_status(row):
            wholes = _LOGGED[csrs.FCSR] if change.regno == csrs.FCSR else (_WHOLES.get(change.regno, change.regno),)
            found |= {regno: _value(groups, row, regno, None) for regno in wholes if regno not in found}
    yield from ((regno, value) for regno, value in found.items() if value is not None or regno != MVIP)


def _named(row: Row) -> int | None:
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


def _value(groups: Groups, row: Row, regno: int, named: int | None) -> int | None:
    """Return the new value of a register. *named*: the CSR that the instruction names."""
    if regno != MVIP:
        return groups.index.registers.value(regno, row.number - 1)
    before = groups.before(csrs.MIP, row.number - 1)
    after = groups.index.registers.value(csrs.MIP, row.number - 1)
    if before is None or after is None or not groups.parameters.supervisor:
        return None
    # mvip is logged before mip is written, but for SEIP, which is in mvip and which sip cannot write.
    return before & _SOFTWARE_AND_TIMER | (after if named == csrs.MIP else before) & _SEIP


NO_ADDRESS = "instructions whose address is not known"
NO_MODE = "commits of instructions whose privilege mode is not known"
NO_TRAP = "traps whose cause or place is not told"
NO_VALUE = "registers whose new value the trace does not tell"
"""What is counted in *left_out*, as the user reads it: each of the four above."""

_WITHOUT_TVAL = frozenset({8, 9, 10, 11, 16})  # environment calls, double trap
_NAMES = {number: name.decode() for name, number in CAUSES.items()}


class SpikeLog:
    """The log of Spike. *hart*: its number; *symbols*: names by address; *mode*: the privilege mode if the trace does
    not report it.

    *left_out*: what is not in the log, counted.
    """

    def __init__(
        self, groups: Groups, spelling: Spelling, hart: int, symbols: Mapping[int, str], mode: int | None = None
    ) -> None:
        self._groups, self._spelling, self._symbols, self._mode = groups, spelling, symbols, mode
        self._xlen = groups.parameters.xlen
        self._core = f"core {hart:3}: "
        self._last: tuple[int, int] | None = None
        self._executions = 1
        self._came_from_csr = False
        self.left_out: Counter[str] = Counter()

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the log of some groups, in order."""
        for row in rows:
            yield from map(self.lost, row.lost)
            if (row.instr is None and row.trap is None) or row.initializes or row.loose:
                continue
            if row.instr is not None and row.pc is None:
                self.left_out[NO_ADDRESS] += 1
                continue
            if row.instr is not None:
                yield from self._listed(row)
            if row.trap is not None:
                yield from self._trap(row)
            elif row.instr is not None:
                yield from self._commit(row)
            self._came_from_csr = row.trap is not None or (row.instr is not None and row.instr.word in csrs.XRETS)

    def lost(self, mark: Break) -> str:
        """Return a line for what is missing, in a form that Spike does not use, like the output of a program."""
        return f"[{mark.why}; trace byte {mark.offset:#x}]"

    def _listed(self, row: Row) -> Iterator[str]:
        """Yield the lines of `-l`: if the same instruction runs again, Spike only writes how often."""
        assert row.instr is not None and row.pc is not None
        here = row.pc, row.instr.word
        if here == self._last:
            self._executions += 1
            return
        # On RV32 Spike looks for the address sign-extended, but for where traps and their returns lead.
        if row.pc in self._symbols and (self._came_from_csr or self._xlen == 64 or not row.pc >> 31):
            yield f"{self._core}>>>>  {self._symbols[row.pc]}"
        if self._executions != 1:
            yield f"{self._core}Executed {self._executions} times"
        self._last, self._executions = here, 1
        yield f"{self._core}{self._hex(row.pc)} (0x{row.instr.word:08x}) {self._spelling.text(row)}"

    def _trap(self, row: Row) -> Iterator[str]:
        trap = row.trap
        assert trap is not None
        epc = row.pc if trap.epc is None else trap.epc
        if trap.cause == UNKNOWN_CAUSE or epc is None:
            self.left_out[NO_TRAP] += 1
            return
        if trap.interrupt:
            name = f"interrupt #{trap.cause}"
        else:
            name = f"trap_{_NAMES[trap.cause]}" if trap.cause in _NAMES else f"trap #{trap.cause}"
        yield f"{self._core}exception {name}, epc {self._hex(epc)}"
        if trap.tval is not None and not trap.interrupt and trap.cause in _NAMES and trap.cause not in _WITHOUT_TVAL:
            yield f"{self._core}          tval {self._hex(trap.tval)}"

    def _commit(self, row: Row) -> Iterator[str]:
        mode = self._mode if row.mode is None else row.mode
        if mode is None:
            self.left_out[NO_MODE] += 1
            return
        assert row.instr is not None and row.pc is not None
        encoding = f"(0x{row.instr.word:0{2 * row.instr.length}x})"
        written = "".join(self._registers(row)) + "".join(self._memory(row))
        yield f"{self._core}{mode} {self._hex(row.pc)} {encoding}{written}"

    def _registers(self, row: Row) -> list[str]:
        """Return the registers in Spike's order: by number, integer before floating-point register before CSR."""
        found: dict[tuple[int, int], str] = {}
        for regno, value in written_registers(self._groups, row):
            if value is None:
                self.left_out[NO_VALUE] += 1
            elif regno < GPR:
                found[regno, 2] = f" c{regno}_{csrs.NAMES.get(regno, 'unknown-csr')} {self._hex(value)}"
            elif regno < FPR:
                found[regno - GPR, 0] = f" x{regno - GPR:<2} {self._hex(value)}"
            else:
                digits = (self._groups.parameters.flen or self._xlen) // 4
                found[regno - FPR, 1] = f" f{regno - FPR:<2} 0x{value:0{digits}x}"
        return [text for _, text in sorted(found.items())]

    def _memory(self, row: Row) -> Iterator[str]:
        """Yield loads, then stores."""
        access = row.access
        if access is None or access.kind == CSR or access.address is None:
            return
        if access.kind == LOAD or (access.kind == ATOMIC and not access.operation.endswith("failure")):
            yield f" mem {self._hex(access.address)}"
        if access.kind == STORE and access.value is not None:
            yield f" mem {self._hex(access.address)} 0x{access.value:0{2 * access.size}x}"
        if access.kind == ATOMIC:
            for _, store in row.stored:
                if store.value is not None:
                    yield f" mem {self._hex(access.address)} 0x{store.value:0{2 * store.size}x}"

    def _hex(self, value: int) -> str:
        return f"0x{value:0{self._xlen // 4}x}"


COLUMNS = ("pc", "instr", "gpr", "csr", "binary", "mode", "instr_str", "operand", "pad")
NO_BYTES = "parts of the trace that cannot be read"
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
            self.left_out[NO_BYTES] += len(row.lost)
            if row.instr is None or row.initializes or row.loose:
                continue
            if row.pc is None:
                self.left_out[NO_ADDRESS] += 1
                continue
            yield as_line(self._columns(row, row.pc))

    def _columns(self, row: Row, pc: int) -> tuple[str, ...]:
        assert row.instr is not None
        spelled = self._spelling.of(row)
        gpr, csr = self._written(row)
        mode = self._mode if row.mode is None else row.mode
        said = "" if mode is None else str(mode)
        return (
            f"{pc:0{self._digits}x}", spelled.name, gpr, csr, f"{row.instr.word:08x}", said,
            _relative(spelled.text), ",".join(map(_operand, spelled.operands)), "",
        )  # fmt: skip

    def _written(self, row: Row) -> tuple[str, str]:
        """Return general registers, and CSRs."""
        general, control = [], []
        for regno, value in written_registers(self._groups, row):
            if value is None:
                self.left_out[NO_VALUE] += 1
            elif regno < GPR:
                control.append(f"{csrs.csr_name(regno).replace(' ', '_')}:{value:0{self._digits}x}")
            else:
                digits = (self._groups.parameters.flen // 4 or self._digits) if regno >= FPR else self._digits
                general.append(f"{_name(regno)}:{value:0{digits}x}")
        return ";".join(general), ";".join(control)


def as_line(columns: Iterable[str]) -> str:
    """Return a row, as Python's `csv` writes it, with carriage return but without line feed."""
    text = io.StringIO()
    csv.writer(text).writerow(columns)
    return text.getvalue().removesuffix("\n")


def _name(regno: int) -> str:
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
